#include "framework/run/expression.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>

#include "datatypes/error.hpp"
#include "datatypes/printable.hpp"
#include "framework/run/words.hpp"

namespace isohalo {

/// Recursive descent:
///
///   whole   = sum [("<" | "<=" | ">" | ">=") sum]
///   sum     = product {("+" | "-") product}
///   product = signed {("*" | "/") signed}
///   signed  = ("-" | "+") signed | power
///   power   = operand ["^" signed]
///   operand = number | name | function "(" whole {"," whole} ")" | "(" whole ")"
class ExpressionParser {
 public:
  ExpressionParser(Expression& e, int dimensions) : e_(e), text_(e.text_), dimensions_(dimensions) {}

  void run() {
    if (text_.size() > Expression::kLongest)
      throw UsageError(
          fmt::format("an expression of {} bytes: none is longer than {}", text_.size(), Expression::kLongest));
    whole();
    skip_spaces();
    if (at_ < text_.size()) fail("an operator or the end");
  }

 private:
  using Op = Expression::Op;
  using Node = Expression::Node;

  struct Function {
    const char* name;
    Op op;
    int arguments;
  };
  static constexpr std::array<Function, 11> kFunctions{{{"sin", Op::sin, 1},
                                                        {"cos", Op::cos, 1},
                                                        {"tan", Op::tan, 1},
                                                        {"exp", Op::exp, 1},
                                                        {"log", Op::log, 1},
                                                        {"sqrt", Op::sqrt, 1},
                                                        {"abs", Op::abs, 1},
                                                        {"tanh", Op::tanh, 1},
                                                        {"floor", Op::floor, 1},
                                                        {"min", Op::min, 2},
                                                        {"max", Op::max, 2}}};

  [[noreturn]] void fail_at(std::size_t column, const std::string& problem) const {
    throw UsageError(fmt::format("\"{}\", column {}: {}", printable(shortened(text_, 60)), column + 1, problem));
  }
  [[noreturn]] void fail(const std::string& expected) const {
    const std::string found =
        at_ < text_.size() ? "\"" + printable(text_.substr(at_, 1)) + "\"" : std::string("the end");
    fail_at(at_, fmt::format("expected {}, found {}", expected, found));
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  /// Is it the next word? Then goes behind it.
  bool take(std::string_view word) {
    skip_spaces();
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }

  /// Returns the place of the new operation.
  int add(Node n) {
    e_.nodes_.push_back(n);
    return static_cast<int>(e_.nodes_.size()) - 1;
  }
  std::uint8_t reads(int k) const { return e_.nodes_[static_cast<std::size_t>(k)].reads; }
  int add(Op op, int a, int b) { return add({op, static_cast<std::uint8_t>(reads(a) | reads(b)), a, b, 0}); }

  int whole() {
    const int left = sum();
    for (const auto& [word, op] : {std::pair{"<=", Op::less_equal}, std::pair{">=", Op::greater_equal},
                                   std::pair{"<", Op::less}, std::pair{">", Op::greater}})
      if (take(word)) return add(op, left, sum());
    return left;
  }
  int sum() {
    int left = product();
    for (;;)
      if (take("+"))
        left = add(Op::add, left, product());
      else if (take("-"))
        left = add(Op::subtract, left, product());
      else
        return left;
  }
  int product() {
    int left = with_sign();
    for (;;)
      if (take("*"))
        left = add(Op::multiply, left, with_sign());
      else if (take("/"))
        left = add(Op::divide, left, with_sign());
      else
        return left;
  }
  /// Everything that is nested comes by here.
  int with_sign() {
    skip_spaces();
    if (++depth_ > Expression::kDeepest)
      fail_at(at_, fmt::format("nested more than {} deep", Expression::kDeepest));
    int value = 0;
    if (take("-")) {
      const int a = with_sign();
      value = add(Op::negative, a, a);
    } else {
      value = take("+") ? with_sign() : power();
    }
    --depth_;
    return value;
  }
  int power() {
    const int base = operand();
    if (!take("^")) return base;
    const int exponent = with_sign();
    const Node e = e_.nodes_[static_cast<std::size_t>(exponent)];
    if (e.op != Op::number || !(e.value >= 0 && e.value <= 64) || e.value != std::floor(e.value))
      return add(Op::power, base, exponent);
    return add({Op::whole_power, reads(base), base, static_cast<int>(e.value), 0});
  }
  int operand() {
    skip_spaces();
    if (take("(")) {
      const int inner = whole();
      if (!take(")")) fail("\")\" or an operator");
      return inner;
    }
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if ((c >= '0' && c <= '9') || c == '.') return number();
    if (is_letter(c)) return name();
    fail("a number, a name or \"(\"");
  }

  int number() {
    double value = 0;
    const auto [next, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::invalid_argument) fail("a number");
    if (error != std::errc{}) fail_at(at_, "a number out of range of binary64");
    at_ = static_cast<std::size_t>(next - text_.data());
    return add({Op::number, 0, 0, 0, value});
  }

  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

  int name() {
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || (text_[at_] >= '0' && text_[at_] <= '9'))) ++at_;
    const std::string word = text_.substr(start, at_ - start);
    for (const Function& f : kFunctions)
      if (word == f.name) return call(f);
    if (word == "pi") return add({Op::number, 0, 0, 0, std::numbers::pi});
    if (word == "t") return add({Op::time, 1u << Expression::kTimeBit, 0, 0, 0});
    for (int j = 0; j < dimensions_; ++j)
      if (word == fmt::format("x{}", j) || word == letter(j))
        return add({Op::coordinate, static_cast<std::uint8_t>(1u << j), j, 0, 0});
    unknown(start, word);
  }
  /// x is the fastest coordinate, that of the last dimension.
  std::string letter(int j) const { return std::string(1, "xyzw"[dimensions_ - 1 - j]); }

  [[noreturn]] void unknown(std::size_t start, const std::string& word) const {
    std::vector<std::string> known{"pi", "t"};
    std::string coordinates;
    for (int j = 0; j < dimensions_; ++j) {
      known.push_back(letter(j));
      coordinates += fmt::format("{} or x{}, ", letter(j), j);
    }
    for (const Function& f : kFunctions) known.emplace_back(f.name);
    std::string functions;
    for (const Function& f : kFunctions) functions += fmt::format(", {}", f.name);
    fail_at(start, fmt::format("unknown name {}{}: in {} there are {}t, pi{}", shortened(word, 40),
                               did_you_mean(word.size() > 1 ? nearest_word(word, known) : ""),
                               counted(dimensions_, "dimension"), coordinates, functions));
  }

  int call(const Function& f) {
    if (!take("(")) fail(fmt::format("\"(\" after {}", f.name));
    const int a = whole();
    if (f.arguments == 2 && !take(",")) fail(fmt::format("\",\" and the other number of {}", f.name));
    const int b = f.arguments == 2 ? whole() : a;
    if (!take(")")) fail("\")\" or an operator");
    return add(f.op, a, b);
  }

  Expression& e_;
  const std::string& text_;
  int dimensions_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

Expression::Expression(const std::string& text, int dimensions) : text_(text) {
  ExpressionParser(*this, dimensions).run();
}

bool Expression::uses_time() const {
  return (nodes_.back().reads >> kTimeBit & 1) != 0;
}

double ExpressionValue::operator()(std::span<const double> x, double time) {
  const auto differs = [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) != std::bit_cast<std::uint64_t>(b);
  };
  unsigned changed = differs(time_, time) ? 1u << Expression::kTimeBit : 0;
  time_ = time;
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (differs(x_[j], x[j])) changed |= 1u << j;
    x_[j] = x[j];
  }
  for (std::size_t k = 0; k < nodes_.size(); ++k)
    if (first_ || (nodes_[k].reads & changed)) values_[k] = value_of(nodes_[k]);
  first_ = false;
  return values_.back();
}

double ExpressionValue::value_of(const Expression::Node& n) const {
  if (n.op == Op::number) return n.value;
  if (n.op == Op::coordinate) return x_[n.a];
  if (n.op == Op::time) return time_;
  const double a = values_[static_cast<std::size_t>(n.a)];
  if (n.op == Op::whole_power) {
    double product = n.b == 0 ? 1 : a;
    for (int k = 1; k < n.b; ++k) product = product * a;
    return product;
  }
  const double b = values_[static_cast<std::size_t>(n.b)];
  switch (n.op) {
    case Op::negative:
      return -a;
    case Op::add:
      return a + b;
    case Op::subtract:
      return a - b;
    case Op::multiply:
      return a * b;
    case Op::divide:
      return a / b;
    case Op::power:
      return std::pow(a, b);
    case Op::less:
      return a < b ? 1 : 0;
    case Op::less_equal:
      return a <= b ? 1 : 0;
    case Op::greater:
      return a > b ? 1 : 0;
    case Op::greater_equal:
      return a >= b ? 1 : 0;
    case Op::sin:
      return std::sin(a);
    case Op::cos:
      return std::cos(a);
    case Op::tan:
      return std::tan(a);
    case Op::exp:
      return std::exp(a);
    case Op::log:
      return std::log(a);
    case Op::sqrt:
      return std::sqrt(a);
    case Op::abs:
      return std::abs(a);
    case Op::tanh:
      return std::tanh(a);
    case Op::floor:
      return std::floor(a);
    case Op::min:
      return b < a ? b : a;
    case Op::max:
      return a < b ? b : a;
    default:
      return std::numeric_limits<double>::quiet_NaN();  // those above
  }
}

}  // namespace isohalo
