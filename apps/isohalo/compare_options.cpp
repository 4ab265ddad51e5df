#include "apps/isohalo/compare_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "datatypes/error.hpp"

namespace isohalo {

namespace {

/// "value" or "NAME=value", for the option `name`; the value >= 0.
template <class T>
void read_limit(const std::string& name, const std::string& text, CompareOptions& options,
                std::optional<T> Tolerance::*limit) {
  const auto equals = text.rfind('=');
  const std::string number = equals == std::string::npos ? text : text.substr(equals + 1);
  T value{};
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  bool good = error == std::errc{} && end == number.data() + number.size() && !number.empty() && equals != 0;
  if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(value) && value >= 0;
  if (!good)
    throw UsageError(fmt::format("{} {}: write a number >= 0{}, or FIELD=number", name, text,
                                 std::is_integral_v<T> ? " without a fraction" : ""));
  if (equals == std::string::npos)
    options.tolerance.*limit = value;
  else
    options.fields[text.substr(0, equals)].*limit = value;
}

}  // namespace

CompareOptions compare_options(const CompareRequest& request) {
  CompareOptions options;
  options.read_data = request.read_data;
  options.ignore.insert(request.ignore.begin(), request.ignore.end());
  for (const auto& t : request.abs) read_limit("--abs", t, options, &Tolerance::abs);
  for (const auto& t : request.rel) read_limit("--rel", t, options, &Tolerance::rel);
  for (const auto& t : request.ulp) read_limit("--ulp", t, options, &Tolerance::ulp);
  for (auto& [name, t] : options.fields) {  // what a field's own limits leave open is as for all
    if (!t.abs) t.abs = options.tolerance.abs;
    if (!t.rel) t.rel = options.tolerance.rel;
    if (!t.ulp) t.ulp = options.tolerance.ulp;
  }
  return options;
}

}  // namespace isohalo
