#include "framework/preload/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "datatypes/error.hpp"
#include "datatypes/nearest_word.hpp"
#include "framework/preload/process_mpi.hpp"

namespace isohalo::preload {

namespace {

struct Setting {
  std::string name;
  std::vector<std::string> values{};  ///< none: any text, which its reader checks
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> known{{"ISOHALO_MPI", {"off", "on"}},
                                          {"ISOHALO_MPI_REPORT", {"0", "1"}},
                                          {"ISOHALO_MPI_HIERARCHY"},
                                          {"ISOHALO_MPI_ALGORITHM"}};
  return known;
}

bool says(const char* name, const char* value) {
  const char* const text = std::getenv(name);
  return text && std::string(text) == value;
}

std::string listed(const std::vector<std::string>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i)
    list += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return list;
}

void warn(const std::string& subject, const std::vector<std::string>& words, const std::string& meant) {
  std::fprintf(stderr, "isohalo: warning: %s: there are %s%s%s%s\n", subject.c_str(), listed(words).c_str(),
               meant.empty() ? "" : "; did you mean ", meant.c_str(), meant.empty() ? "" : "?");
}

/// Of this rank on its compute node, or in the world where no launcher tells it. Slurm comes last: a batch script
/// has its variable, too, and may start ranks by another launcher.
int number_on_node() {
  for (const char* name : {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID", "SLURM_LOCALID"})
    if (const char* const number = std::getenv(name)) return std::atoi(number);
  return process_mpi().rank;
}

}  // namespace

bool switched_off() {
  return says("ISOHALO_MPI", "off");
}

bool report_wanted() {
  return says("ISOHALO_MPI_REPORT", "1");
}

NodeCollectivesOptions options_of_settings(int spins) {
  NodeCollectivesOptions options{.spins = spins};
  const auto warn_if_first = [](const std::string& what) {
    if (process_mpi().rank == 0) std::fprintf(stderr, "isohalo: warning: %s\n", what.c_str());
  };
  // A rank's place is by its number on the compute node, whatever communicators it is in.
  try {
    if (const char* const text = std::getenv("ISOHALO_MPI_HIERARCHY"))
      options.place = Hierarchy::place_of(text, number_on_node());
  } catch (const UsageError& e) {
    warn_if_first("ISOHALO_MPI_HIERARCHY: " + std::string(e.what()));
    const std::string text = std::getenv("ISOHALO_MPI_HIERARCHY");  // other ranks may have a place there
    options.place.assign(static_cast<std::size_t>(std::count(text.begin(), text.end(), 'x')) + 1, -1);
  }
  try {
    if (const char* const text = std::getenv("ISOHALO_MPI_ALGORITHM")) {
      NodeAlgorithm::of_text(text);
      options.algorithm = text;
    }
  } catch (const UsageError& e) {
    warn_if_first("ISOHALO_MPI_ALGORITHM: " + std::string(e.what()));
  }
  return options;
}

void warn_of_settings() {
  const std::string stem = "ISOHALO_MPI";
  std::vector<std::string> names, ends;  // what all begin with is no likeness
  for (const Setting& s : settings()) names.push_back(s.name), ends.push_back(s.name.substr(stem.size()));
  for (char** at = environ; *at; ++at) {
    const std::string variable = *at;
    if (!variable.starts_with(stem)) continue;
    const auto sign = std::min(variable.find('='), variable.size());
    const std::string name = variable.substr(0, sign), value = variable.substr(std::min(sign + 1, variable.size()));
    const auto known = std::find_if(settings().begin(), settings().end(), [&](auto& s) { return s.name == name; });
    if (known == settings().end()) {
      const std::string near = nearest_word(name.substr(stem.size()), ends);
      warn("no setting " + name, names, near.empty() ? "" : stem + near);
    } else if (!known->values.empty() &&
               std::find(known->values.begin(), known->values.end(), value) == known->values.end()) {
      warn(variable, known->values, nearest_word(value, known->values));
    }
  }
}

}  // namespace isohalo::preload
