#include "framework/run/help.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "datatypes/printable.hpp"
#include "framework/run/input.hpp"
#include "framework/run/words.hpp"

namespace isohalo {

namespace {

constexpr int kDimensions = 2;  // every kind of solver has them

/// The keys that a run with these kinds asks for, in its order.
std::vector<KeyHelp> keys_of(const SolverKinds& kinds, const std::string& solver, const std::string& initial) {
  Config config(fmt::format("[domain]\nshape = [8, 8]\n[solver]\nkind = \"{}\"\n[initial]\nkind = \"{}\"\n"
                            "[source]\nkind = \"constant\"\n",
                            solver, initial),
                "help", {});
  read_dimensions(config);
  read_input<kDimensions>(config, kinds, "INPUT", 1);
  std::vector<KeyHelp> keys = config.declared();
  for (auto& k : keys) k.value.clear();  // those of no input
  return keys;
}

std::string table_of(const std::string& path) {
  return path.substr(0, path.find('.'));
}

/// Canonical text with its numbers as a person writes them: 0.1, not 0.10000000000000001.
std::string readable(const std::string& canonical) {
  if (canonical.find('"') != std::string::npos) return canonical;
  std::string s;
  for (const char* at = canonical.c_str(); *at;) {
    char* end = nullptr;
    const double number = std::strtod(at, &end);
    const std::string token(at, static_cast<const char*>(end));
    if (token.find_first_of(".e") == std::string::npos)
      s += token.empty() ? std::string(1, *at++) : token;
    else
      s += fmt::format("{}", number);
    if (!token.empty()) at = end;
  }
  return s;
}

std::string lines_of(const KeyHelp& k) {
  std::string facts = k.type;
  if (!k.unit.empty()) facts += ", " + k.unit;
  if (!k.range.empty()) facts += "; " + k.range;
  facts += k.fallback == "required" ? "; required" : "; default " + printable(k.fallback);
  if (!k.value.empty()) facts += "; here " + printable(shortened(readable(k.value), 60));
  std::string lines = fmt::format("  {:32} {}\n", k.path, facts);
  if (!k.help.empty()) lines += fmt::format("  {:32}   {}\n", "", k.help);
  return lines;
}

class HelpText {
 public:
  /// Lists the keys of `table` under `heading`, if there are any.
  void add(const std::string& heading, const std::vector<KeyHelp>& keys, const std::string& table) {
    std::string lines;
    for (const auto& k : keys)
      if (table_of(k.path) == table) lines += lines_of(k);
    if (!lines.empty()) text_ += "\n" + heading + "\n" + lines;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// The keys that differ from their namesakes in `common`.
std::vector<KeyHelp> without(const std::vector<KeyHelp>& common, const std::vector<KeyHelp>& keys) {
  std::set<std::string> seen;
  for (const auto& k : common) seen.insert(lines_of(k));
  std::vector<KeyHelp> rest;
  for (const auto& k : keys)
    if (!seen.contains(lines_of(k))) rest.push_back(k);
  return rest;
}

template <int D>
std::vector<KeyHelp> keys_here(const SolverKinds& kinds, Config& config, const std::string& file, int ranks) {
  read_input<D>(config, kinds, file, ranks);
  return config.declared();
}

}  // namespace

std::string help_input(const SolverKinds& kinds) {
  const auto& solvers = kinds.of<kDimensions>();
  const std::string any = solvers.begin()->first;
  HelpText help;
  const auto common = keys_of(kinds, any, "constant");
  help.add("[domain]", common, "domain");
  help.add("[parallel]", common, "parallel");
  for (const auto& [kind, make] : solvers) {
    const auto keys = keys_of(kinds, kind, "constant");
    help.add("[solver] kind = \"" + kind + "\"", keys, "solver");
    help.add("[domain] of " + kind, without(common, keys), "domain");
    help.add("[source] of " + kind + ", with the keys of [initial]", keys, "source");
  }
  for (const auto& kind : initial_kinds())
    help.add("[initial] (or [initial.FIELD]) kind = \"" + kind + "\"", keys_of(kinds, any, kind), "initial");
  help.add("[run]", common, "run");
  help.add("[output]", common, "output");
  return "Keys of an input, slowest dimension first in lists, shown for two dimensions. Any of them can be given "
         "on the\n"
         "command line as key=value. With an input, only its keys are listed, and the values in force.\n" +
         help.text();
}

std::string help_input(const SolverKinds& kinds, Config& config, const std::string& file, int ranks) {
  const int dimensions = read_dimensions(config);
  const auto keys = dimensions == 1   ? keys_here<1>(kinds, config, file, ranks)
                    : dimensions == 2 ? keys_here<2>(kinds, config, file, ranks)
                    : dimensions == 3 ? keys_here<3>(kinds, config, file, ranks)
                                      : keys_here<4>(kinds, config, file, ranks);
  HelpText help;
  for (const char* table : {"domain", "parallel", "solver", "source", "initial", "run", "output"})
    help.add(fmt::format("[{}]", table), keys, table);
  return fmt::format(
             "Keys of {} with the values in force; other kinds of solvers and initial fields have others "
             "(--help-input without an input).\n",
             printable(file)) +
         help.text();
}

}  // namespace isohalo
