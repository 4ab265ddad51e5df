#pragma once
/// A parsed input file: TOML as a tree of values that know where they stand.

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace isohalo {

struct Value;
using ValueList = std::vector<Value>;
using ValueTable = std::map<std::string, Value>;

struct Value {
  std::variant<bool, std::int64_t, double, std::string, ValueList, ValueTable> data = ValueTable{};
  std::string where;       ///< "deck.toml:12:3" or "command line: key=value"
  std::int64_t order = 0;  ///< position in the input, to sort errors by

  const char* type_name() const;
};

/// Parses TOML. Throws UsageError with file:line:column for a syntax error.
Value parse_toml(const std::string& text, const std::string& name);

/// Sets `key.path=value` (the value is TOML; what does not parse as TOML is a string). Throws UsageError.
void apply_override(Value& root, const std::string& assignment);

}  // namespace isohalo
