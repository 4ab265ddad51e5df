#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "apps/common/report.hpp"
#include "apps/isohalo/commands.hpp"
#include "apps/isohalo/compare_report.hpp"
#include "datatypes/printable.hpp"
#include "framework/io/readable.hpp"
#include "framework/mpi/agreement.hpp"

namespace isohalo {

namespace {

std::string index_text(const std::vector<std::int64_t>& i) {
  std::string s = "(";
  for (std::size_t j = 0; j < i.size(); ++j) s += (j ? ", " : "") + std::to_string(i[j]);
  return s + ")";
}

std::string field_line(const FieldDifference& f) {
  const std::string name = printable(f.name);
  if (!f.read)
    return fmt::format("field {}: equal digests of {} cells, data not read (--read-data reads it)\n", name,
                       f.cells);
  if (f.cells_different == 0) return fmt::format("field {}: all {} cells have the same bits\n", name, f.cells);
  std::string s =
      fmt::format("field {}: {} of {} cells differ, first at {}: {:.17g} ({:#x}) against {:.17g} ({:#x})\n", name,
                  f.cells_different, f.cells, index_text(f.first), f.value_a, f.bits_a, f.value_b, f.bits_b);
  if (!f.largest.empty())
    s += fmt::format("field {}: the largest difference is {:.17g}, at {}: {:.17g} against {:.17g}\n", name,
                     f.max_abs, index_text(f.largest), f.largest_a, f.largest_b);
  if (f.tolerant && f.cells_beyond == 0) s += fmt::format("field {}: all cells are within tolerance\n", name);
  if (f.tolerant && f.cells_beyond)
    s += fmt::format("field {}: {} of {} cells are beyond the tolerance, first at {}\n", name, f.cells_beyond,
                     f.cells, index_text(f.first_beyond));
  return s;
}

std::string table(const std::vector<FieldDifference>& fields) {
  std::string rows;
  for (const auto& f : fields)
    if (f.cells_different)
      rows += fmt::format(
          "{:12} {:8} {:>12} {:>10.3g} {:>10.3g} {:>12} {:>10.3g} {:>10.3g} {:>10.3g} {:>8} {:>8} {:>8}\n",
          printable(f.name), f.type, f.cells_different, f.max_abs, f.max_rel, f.max_ulp, f.l1, f.l2, f.max_abs,
          f.nan_a, f.nan_b, f.nan_one);
  if (rows.empty()) return "";
  return fmt::format("{:12} {:8} {:>12} {:>10} {:>10} {:>12} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8}\n", "field",
                     "type", "cells differ", "max abs", "max rel", "max ULP", "L1", "L2", "Linf", "NaN A", "NaN B",
                     "NaN one") +
         rows;
}

Json number(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}

}  // namespace

std::string comparison_text(const Comparison& c) {
  std::string s;
  for (const auto& line : c.metadata) s += "must match: " + printable(line) + "\n";
  for (const auto& line : c.ignored) s += "ignored: " + printable(line) + "\n";
  for (const auto& f : c.fields) s += field_line(f);
  s += table(c.fields);
  for (const auto& line : c.hints) s += printable(line) + "\n";
  const bool bits = c.same() && c.tolerant;
  return s + (!c.same() ? "different\n" : bits ? "same within tolerance\n" : "same\n");
}

std::string comparison_json(const Comparison& c, const std::string& a, const std::string& b) {
  Json j;
  j["a"] = a;
  j["b"] = b;
  j["same"] = c.same();
  j["must_match"] = c.metadata;
  j["ignored"] = c.ignored;
  j["warnings"] = c.warnings;
  j["hints"] = c.hints;
  j["fields"] = Json::array();
  for (const auto& f : c.fields)
    j["fields"].push_back({{"name", f.name},
                           {"type", f.type},
                           {"read", f.read},
                           {"cells", f.cells},
                           {"cells_different", f.cells_different},
                           {"cells_beyond_tolerance", f.cells_beyond},
                           {"first", f.first},
                           {"value_a", number(f.value_a)},
                           {"value_b", number(f.value_b)},
                           {"bits_a", fmt::format("{:#x}", f.bits_a)},
                           {"bits_b", fmt::format("{:#x}", f.bits_b)},
                           {"first_beyond_tolerance", f.first_beyond},
                           {"max_abs", number(f.max_abs)},
                           {"max_abs_at", f.largest},
                           {"max_abs_a", number(f.largest_a)},
                           {"max_abs_b", number(f.largest_b)},
                           {"max_rel", number(f.max_rel)},
                           {"max_ulp", f.max_ulp},
                           {"l1", number(f.l1)},
                           {"l2", number(f.l2)},
                           {"linf", number(f.max_abs)},
                           {"nan_a", f.nan_a},
                           {"nan_b", f.nan_b},
                           {"nan_one", f.nan_one}});
  return json_text(j);
}

std::string digest_logs_text(const DigestLogComparison& c) {
  std::string s =
      fmt::format("{} common steps, {} only in the first, {} only in the second\n", c.common, c.only_a, c.only_b);
  if (c.same()) return s + "same\n";
  s += c.last_equal ? fmt::format("equal up to step {}\n", *c.last_equal) : std::string("no step is equal\n");
  for (const auto& [name, text] : c.different)
    s += fmt::format("first difference at step {}: {} {}\n", *c.first, printable(name), printable(text));
  return s + "different\n";
}

std::string digest_logs_json(const DigestLogComparison& c, const std::string& a, const std::string& b) {
  Json j;
  j["a"] = a;
  j["b"] = b;
  j["same"] = c.same();
  j["common_steps"] = c.common;
  j["only_a"] = c.only_a;
  j["only_b"] = c.only_b;
  j["first_different_step"] = c.first ? Json(*c.first) : Json();
  j["last_equal_step"] = c.last_equal ? Json(*c.last_equal) : Json();
  j["different"] = c.different;
  return json_text(j);
}

namespace {

bool is_digest_log(const std::string& file) {
  return std::filesystem::path(file).extension() == ".txt";
}

ExitCode compare_log_files(const Communicator& c, const CompareRequest& request) {
  if (!request.abs.empty() || !request.rel.empty() || !request.ulp.empty() || !request.ignore.empty())
    throw UsageError("digest logs are equal or not: --abs, --rel, --ulp and --ignore are for checkpoints");
  DigestLogComparison result;
  agreed(c, [&] { result = compare_digest_logs(read_digest_log(request.a), read_digest_log(request.b)); });
  if (c.rank() == 0)
    fmt::print("{}", request.json ? digest_logs_json(result, request.a, request.b) : digest_logs_text(result));
  return result.same() ? ExitCode::fine : ExitCode::different;
}

}  // namespace

ExitCode compare_command(MPI_Comm comm, const CompareRequest& request) {
  const Communicator c = Communicator::of(comm);
  if (is_digest_log(request.a) && is_digest_log(request.b)) return compare_log_files(c, request);
  const Comparison result =
      compare_checkpoints(pinned(request.a, c), pinned(request.b, c), c, compare_options(request));
  if (c.rank() == 0) {
    for (const auto& line : result.warnings) fmt::print(stderr, "isohalo: warning: {}\n", printable(line));
    fmt::print("{}", request.json ? comparison_json(result, request.a, request.b) : comparison_text(result));
  }
  return result.same() ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
