#include "framework/run/value.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include "datatypes/error.hpp"

namespace isohalo {

const char* Value::type_name() const {
  static const char* const names[] = {"boolean", "integer", "number", "string", "list", "table"};
  return names[data.index()];
}

namespace {

/// Nesting beyond this is refused: toml++ and we recurse.
constexpr int kDeepest = 32;

Value convert(const toml::node& node, const std::string& name, int depth) {
  if (depth > kDeepest) throw UsageError(name + ": tables and lists are nested more than 32 deep");
  Value v;
  const auto& at = node.source().begin;
  v.where = fmt::format("{}:{}:{}", name, at.line, at.column);
  v.order = static_cast<std::int64_t>(at.line) << 32 | at.column;
  if (const auto* t = node.as_table()) {
    ValueTable table;
    for (const auto& [key, child] : *t) {
      Value c = convert(child, name, depth + 1);
      if (!child.is_table()) {  // a key's own place is more use than its value's
        const auto& k = key.source().begin;
        if (k.line) c.where = fmt::format("{}:{}:{}", name, k.line, k.column);
      }
      table.emplace(std::string(key.str()), std::move(c));
    }
    v.data = std::move(table);
  } else if (const auto* a = node.as_array()) {
    ValueList list;
    for (const auto& child : *a) list.push_back(convert(child, name, depth + 1));
    v.data = std::move(list);
  } else if (const auto* b = node.as_boolean()) {
    v.data = b->get();
  } else if (const auto* i = node.as_integer()) {
    v.data = i->get();
  } else if (const auto* f = node.as_floating_point()) {
    v.data = f->get();
  } else if (const auto* s = node.as_string()) {
    v.data = s->get();
  } else {
    throw UsageError(v.where + ": dates and times have no meaning in an input");
  }
  return v;
}

}  // namespace

Value parse_toml(const std::string& text, const std::string& name) {
  try {
    return convert(toml::parse(text, name), name, 0);
  } catch (const toml::parse_error& e) {
    const auto& at = e.source().begin;
    throw UsageError(fmt::format("{}:{}:{}: {}", name, at.line, at.column, e.description()));
  }
}

void apply_override(Value& root, const std::string& assignment) {
  const std::string place = "command line: " + assignment;
  const auto equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError("\"" + assignment + "\" is no override: write key.path=value");
  const std::string path = assignment.substr(0, equals), text = assignment.substr(equals + 1);
  Value value;
  try {
    Value parsed = parse_toml("v = " + text, place);
    auto& table = std::get<ValueTable>(parsed.data);
    if (table.size() != 1 || !table.contains("v")) throw UsageError("more than one value");
    value = table["v"];
  } catch (const UsageError&) {
    value.data = text;
  }
  value.where = place;
  Value* at = &root;
  std::size_t from = 0;
  for (;;) {
    const auto dot = path.find('.', from);
    const std::string key = path.substr(from, dot == std::string::npos ? dot : dot - from);
    if (key.empty()) throw UsageError(place + ": the key has an empty part");
    auto* table = std::get_if<ValueTable>(&at->data);
    if (!table) throw UsageError(place + ": \"" + path.substr(0, from - 1) + "\" is no table");
    Value& child = (*table)[key];
    if (dot == std::string::npos) {
      child = std::move(value);
      return;
    }
    if (child.where.empty()) child.where = place;
    at = &child;
    from = dot + 1;
  }
}

}  // namespace isohalo
