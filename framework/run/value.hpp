#pragma once
/// A parsed input file: TOML as a tree of values that know where they stand.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace isohalo {

struct Value;
using ValueList = std::vector<Value>;
using ValueTable = std::map<std::string, Value>;

struct Value {
  std::variant<bool, std::int64_t, double, std::string, ValueList, ValueTable> data = ValueTable{};
  std::string where;       ///< "input.toml:12:3" or "command line: key=value"
  std::int64_t order = 0;  ///< position in the input, to sort errors by
  std::string written{};   ///< on the command line: the text of the value

  const char* type_name() const;
};

/// An integer, or a number without a fraction up to 2^53, such as 1e3.
std::optional<std::int64_t> as_integer(const Value& v);

/// A number or an integer.
std::optional<double> as_number(const Value& v);

/// A string, or the text of a boolean or number of the command line: there, a name such as nan needs no quotes.
std::optional<std::string> as_text(const Value& v);

/// Is it a text of the command line that was probably meant as a number, a list or a table, but is no TOML?
bool is_no_toml(const Value& v);

/// Parses TOML. Throws UsageError with file:line:column for a syntax error, for a key that is too long and for what
/// is nested too deep.
Value parse_toml(const std::string& text, const std::string& name);

/// A key that was to be removed.
struct Removal {
  std::string path, where;
  bool was_there = false;
};

/// Sets `key.path=value` (the value is TOML; what does not parse as TOML is a string), or removes the key when the
/// value is empty. Throws UsageError.
std::optional<Removal> apply_override(Value& root, const std::string& assignment);

}  // namespace isohalo
