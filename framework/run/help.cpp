#include "framework/run/help.hpp"

#include <fmt/format.h>

#include <algorithm>
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
  Config config(
      fmt::format("[domain]\nshape = [8, 8]\n[solver]\nkind = \"{}\"\n[initial]\nkind = \"{}\"\n", solver, initial),
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

/// Keys under one heading.
struct Section {
  std::string heading;
  std::vector<KeyHelp> keys;
};

std::vector<KeyHelp> keys_in(const std::string& table, std::vector<KeyHelp> keys) {
  std::erase_if(keys, [&](const KeyHelp& k) { return table_of(k.path) != table; });
  return keys;
}

/// The keys that differ from their namesakes in `common`.
std::vector<KeyHelp> without(const std::vector<KeyHelp>& common, const std::vector<KeyHelp>& keys) {
  std::set<std::string> seen;
  for (const auto& k : common) seen.insert(lines_of(k));
  std::vector<KeyHelp> rest;
  for (const auto& k : keys)
    if (!seen.contains(lines_of(k))) rest.push_back(k);
  return rest;
}

using KeysByKind = std::vector<std::pair<std::string, std::vector<KeyHelp>>>;

/// What all kinds have in a table, then what each has besides.
void add_kinds(std::vector<Section>& sections, const std::string& table, const std::string& heading,
               const KeysByKind& kinds) {
  std::vector<KeyHelp> common = kinds.front().second;
  for (const auto& [kind, keys] : kinds) common = without(without(keys, common), common);
  sections.push_back({heading, keys_in(table, common)});
  for (const auto& [kind, keys] : kinds)
    sections.push_back({fmt::format("[{}] kind = \"{}\"", table, kind), keys_in(table, without(common, keys))});
}

/// All keys there are.
std::vector<Section> sections_of(const SolverKinds& kinds) {
  KeysByKind solvers, initials;
  for (const auto& [kind, make] : kinds.of<kDimensions>())
    solvers.push_back({kind, keys_of(kinds, kind, "constant")});
  // Of one field: those of several have the keys of [initial] once for each.
  const auto& [simple, common] = *std::find_if(solvers.begin(), solvers.end(), [](const auto& s) {
    return std::any_of(s.second.begin(), s.second.end(), [](const KeyHelp& k) { return k.path == "initial.kind"; });
  });
  for (const auto& kind : initial_kinds()) initials.push_back({kind, keys_of(kinds, simple, kind)});
  std::vector<Section> sections{{"[domain]", keys_in("domain", common)}};
  for (const auto& [kind, keys] : solvers)
    sections.push_back({"[domain] of solver.kind = \"" + kind + "\"", keys_in("domain", without(common, keys))});
  add_kinds(sections, "solver", "[solver]", solvers);
  add_kinds(sections, "initial", "[initial] or [initial.FIELD]", initials);
  for (const auto& [kind, keys] : solvers)
    if (auto source = keys_in("source", keys); !source.empty()) {
      std::erase_if(source,
                    [](const KeyHelp& k) { return !k.path.ends_with(".kind"); });  // the others: of [initial]
      sections.push_back({"[source] of solver.kind = \"" + kind + "\"", source});
    }
  for (const char* table : {"run", "output", "parallel"})
    sections.push_back({fmt::format("[{}]", table), keys_in(table, common)});
  std::erase_if(sections, [](const Section& s) { return s.keys.empty(); });
  return sections;
}

std::string text_of(const std::vector<Section>& sections) {
  std::string text;
  for (const auto& s : sections) {
    text += "\n" + s.heading + "\n";
    for (const auto& k : s.keys) text += lines_of(k);
  }
  return text;
}

/// As the cell of a table in Markdown.
std::string cell_of(const std::string& text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

std::string row_of(const KeyHelp& k) {
  const std::string fallback = k.fallback == "required" ? k.fallback : "`" + k.fallback + "`";
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", k.path, k.type + (k.unit.empty() ? "" : ", " + k.unit),
                     cell_of(k.range), fallback, cell_of(k.help));
}

}  // namespace

std::string help_input(const SolverKinds& kinds) {
  return "Keys of an input file, slowest dimension first in lists, shown for two dimensions. Any of them can be "
         "given on\n"
         "the command line as key=value. With an input file, only its keys are listed, and the values in force.\n" +
         text_of(sections_of(kinds));
}

std::string help_input_markdown(const SolverKinds& kinds) {
  std::string text;
  for (const auto& s : sections_of(kinds)) {
    text += fmt::format(
        "{}### {}\n\n| key | type, unit | range | default | meaning |\n| --- | --- | --- | --- | --- |\n",
        text.empty() ? "" : "\n", s.heading);
    for (const auto& k : s.keys) text += row_of(k);
  }
  return text;
}

std::string help_input(const SolverKinds& kinds, Config& config, const std::string& file, int ranks) {
  with_dimensions(config, [&](auto d) { read_input<d()>(config, kinds, file, ranks); });
  std::vector<Section> sections;
  for (const char* table : {"domain", "solver", "initial", "source", "run", "output", "parallel"})
    if (auto these = keys_in(table, config.declared()); !these.empty())
      sections.push_back({fmt::format("[{}]", table), these});
  return fmt::format(
             "Keys of {} with the values in force; other kinds of solvers and initial fields have others "
             "(--help-input without an input file).\n",
             printable(file)) +
         text_of(sections);
}

}  // namespace isohalo
