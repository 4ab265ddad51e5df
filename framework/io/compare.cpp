#include "framework/io/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "datatypes/error.hpp"
#include "framework/io/compare_parts.hpp"
#include "framework/io/field_reader.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/io/run_record.hpp"

namespace isohalo {

namespace fs = std::filesystem;

bool Comparison::same() const {
  if (!metadata.empty()) return false;
  for (const auto& f : fields)
    if (f.cells_beyond) return false;
  return true;
}

namespace {

const Tolerance& tolerance_of(const CompareOptions& options, const std::string& field) {
  const auto own = options.fields.find(field);
  return own == options.fields.end() ? options.tolerance : own->second;
}

std::int64_t bytes_of(const StoredField& f) {
  auto bytes = static_cast<std::int64_t>(type_bytes(f.type));
  for (std::int64_t n : f.shape) bytes *= n;
  return bytes;
}

bool same_statistics(const StoredField& a, const StoredField& b) {
  std::vector<std::string> lines;
  detail::compare_statistics(a, b, lines);
  return lines.empty();
}

void compare_records(const std::optional<RunRecord>& a, const std::optional<RunRecord>& b, Comparison& report) {
  if (!a || !b) return;
  const auto list = [&](const auto& x, const auto& y, bool all) {
    for (const auto& [key, value] : x) {
      const bool physics = key.rfind("domain.", 0) == 0 || key.rfind("solver.", 0) == 0 ||
                           key.rfind("initial.", 0) == 0 || key.rfind("source.", 0) == 0;  // compared already
      if (!all && physics) continue;
      const auto other = y.find(key);
      if (other != y.end() && other->second != value)
        report.ignored.push_back(fmt::format("{}: {} against {}", key, value, other->second));
    }
  };
  list(a->facts, b->facts, true);
  list(a->config, b->config, false);
}

void refuse_unknown_names(const std::set<std::string>& ignore) {
  const auto& known = metadata_names();
  for (const auto& name : ignore) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw UsageError(
        fmt::format("there is no metadata \"{}\" to ignore: name some of {}", name, fmt::join(known, ", ")));
  }
}

/// Does the first difference lie where a rank's block ends? Of interest when the runs were cut differently.
void hint_at_cuts(const std::optional<RunRecord>& a, const std::optional<RunRecord>& b, Comparison& report) {
  if (!a || !b || a->cuts == b->cuts) return;
  for (const auto& f : report.fields) {
    const auto& first = f.tolerant ? f.first_beyond : f.first;
    if (first.empty()) continue;
    const std::string at[2] = {beside_cuts(*a, first), beside_cuts(*b, first)};
    for (int k = 0; k < 2; ++k)
      if (!at[k].empty())
        report.hints.push_back(
            fmt::format("field {}: the first difference lies on a rank boundary of the {} run ({})", f.name,
                        k ? "second" : "first", at[k]));
    if (at[0].empty() && at[1].empty())
      report.hints.push_back(
          fmt::format("field {}: the first difference lies on no rank boundary of either run", f.name));
  }
}

}  // namespace

Comparison compare_checkpoints(const fs::path& a, const fs::path& b, const Communicator& comm,
                               const CompareOptions& options) {
  const H5Quiet quiet;
  refuse_unknown_names(options.ignore);
  const StoredCheckpoint ca = read_checkpoint_meta(a, comm), cb = read_checkpoint_meta(b, comm);
  Comparison c;
  c.tolerant = options.tolerance.any() || !options.fields.empty();
  const auto find = [](const StoredCheckpoint& s, const std::string& name) -> const StoredField* {
    for (const auto& f : s.fields)
      if (f.name == name) return &f;
    return nullptr;
  };
  for (const auto& [name, tolerance] : options.fields)
    if (!find(ca, name) && !find(cb, name))
      throw UsageError(fmt::format("a tolerance is given for field \"{}\", which neither file has", name));
  std::set<std::string> ignore = options.ignore;
  if (c.tolerant) ignore.insert("residual");  // it follows from the values
  detail::compare_meta(ca, cb, ignore, c);
  for (const auto& f : ca.fields) {
    const StoredField* const g = find(cb, f.name);
    if (!g || g->shape != f.shape || g->type != f.type) continue;  // already in the metadata's list
    if (f.shape.empty() || type_bytes(f.type) == 0)
      throw UsageError("field " + f.name + " is " + f.type + ": cannot be compared");
    if (!options.read_data && bytes_of(f) > kAlwaysReadBytes && same_statistics(f, *g)) {
      FieldDifference d;
      d.name = f.name;
      d.type = f.type;
      d.read = false;
      d.cells = bytes_of(f) / static_cast<std::int64_t>(type_bytes(f.type));
      d.nan_a = d.nan_b = f.nan_count;
      c.fields.push_back(d);
      continue;
    }
    c.fields.push_back(detail::compare_field(a, b, f, *g, tolerance_of(options, f.name), comm, c));
  }
  if (comm.rank() == 0) {  // only listed and printed there
    const auto ra = read_run_record(a), rb = read_run_record(b);
    compare_records(ra, rb, c);
    hint_at_cuts(ra, rb, c);
  }
  return c;
}

}  // namespace isohalo
