#include "framework/run/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <numbers>

#include "datatypes/error.hpp"
#include "datatypes/printable.hpp"
#include "framework/run/words.hpp"

namespace isohalo {

namespace {

/// f at `n` places; an operand that does not vary has one value.
template <class F>
void each(const F& f, const double* a, bool a_varies, const double* b, bool b_varies, std::size_t n, double* v) {
  if (!a_varies && !b_varies)
    v[0] = f(a[0], b[0]);
  else if (!b_varies)
    for (std::size_t i = 0; i < n; ++i) v[i] = f(a[i], b[0]);
  else if (!a_varies)
    for (std::size_t i = 0; i < n; ++i) v[i] = f(a[0], b[i]);
  else
    for (std::size_t i = 0; i < n; ++i) v[i] = f(a[i], b[i]);
}

template <class F>
auto rows(F) {
  return +[](const double* a, bool a_varies, const double* b, bool b_varies, std::size_t n, double* v) {
    each(F{}, a, a_varies, b, b_varies, n, v);
  };
}

/// a multiplied by itself, as many factors as the one value of b says.
void whole_power(const double* a, bool a_varies, const double* b, bool, std::size_t n, double* v) {
  const auto power = [factors = static_cast<int>(b[0])](double x, double) {
    double product = factors == 0 ? 1 : x;
    for (int k = 1; k < factors; ++k) product = product * x;
    return product;
  };
  each(power, a, a_varies, a, a_varies, n, v);
}

}  // namespace

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
  using Kind = Expression::Kind;
  using Node = Expression::Node;
  using Row = Expression::Row;

  struct Function {
    const char* name;
    int arguments;
    Row row;
    bool slow;  ///< takes longer than to read a value from memory
  };
  static inline const std::array<Function, 11> kFunctions{
      {{"sin", 1, rows([](double a, double) { return std::sin(a); }), true},
       {"cos", 1, rows([](double a, double) { return std::cos(a); }), true},
       {"tan", 1, rows([](double a, double) { return std::tan(a); }), true},
       {"exp", 1, rows([](double a, double) { return std::exp(a); }), true},
       {"log", 1, rows([](double a, double) { return std::log(a); }), true},
       {"sqrt", 1, rows([](double a, double) { return std::sqrt(a); }), false},
       {"abs", 1, rows([](double a, double) { return std::abs(a); }), false},
       {"tanh", 1, rows([](double a, double) { return std::tanh(a); }), true},
       {"floor", 1, rows([](double a, double) { return std::floor(a); }), false},
       {"min", 2, rows([](double a, double b) { return b < a ? b : a; }), false},
       {"max", 2, rows([](double a, double b) { return a < b ? b : a; }), false}}};

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
  template <class F>
  int add(F operation, int a, int b) {
    return add(rows(operation), a, b);
  }
  int add(Row row, int a, int b, bool slow = false) {
    const Node &first = e_.nodes_[static_cast<std::size_t>(a)], &second = e_.nodes_[static_cast<std::size_t>(b)];
    return add({Kind::operation, static_cast<std::uint8_t>(first.reads | second.reads), a, b, 0, row,
                slow || first.slow || second.slow});
  }

  int whole() {
    const int left = sum();
    if (take("<=")) return add([](double a, double b) { return a <= b ? 1.0 : 0.0; }, left, sum());
    if (take(">=")) return add([](double a, double b) { return a >= b ? 1.0 : 0.0; }, left, sum());
    if (take("<")) return add([](double a, double b) { return a < b ? 1.0 : 0.0; }, left, sum());
    if (take(">")) return add([](double a, double b) { return a > b ? 1.0 : 0.0; }, left, sum());
    return left;
  }
  int sum() {
    int left = product();
    for (;;)
      if (take("+"))
        left = add(std::plus<double>(), left, product());
      else if (take("-"))
        left = add(std::minus<double>(), left, product());
      else
        return left;
  }
  int product() {
    int left = with_sign();
    for (;;)
      if (take("*"))
        left = add(std::multiplies<double>(), left, with_sign());
      else if (take("/"))
        left = add(std::divides<double>(), left, with_sign());
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
      value = add([](double x, double) { return -x; }, a, a);
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
    if (e.kind == Kind::number && e.value >= 0 && e.value <= 64 && e.value == std::floor(e.value))
      return add(whole_power, base, exponent);
    return add(rows([](double a, double b) { return std::pow(a, b); }), base, exponent, true);
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
    return add({Kind::number, 0, 0, 0, value});
  }

  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

  int name() {
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || (text_[at_] >= '0' && text_[at_] <= '9'))) ++at_;
    const std::string word = text_.substr(start, at_ - start);
    for (const Function& f : kFunctions)
      if (word == f.name) return call(f);
    if (word == "pi") return add({Kind::number, 0, 0, 0, std::numbers::pi});
    if (word == "t") return add({Kind::time, 1u << Expression::kTimeBit, 0, 0, 0});
    for (int j = 0; j < dimensions_; ++j)
      if (word == fmt::format("x{}", j) || word == letter(j))
        return add({Kind::coordinate, static_cast<std::uint8_t>(1u << j), j, 0, 0});
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
    return add(f.row, a, b, f.slow);
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

std::vector<Expression> Expression::take_steady(std::size_t most) {
  std::vector<Expression> parts;
  std::vector<Node> rest;
  const auto node = [&](int k) -> const Node& { return nodes_[static_cast<std::size_t>(k)]; };
  // Copies the node at k to the end of `to`, its operands first; returns its place there.
  const auto copy = [&](const auto& self, int k, std::vector<Node>& to) -> int {
    Node n = node(k);
    if (&to == &rest && n.slow && n.reads != 0 && (n.reads >> kTimeBit) == 0 && parts.size() < most) {
      Expression part;
      self(self, k, part.nodes_);
      n = {Kind::steady, n.reads, static_cast<int>(parts.size()), 0};
      parts.push_back(std::move(part));
    } else if (n.kind == Kind::operation) {
      const bool one = n.a == n.b;
      n.a = self(self, n.a, to);
      n.b = one ? n.a : self(self, n.b, to);
    }
    to.push_back(n);
    return static_cast<int>(to.size()) - 1;
  };
  copy(copy, static_cast<int>(nodes_.size()) - 1, rest);
  nodes_ = std::move(rest);
  return parts;
}

void Expression::row(std::span<const double> x, int j, std::span<const double> along, double time, double* values,
                     const double* const* steady) const {
  constexpr std::size_t kBlock = 128;  // one operation for so many places, then the next one
  static thread_local std::vector<double> all;
  all.resize(nodes_.size() * kBlock);
  // Of what is the same along the row there is one value, formed with the first block.
  const auto varies = [&](std::size_t k) { return (nodes_[k].reads >> j & 1) != 0; };
  for (std::size_t first = 0; first < along.size(); first += kBlock) {
    const std::size_t n = std::min(kBlock, along.size() - first);
    const auto at = [&](std::size_t k) -> const double* {
      if (nodes_[k].kind != Kind::steady) return all.data() + k * kBlock;
      return steady[nodes_[k].a] + (varies(k) ? first : 0);
    };
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      const Node& node = nodes_[k];
      double* const v = all.data() + k * kBlock;
      if (node.kind == Kind::steady || (!varies(k) && first > 0)) continue;
      if (node.kind == Kind::operation) {
        const auto a = static_cast<std::size_t>(node.a), b = static_cast<std::size_t>(node.b);
        node.row(at(a), varies(a), at(b), varies(b), n, v);
      } else if (varies(k)) {
        std::copy_n(along.data() + first, n, v);
      } else {
        v[0] = node.kind == Kind::number ? node.value
               : node.kind == Kind::time ? time
                                         : x[static_cast<std::size_t>(node.a)];
      }
    }
    const double* const whole = at(nodes_.size() - 1);
    for (std::size_t i = 0; i < n; ++i) values[first + i] = varies(nodes_.size() - 1) ? whole[i] : whole[0];
  }
}

}  // namespace isohalo
