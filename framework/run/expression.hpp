#pragma once
/// Values given as text, "sin(pi*y)*exp(-t)": a function of the coordinates and of the time (docs/model.md,
/// "Expressions"). Local; no MPI.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace isohalo {

/// An expression that was read and checked. Immutable.
class Expression {
 public:
  static constexpr std::size_t kLongest = 4096;  ///< bytes of text
  static constexpr int kDeepest = 100;           ///< levels of parentheses, signs and powers

  /// Of `dimensions` coordinates. Throws UsageError, which names the column (the first is 1) and what was expected
  /// there.
  Expression(const std::string& text, int dimensions);

  const std::string& text() const { return text_; }
  bool uses_time() const { return reads(kTimeBit); }
  /// Does the value depend on coordinate j?
  bool uses(int j) const { return reads(j); }
  /// The values at as many places as `along` has, which are the coordinates of dimension j; the others are those of
  /// `x`, dimension 0 first, whose entry j does not matter. Each operation in binary64, in the order of the text.
  /// Of each part that was taken out (`take_steady`) `steady` has the values at these places, of one that does not
  /// depend on coordinate j one value. Several threads may call it at once.
  void row(std::span<const double> x, int j, std::span<const double> along, double time, double* values,
           const double* const* steady = nullptr) const;
  /// Takes out of it what is worth keeping from one time to the next: parts that depend on places alone, with a
  /// function that takes longer than reading its value; at most so many. They have no text.
  std::vector<Expression> take_steady(std::size_t most);

 private:
  friend class ExpressionParser;

  /// Values of an operation for `n` places, from those of its operands; an operand that does not vary has one.
  using Row = void (*)(const double* a, bool a_varies, const double* b, bool b_varies, std::size_t n, double* v);
  enum class Kind : std::uint8_t { number, coordinate, time, operation, steady };
  /// `a` and `b` are the places of an operation's operands among the nodes; of a coordinate or a part that was
  /// taken out `a` is its number.
  struct Node {
    Kind kind = Kind::number;
    std::uint8_t reads = 0;  ///< bit j: the value depends on coordinate j; bit kTimeBit: on the time
    int a = 0, b = 0;
    double value = 0;   ///< of a number
    Row row = nullptr;  ///< of an operation
    bool slow = false;  ///< it or an operand is such a function
  };
  static constexpr int kTimeBit = 4;

  Expression() = default;
  bool reads(int bit) const { return (nodes_.back().reads >> bit & 1) != 0; }

  std::string text_;
  std::vector<Node> nodes_;  ///< operands before what uses them; the last one is the whole
};

}  // namespace isohalo
