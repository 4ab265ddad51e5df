#pragma once
/// Declared configuration: every key is asked for with its type, unit, range, default and meaning; whatever is left
/// over is an error. All errors are reported at once, each with file:line:column.

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/run/value.hpp"

namespace isohalo {

template <class T>
struct NumericKey {
  std::optional<T> fallback{};  ///< absent: the key is required
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
  bool above_min = false;  ///< min itself is out of range
  std::string unit{}, help{};
};

struct TextKey {
  std::optional<std::string> fallback{};
  std::vector<std::string> choices{};  ///< empty: anything
  std::string help{};
};

/// A list; `length` 0 means any length from 1.
template <class T>
struct ListKey {
  std::size_t length = 0;
  std::optional<std::vector<T>> fallback{};
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
  bool above_min = false;
  std::string unit{}, help{};
};

/// One line of `--help-input`.
struct KeyHelp {
  std::string path, type, range, fallback, unit, help;
  std::string value{};  ///< in force, once the key is read; empty: none
};

class Config {
 public:
  /// `name` stands in messages. An override with an empty value removes its key. Throws UsageError for a syntax
  /// error or a malformed override.
  Config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides);

  /// Each declares the key and returns its value, or its default, or (after recording an error) some valid value,
  /// which is not in force.
  std::int64_t integer(const std::string& path, const NumericKey<std::int64_t>& key);
  double number(const std::string& path, const NumericKey<double>& key);
  bool boolean(const std::string& path, bool fallback, const std::string& help);
  std::string text(const std::string& path, const TextKey& key);
  std::vector<std::int64_t> integers(const std::string& path, const ListKey<std::int64_t>& key);
  std::vector<double> numbers(const std::string& path, const ListKey<double>& key);
  /// For keys of a shape of their own; nullptr when absent. The caller records errors and calls `set_effective`.
  const Value* node(const std::string& path, const KeyHelp& help);

  bool has(const std::string& path) const { return find(path) != nullptr; }
  bool has_table(const std::string& path) const;
  /// A key that is either the word "auto" or something else: true when absent or "auto" (then it is declared and
  /// done).
  bool is_auto(const std::string& path, const KeyHelp& help);

  void error(const std::string& path, const std::string& text);
  void error_at(const Value& value, const std::string& text);
  /// `path` ("": the whole input) and what is below it, but for tables unless they are excused as well, is not
  /// called unknown: what it may be depends on a value that was wrong. What looks like a required key that is
  /// missing is.
  void excuse(const std::string& path, bool tables = true) { excused_[path] = tables; }
  /// Entries of the list at `path`; 0 when there is none.
  std::size_t list_length(const std::string& path) const;
  /// From now on `list` stands at `path`: what was wrong there is recorded, and other keys are read against it.
  void settle(const std::string& path, const std::vector<std::int64_t>& list);
  bool has_errors() const { return !errors_.empty(); }
  std::size_t error_count() const { return errors_.size(); }
  /// Adds unknown keys to the errors and throws UsageError with them, in the order of the input, if there are any:
  /// the first hundred.
  void finish();

  /// Canonical text of a value: %.17g, quoted strings, [lists].
  static std::string canonical(std::int64_t v);
  static std::string canonical(double v);
  static std::string canonical(const std::string& v);
  static std::string canonical(std::same_as<bool> auto v) { return v ? "true" : "false"; }
  template <class T>
  static std::string canonical(const std::vector<T>& list) {
    std::string s = "[";
    for (std::size_t k = 0; k < list.size(); ++k) s += (k ? ", " : "") + canonical(list[k]);
    return s + "]";
  }

  void set_effective(const std::string& path, const std::string& canonical_text);
  void drop_effective(const std::string& path);
  /// The keys of the table `from` are called those of `to` in the canonical text.
  /// A key of `to` may be removed as well as one of `from`.
  void rename_effective(const std::string& from, const std::string& to);
  /// The values in force, defaults included, as canonical text by key.
  const std::map<std::string, std::string>& effective() const { return effective_; }
  /// Every key asked for so far, in that order.
  const std::vector<KeyHelp>& declared() const { return declared_; }

 private:
  struct Problem {
    std::int64_t order;
    std::string text;
    std::string missing{};  ///< the required key that is not there
  };
  const Value* find(const std::string& path) const;
  void declare(KeyHelp help);
  void type_error(const std::string& path, const Value& v, const std::string& expected);
  void find_unknown(const Value& table, const std::string& prefix);
  bool is_key(const std::string& path) const;
  bool is_table(const std::string& path) const;
  bool is_excused(const std::string& path, bool table) const;
  std::string unknown(const std::string& path, bool table);
  std::string unknown_removal(const std::string& path);
  std::string as_written(const std::string& path) const;
  bool is_misspelt_required(const std::string& path) const;
  std::string nearest_key(const std::string& path) const;
  std::string nearest_table(const std::string& path, bool key) const;
  std::vector<std::string> tables() const;
  template <class T, class Key>
  std::optional<T> number_in(const Value& v, const std::string& path, const Key& key, bool entry);
  template <class T, class Read>
  T value(KeyHelp help, const std::optional<T>& fallback, const T& valid, const Read& read);
  template <class T>
  T scalar(const std::string& path, const char* type, const NumericKey<T>& key);
  template <class T>
  std::vector<T> list(const std::string& path, const ListKey<T>& key, const char* what);

  std::string name_;
  Value root_;
  std::map<std::string, Value> settled_;
  std::vector<KeyHelp> declared_;
  std::map<std::string, std::string> effective_;
  std::vector<Problem> errors_;
  std::map<std::string, bool> excused_;             // with their tables?
  std::map<std::string, std::string> other_names_;  // of tables: that of the canonical text, that of the input
  std::vector<Removal> removals_;
  std::vector<std::string> meant_;  // keys and tables that stand in the suggestions
};

}  // namespace isohalo
