#include "framework/run/help.hpp"

#include <fmt/format.h>

#include <set>

#include "framework/run/initial.hpp"
#include "framework/run/settings.hpp"

namespace isohalo {

namespace {

constexpr int kDimensions = 2;  // every kind of solver has them

/// The keys that a run with these kinds asks for, in its order.
std::vector<KeyHelp> keys_of(const SolverKinds& kinds, const std::string& solver, const std::string& initial) {
  Config config(fmt::format("[domain]\nshape = [8, 8]\n[solver]\nkind = \"{}\"\n[initial]\nkind = \"{}\"\n"
                            "[source]\nkind = \"constant\"\n",
                            solver, initial),
                "help", {});
  std::vector<std::string> names;
  for (const auto& [name, make] : kinds.of<kDimensions>()) names.push_back(name);
  const auto types = read_types(kinds, solver);
  read_dimensions(config);
  const auto grid = read_grid<kDimensions>(config, types);
  config.text("solver.kind", {{}, names, "the equation"});
  const auto model = kinds.of<kDimensions>().at(solver)(config, grid);
  InitialField<kDimensions>::read(config, grid, "u", true, {});
  if (model->has_source()) InitialField<kDimensions>::read_source(config, grid, {});
  read_run(config);
  read_output(config, "DECKNAME", model->field_names());
  read_parallel<kDimensions>(config, 1);
  return config.declared();
}

std::string table_of(const std::string& path) {
  return path.substr(0, path.find('.'));
}

class HelpText {
 public:
  /// Lists the keys of `table` that were not listed before in this form, under `heading` if there is any.
  void add(const std::string& heading, const std::vector<KeyHelp>& keys, const std::string& table) {
    std::string lines;
    for (const auto& k : keys) {
      if (table_of(k.path) != table ||
          !seen_.insert(k.path + "\n" + k.range + "\n" + k.fallback + "\n" + k.help).second)
        continue;
      std::string facts = k.type;
      if (!k.unit.empty()) facts += ", " + k.unit;
      if (!k.range.empty()) facts += "; " + k.range;
      facts += k.fallback == "required" ? "; required" : "; default " + k.fallback;
      lines += fmt::format("  {:32} {}\n", k.path, facts);
      if (!k.help.empty()) lines += fmt::format("  {:32}   {}\n", "", k.help);
    }
    if (!lines.empty()) text_ += "\n" + heading + "\n" + lines;
  }
  const std::string& text() const { return text_; }

 private:
  std::set<std::string> seen_;
  std::string text_;
};

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
    help.add("[domain] of " + kind, keys, "domain");
    help.add("[source] of " + kind + ", with the keys of [initial]", keys, "source");
  }
  for (const auto& kind : initial_kinds())
    help.add("[initial] (or [initial.FIELD]) kind = \"" + kind + "\"", keys_of(kinds, any, kind), "initial");
  help.add("[run]", common, "run");
  help.add("[output]", common, "output");
  return "Keys of an input, slowest dimension first in lists, shown for two dimensions. Any of them can be given "
         "on the\n"
         "command line as key=value.\n" +
         help.text();
}

}  // namespace isohalo
