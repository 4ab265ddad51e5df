/// Algorithms by name, and their schedules.

#include <charconv>

#include "datatypes/error.hpp"
#include "framework/shm/node_cost.hpp"

namespace isohalo {

namespace {

using Kind = NodeAlgorithm::Kind;
constexpr std::pair<Kind, const char*> kNames[] = {{Kind::flat, "flat"},
                                                   {Kind::tree, "tree"},
                                                   {Kind::dissemination, "dissemination"},
                                                   {Kind::tiled, "tiled"},
                                                   {Kind::cyclic, "cyclic"}};

/// Takes "MARK7" off the end of a text.
bool take_number(std::string& text, char mark, int least, int& number) {
  const auto at = text.rfind(mark);
  if (at == std::string::npos) return true;
  const char *const begin = text.data() + at + 1, *const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(begin, end, number);
  if (error != std::errc{} || after != end || number < least) return false;
  text.resize(at);
  return true;
}

}  // namespace

std::string NodeAlgorithm::text() const {
  std::string t;
  for (const auto& [k, name] : kNames)
    if (k == kind) t = name;
  if (arity != 2) t += "-" + std::to_string(arity);
  if (two_stages) t += "+2";
  if (level > 0) t += "@" + std::to_string(level);
  return t;
}

NodeAlgorithm NodeAlgorithm::of_text(const std::string& text) {
  NodeAlgorithm a;
  std::string rest = text;
  int stages = 1;
  const bool good = take_number(rest, '@', 1, a.level) && take_number(rest, '+', 2, stages) && stages <= 2 &&
                    take_number(rest, '-', 2, a.arity);
  a.two_stages = stages == 2;
  for (const auto& [kind, name] : kNames)
    if (good && rest == name && (a.arity == 2 || kind < Kind::dissemination || kind == Kind::tiled)) {
      a.kind = kind;
      return a;
    }
  throw UsageError("there is no algorithm \"" + text +
                   "\": there are flat, tree, tiled, dissemination and cyclic, the first three with -ARITY, with "
                   "+2 (stages) and @LEVEL");
}

std::vector<NodeAlgorithm> reduction_algorithms(const Hierarchy& h, int root) {
  std::vector<NodeAlgorithm> all{{}, {.kind = Kind::tree}, {.kind = Kind::tiled}};
  if (root < 0 && h.ranks() > 2) all.push_back({.kind = Kind::dissemination});
  for (int level = 1; level < h.levels(); ++level) {
    all.push_back({.kind = Kind::tiled, .level = level});
    if (root >= 0) continue;
    all.push_back({.kind = Kind::tree, .level = level, .two_stages = true});
    all.push_back({.kind = Kind::tiled, .level = level, .two_stages = true});
  }
  return all;
}

std::vector<NodeAlgorithm> broadcast_algorithms(const Hierarchy& h) {
  std::vector<NodeAlgorithm> all{{}};
  for (int level = 1; level < h.levels(); ++level) all.push_back({.level = level, .two_stages = true});
  for (int arity = 2; arity < h.ranks() - 1; arity *= 2) all.push_back({.kind = Kind::tree, .arity = arity});
  return all;
}

NodeSchedule reduction_schedule(const NodeAlgorithm& a, const Hierarchy& h, int root) {
  if (a.level >= h.levels())
    throw UsageError("algorithm " + a.text() + ": the hierarchy " + h.text() + " has " +
                     std::to_string(h.levels() - 1) + " levels of groups");
  const CombiningTree tree(h, a.arity);
  const Spreading spreading{a.two_stages ? a.level : 0};
  switch (a.kind) {
    case Kind::flat:
      return flat_reduction(tree, root);
    case Kind::tree:
      return tree_reduction(tree, h, root, spreading);
    case Kind::dissemination:
      if (root >= 0 || a.arity != 2)
        throw UsageError("algorithm " + a.text() + " is for allreduce, with two ranks meeting at a time");
      return dissemination(tree, h);
    case Kind::tiled:
      return tiled_reduction(tree, h, a.level, root, spreading);
    case Kind::cyclic:
      break;
  }
  const Hierarchy one(h.ranks());  // group, whose vectors are joined one after the other
  return tiled_reduction(CombiningTree(one, h.ranks()), one, 0, root, {}, true);
}

NodeSchedule broadcast_schedule(const NodeAlgorithm& a, const Hierarchy& h, int root) {
  if (a.kind == Kind::tree) return spread_along_tree(h.ranks(), root, a.arity);
  return spread_vector(h, root, {a.two_stages ? a.level : 0});
}

}  // namespace isohalo
