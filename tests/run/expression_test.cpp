/// Expressions: values bit by bit, and the errors of what is none.

#include "framework/run/expression.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "datatypes/error.hpp"

namespace isohalo {
namespace {

constexpr double kPi = std::numbers::pi;

/// At one place; the same in rows of each dimension that begin there and are longer than what is evaluated at once.
double value(const std::string& text, const std::vector<double>& x = {0.7, -1.3}, double t = 0.25) {
  const Expression e(text, static_cast<int>(x.size()));
  const auto value_at = [&](const std::vector<double>& place) {
    double v = 0;
    e.row(place, 0, std::span(place).first(1), t, &v);
    return v;
  };
  for (std::size_t j = 0; j < x.size(); ++j) {
    std::vector<double> place = x, along, row(300);
    for (std::size_t k = 0; k < row.size(); ++k) along.push_back(x[j] + 0.01 * static_cast<double>(k));
    e.row(x, static_cast<int>(j), along, t, row.data());
    for (std::size_t k = 0; k < row.size(); ++k) {
      place[j] = along[k];
      const double there = value_at(place);
      EXPECT_EQ(std::memcmp(&there, &row[k], sizeof there), 0) << text << " at place " << k << " of a row";
    }
  }
  return value_at(x);
}

/// The same bits, the sign of zero included.
void expect_bits(double a, double b, const std::string& text) {
  EXPECT_EQ(std::memcmp(&a, &b, sizeof a), 0) << text << " is " << a << ", not " << b;
}

TEST(Expression, EachOperationOnceInTheOrderOfTheText) {
  volatile double y = 0.7, x = -1.3, t = 0.25;  // not at compile time
  const std::vector<std::pair<std::string, double>> cases{
      {"1", 1},
      {" .5e1\t", 5},
      {"1e-3", 1e-3},
      {"0.1+0.2+0.3", (0.1 + 0.2) + 0.3},
      {"0.1+(0.2+0.3)", 0.1 + (0.2 + 0.3)},
      {"1-2-3", -4},
      {"12/3/2*5", 10},
      {"1+2*3^2", 19},
      {"-x^2", -(x * x)},
      {"(-x)^3", ((-x) * (-x)) * (-x)},
      {"x^5", (((x * x) * x) * x) * x},
      {"x^0", 1},
      {"x^1", x},
      {"y^0.5", std::pow(y, 0.5)},
      {"y^-2", std::pow(y, -2.0)},
      {"2^3^2", 512},
      {"2^65", std::pow(2.0, 65.0)},
      {"--+-x", -x},
      {"-0*1", -0.0},
      {"3*-x", 3 * -x},
      {"x0 - y", 0},
      {"x1 - x", 0},
      {"sin(pi*y)*exp(-t)", std::sin(kPi * y) * std::exp(-t)},
      {"cos(x)+tan(y)", std::cos(x) + std::tan(y)},
      {"log(y)-sqrt(y)", std::log(y) - std::sqrt(y)},
      {"abs(x)+tanh(x)", std::abs(x) + std::tanh(x)},
      {"floor(x)", -2},
      {"min(x, y)+10*max(x,y)", x + 10 * y},
      {"min(0, -0)", 0.0},  // the first, where neither is less
      {"x < y", 1},
      {"x>=y", 0},
      {"(1<=1)+(1>1)*2+(2 >= 2)*4", 5},
      {"1+1<2+1", 1},
  };
  for (const auto& [text, expected] : cases) expect_bits(value(text), expected, text);
}

TEST(Expression, TheLettersGoFromTheFastestDimensionOn) {
  const std::vector<double> x{2, 3, 5, 7};
  EXPECT_EQ(value("x", {2}), 2);
  EXPECT_EQ(value("10*y+x", {2, 3}), 23);
  EXPECT_EQ(value("100*z+10*y+x", {2, 3, 5}), 235);
  EXPECT_EQ(value("1000*w+100*z+10*y+x", x), 2357);
  EXPECT_EQ(value("1000*x0+100*x1+10*x2+x3", x), 2357);
}

TEST(Expression, SaysWhetherItUsesTheTime) {
  EXPECT_TRUE(Expression("x*y + t*y", 2).uses_time());
  EXPECT_FALSE(Expression("x*y", 2).uses_time());
}

/// The coordinates that each part depends on which is taken out ("x", "xy"). With these the values have the same
/// bits as before, in rows of each dimension that are longer than what is evaluated at once.
std::vector<std::string> steady_parts(const std::string& text, std::size_t most = 4) {
  const std::vector<double> x{0.7, -1.3};
  const Expression whole(text, 2);
  Expression rest = whole;
  const std::vector<Expression> parts = rest.take_steady(most);
  for (int j = 0; j < 2; ++j) {
    std::vector<double> along;
    for (int k = 0; k < 300; ++k) along.push_back(x[static_cast<std::size_t>(j)] + 0.01 * k);
    const auto row = [&](const Expression& e, const double* const* steady) {
      std::vector<double> values(along.size());
      e.row(x, j, along, 0.25, values.data(), steady);
      return values;
    };
    std::vector<std::vector<double>> kept;
    for (const Expression& part : parts) kept.push_back(row(part, nullptr));
    std::vector<const double*> steady;
    for (auto& values : kept) steady.push_back(values.data());
    const std::vector<double> before = row(whole, nullptr), after = row(rest, steady.data());
    EXPECT_EQ(std::memcmp(before.data(), after.data(), before.size() * sizeof(double)), 0) << text << ", " << j;
  }
  std::vector<std::string> names;
  for (const Expression& part : parts) {
    EXPECT_FALSE(part.uses_time()) << text;
    names.push_back(std::string(part.uses(1) ? "x" : "") + (part.uses(0) ? "y" : ""));
  }
  return names;
}

TEST(Expression, PartsThatDoNotDependOnTheTimeAreTakenOut) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(steady_parts("sin(t)*exp(-x*x)"), (Names{"x"}));
  EXPECT_EQ(steady_parts("sin(t)*exp(-((x-0.5)^2+y^2)/0.02) + y*t"), (Names{"xy"}));
  EXPECT_EQ(steady_parts("t*exp(y) - log(2+x)*t^2"), (Names{"y", "x"}));
  EXPECT_EQ(steady_parts("t*exp(y) - log(2+x)*t^2", 1), (Names{"y"}));
  EXPECT_EQ(steady_parts("max(x*(1+x^0.5), y*t)"), (Names{"x"}));
  EXPECT_EQ(steady_parts("(x+y)*t + sin(2)*t + sin(x-t) - sqrt(y)/t"), Names());  // as fast to form again
}

std::string problem(const std::string& text, int dimensions = 2) {
  try {
    const Expression e(text, dimensions);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "none";
}

TEST(Expression, ErrorsNameTheColumn) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "column 1: expected a number, a name or \"(\", found the end"},
      {"sin(pi*", "column 8: expected a number, a name or \"(\", found the end"},
      {"1 + * 2", "column 5: expected a number, a name or \"(\", found \"*\""},
      {"(1+2", "column 5: expected \")\" or an operator, found the end"},
      {"1)", "column 2: expected an operator or the end, found \")\""},
      {"2 x", "column 3: expected an operator or the end, found \"x\""},
      {"1 < 2 < 3", "column 7: expected an operator or the end, found \"<\""},
      {"min(1)", "column 6: expected \",\" and the other number of min, found \")\""},
      {"sin(1, 2)", "column 6: expected \")\" or an operator, found \",\""},
      {"sin + 1", "column 5: expected \"(\" after sin, found \"+\""},
      {"1 + sni(x)",
       "column 5: unknown name sni; did you mean sin?: in 2 dimensions there are y or x0, x or x1, t, pi"},
      {"z", "column 1: unknown name z"},
      {"x2", "column 1: unknown name x2"},
      {"1e999", "column 1: a number out of range of binary64"},
      {".", "column 1: expected a number"},
      {"1\n+2", "column 2: expected an operator or the end, found \"\\n\""},
      {"1;2", "column 2: expected an operator or the end, found \";\""},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_NE(problem(text).find(expected), std::string::npos) << text << ": " << problem(text);
}

TEST(Expression, TooLongAndTooDeepAreErrors) {
  EXPECT_EQ(problem(std::string(40000, '(')), "an expression of 40000 bytes: none is longer than 4096");
  for (const char* unit : {"(", "-", "sin(", "2^", "1+("})
    for (int times : {400, 1000}) {
      std::string text;
      for (int k = 0; k < times; ++k) text += unit;
      EXPECT_NE(problem(text).find("nested more than 100 deep"), std::string::npos) << problem(text);
    }
  std::string sum = "1";
  for (int k = 0; k < 2000; ++k) sum += "+1";
  EXPECT_EQ(value(sum), 2001);
  EXPECT_EQ(value(std::string(99, '(') + "x" + std::string(99, ')')), -1.3);
}

}  // namespace
}  // namespace isohalo
