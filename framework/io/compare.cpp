#include "framework/io/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "datatypes/error.hpp"
#include "framework/io/compare_field.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/io/problems.hpp"
#include "framework/io/run_record.hpp"
#include "framework/io/schema.hpp"

namespace isohalo {

namespace fs = std::filesystem;

bool Comparison::same() const {
  if (!metadata.empty()) return false;
  for (const auto& f : fields)
    if (f.cells_beyond) return false;
  return true;
}

std::map<std::string, std::string> config_lines(const std::string& text) {
  std::map<std::string, std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(" = ");
    lines[line.substr(0, at)] = at == std::string::npos ? "" : line.substr(at + 3);
  }
  return lines;
}

const std::vector<std::string>& metadata_names() {
  static const std::vector<std::string> names{"boundary", "config", "grid", "random", "reduction",
                                              "residual", "roles",  "step", "time",   "units"};
  return names;
}

namespace {

using detail::same_bits;
using Lines = std::vector<std::string>;

template <class T>
bool same_bits(const T& a, const T& b) {
  return a == b;
}
bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return same_bits(x, y); });
}

template <class T>
std::string text_of(const T& v) {
  return fmt::format("{}", v);
}
std::string text_of(double v) {
  return fmt::format("{:.17g}", v);
}
std::string text_of(const std::vector<double>& v) {
  return fmt::format("[{:.17g}]", fmt::join(v, ", "));
}
std::string text_of(const std::vector<std::int64_t>& v) {
  return fmt::format("[{}]", fmt::join(v, ", "));
}

template <class T>
void note(Lines& lines, const std::string& name, const T& a, const T& b) {
  if (!same_bits(a, b)) lines.push_back(name + ": " + text_of(a) + " against " + text_of(b));
}

void compare_config(Lines& lines, const std::string& a, const std::string& b) {
  const auto la = config_lines(a), lb = config_lines(b);
  const std::string absent = "(absent)";
  for (const auto& [key, value] : la) note(lines, "config " + key, value, lb.contains(key) ? lb.at(key) : absent);
  for (const auto& [key, value] : lb)
    if (!la.contains(key)) note(lines, "config " + key, absent, value);
}

/// Fills `metadata` and `ignored` of the report with what the files' metadata do not have in common; `ignore` names
/// what belongs to the latter.
void compare_meta(const StoredCheckpoint& a, const StoredCheckpoint& b, const std::set<std::string>& ignore,
                  Comparison& report) {
  Lines& must = report.metadata;
  const auto lines = [&](const char* part) -> Lines& { return ignore.contains(part) ? report.ignored : must; };
  note(must, "format major version", a.major, b.major);
  note(report.ignored, "format minor version", a.minor, b.minor);
  detail::for_each_attribute([&](const detail::SchemaAttribute& attribute, auto member) {
    note(lines(attribute.part), attribute.shown, a.meta.*member, b.meta.*member);
  });
  compare_config(lines("config"), a.meta.config, b.meta.config);
  for (const auto& f : a.fields) {
    const StoredField* const g = b.find(f.name);
    if (!g) {
      must.push_back("field " + f.name + ": only in the first file");
      continue;
    }
    note(must, "field " + f.name + " type", f.type, g->type);
    note(must, "field " + f.name + " shape", f.shape, g->shape);
    note(must, "field " + f.name + " face", f.face, g->face);
    note(lines("units"), "field " + f.name + " units", f.units, g->units);
    note(lines("roles"), "field " + f.name + " role", f.role, g->role);
  }
  for (const auto& g : b.fields)
    if (!a.find(g.name)) must.push_back("field " + g.name + ": only in the second file");
}

/// What is stored beside equal data and must be equal then.
Lines compare_statistics(const StoredField& a, const StoredField& b) {
  Lines lines;
  note(lines, "field " + a.name + " digest", hex_digest(a.digest), hex_digest(b.digest));
  note(lines, "field " + a.name + " min", a.min, b.min);
  note(lines, "field " + a.name + " max", a.max, b.max);
  note(lines, "field " + a.name + " NaN count", a.nan_count, b.nan_count);
  return lines;
}

const Tolerance& tolerance_of(const CompareOptions& options, const std::string& field) {
  const auto own = options.fields.find(field);
  return own == options.fields.end() ? options.tolerance : own->second;
}

/// Lists what differs in how the two files were made; the keys of the physics are compared as /config.
void compare_records(const RunRecord& a, const RunRecord& b, Lines& ignored) {
  const auto list = [&](const auto& x, const auto& y) {
    for (const auto& [key, value] : x) {
      const auto part = key.substr(0, key.find('.'));
      if (part == "domain" || part == "solver" || part == "initial" || part == "source") continue;
      const auto other = y.find(key);
      if (other != y.end() && other->second != value)
        ignored.push_back(fmt::format("{}: {} against {}", key, value, other->second));
    }
  };
  list(a.facts, b.facts);
  list(a.config, b.config);
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
void hint_at_cuts(const RunRecord& a, const RunRecord& b, Comparison& report) {
  if (a.cuts == b.cuts) return;
  for (const auto& f : report.fields) {
    const auto& first = f.tolerant ? f.first_beyond : f.first;
    if (first.empty()) continue;
    const std::string start = "field " + f.name + ": the first difference lies on ";
    const std::string at_a = beside_cuts(a, first), at_b = beside_cuts(b, first);
    if (!at_a.empty()) report.hints.push_back(start + "a rank boundary of the first run (" + at_a + ")");
    if (!at_b.empty()) report.hints.push_back(start + "a rank boundary of the second run (" + at_b + ")");
    if (at_a.empty() && at_b.empty()) report.hints.push_back(start + "no rank boundary of either run");
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
  for (const auto& [name, tolerance] : options.fields)
    if (!ca.find(name) && !cb.find(name))
      throw UsageError(fmt::format("a tolerance is given for field \"{}\", which neither file has", name));
  std::set<std::string> ignore = options.ignore;
  if (c.tolerant) ignore.insert("residual");  // it follows from the values
  compare_meta(ca, cb, ignore, c);
  for (const auto& f : ca.fields) {
    const StoredField* const g = cb.find(f.name);
    if (!g || g->shape != f.shape || g->type != f.type) continue;  // already in the metadata's list
    std::int64_t bytes = 0;
    const auto set_bytes = [&](auto value) { bytes = f.cells() * static_cast<std::int64_t>(sizeof value); };
    if (f.shape.empty() || !with_stored_type(f.type, set_bytes))
      throw UsageError("field " + f.name + " is " + f.type + ": cannot be compared");
    const Lines statistics = compare_statistics(f, *g);
    if (!options.read_data && bytes > kAlwaysReadBytes && statistics.empty()) {
      FieldDifference& d = c.fields.emplace_back();
      d.name = f.name;
      d.type = f.type;
      d.read = false;
      d.cells = f.cells();
      d.nan_a = d.nan_b = f.nan_count;
      continue;
    }
    c.fields.push_back(detail::compare_field({a, b}, f, *g, tolerance_of(options, f.name), comm, c.warnings));
    if (c.fields.back().cells_different == 0)  // with other data they differ anyway
      c.metadata.insert(c.metadata.end(), statistics.begin(), statistics.end());
  }
  if (comm.rank() == 0) {  // only listed and printed there
    const auto ra = read_run_record(a), rb = read_run_record(b);
    if (ra && rb) {
      compare_records(*ra, *rb, c.ignored);
      hint_at_cuts(*ra, *rb, c);
    }
  }
  return c;
}

}  // namespace isohalo
