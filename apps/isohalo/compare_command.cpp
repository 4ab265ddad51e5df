#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>

#include "apps/isohalo/commands.hpp"
#include "apps/isohalo/compare_report.hpp"
#include "framework/mpi/agreement.hpp"

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

CompareOptions options_of(const CompareRequest& request) {
  CompareOptions options;
  options.read_data = request.read_data;
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

bool is_trail(const std::string& file) {
  return std::filesystem::path(file).extension() == ".txt";
}

ExitCode compare_trail_files(const Communicator& c, const CompareRequest& request) {
  if (!request.abs.empty() || !request.rel.empty() || !request.ulp.empty())
    throw UsageError("digest trails are equal or not: --abs, --rel and --ulp are for checkpoints");
  TrailComparison result;
  agreed(c, [&] { result = compare_trails(read_trail(request.a), read_trail(request.b)); });
  if (c.rank() == 0)
    fmt::print("{}", request.json ? trails_json(result, request.a, request.b) : trails_text(result));
  return result.same() ? ExitCode::fine : ExitCode::different;
}

}  // namespace

ExitCode compare_command(MPI_Comm comm, const CompareRequest& request) {
  const Communicator c = Communicator::of(comm);
  if (is_trail(request.a) && is_trail(request.b)) return compare_trail_files(c, request);
  const Comparison result = compare_checkpoints(request.a, request.b, c, options_of(request));
  if (c.rank() == 0) {
    for (const auto& line : result.warnings) fmt::print(stderr, "isohalo: warning: {}\n", line);
    fmt::print("{}", request.json ? comparison_json(result, request.a, request.b) : comparison_text(result));
  }
  return result.same() ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
