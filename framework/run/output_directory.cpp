#include "framework/run/output_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

#include "datatypes/error.hpp"
#include "framework/mpi/fault_point.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

/// Is it a name of ours, of a file that is not complete? step_N.h5.tmp, FIELD_N.png.tmp and their like.
bool is_temporary(const std::string& name) {
  if (name == ".isohalo_probe" || name == "latest.h5.tmp" || name == "digests.txt.tmp") return true;
  for (const char* suffix : {".h5.tmp", ".json.tmp", ".xmf.tmp", ".png.tmp"}) {
    const std::size_t length = std::char_traits<char>::length(suffix);
    if (name.size() <= length || name.compare(name.size() - length, length, suffix) != 0) continue;
    const auto line = name.rfind('_');
    if (line == std::string::npos || name.size() < line + 9 + length) continue;
    return name.find_first_not_of("0123456789", line + 1) == name.size() - length;
  }
  return false;
}

}  // namespace

fs::path OutputDirectory::file(std::int64_t step, const std::string& suffix) const {
  return path_ / fmt::format("step_{:08d}{}", step, suffix);
}

fs::path OutputDirectory::picture(const std::string& field, std::int64_t step) const {
  return path_ / fmt::format("{}_{:08d}.png", field, step);
}

std::vector<std::int64_t> OutputDirectory::steps() const {
  std::vector<std::int64_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.size() < 16 || name.rfind("step_", 0) != 0 || entry.path().extension() != ".h5") continue;
    std::int64_t step = -1;
    const char* const end = name.data() + name.size() - 3;
    const auto [at, error] = std::from_chars(name.data() + 5, end, step);
    if (error == std::errc{} && at == end && step >= 0) found.push_back(step);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

void OutputDirectory::make_writable() const {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error || !fs::is_directory(path_))
    throw UsageError("output.directory " + path_.string() +
                     " cannot be made: " + (error ? error.message() : std::string("a file has that name")));
  const fs::path probe = path_ / ".isohalo_probe";
  errno = 0;
  const bool good = static_cast<bool>(std::ofstream(probe) << "x" << std::flush);
  const int reason = errno;
  fs::remove(probe, error);
  if (!good)
    throw UsageError("output.directory " + path_.string() + " cannot be written to (" + std::strerror(reason) +
                     "): choose another");
}

void OutputDirectory::remove(std::int64_t step) const {
  // The checkpoint last: as long as it is there, what belongs to it is found.
  std::error_code ignored;
  for (const char* suffix : {".json", ".xmf", ".h5"}) {
    fs::remove(file(step, suffix), ignored);
    detail::fault_point("deleted");
  }
}

void OutputDirectory::remove_leftovers() const {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path_, ignored))
    if (is_temporary(entry.path().filename().string())) found.push_back(entry.path());
  for (const auto& file : found) fs::remove(file, ignored);
}

void OutputDirectory::remove_all_checkpoints() const {
  std::error_code ignored;
  fs::remove(path_ / "latest.h5", ignored);
  fs::remove(trail(), ignored);
  for (std::int64_t s : steps()) remove(s);
}

void OutputDirectory::set_latest(std::int64_t step) const {
  const fs::path link = path_ / "latest.h5", fresh = path_ / "latest.h5.tmp";
  std::error_code error;
  fs::remove(fresh, error);
  detail::fault_point("latest");
  fs::create_symlink(checkpoint(step).filename(), fresh, error);
  detail::fault_point("latest_rename");
  if (!error) fs::rename(fresh, link, error);
  if (error) throw RunError("cannot point " + link.string() + " at the new checkpoint: " + error.message());
}

void OutputDirectory::delete_beyond(std::int64_t keep, std::int64_t newest) const {
  if (keep <= 0) return;
  std::int64_t kept = 0;
  for (std::int64_t s : steps())
    if (s <= newest && ++kept > keep) remove(s);
}

}  // namespace isohalo
