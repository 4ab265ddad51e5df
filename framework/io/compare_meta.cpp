#include <fmt/format.h>

#include <bit>
#include <sstream>

#include "framework/io/compare_parts.hpp"

namespace isohalo {

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

namespace detail {

namespace {

std::string text_of(std::int64_t v) {
  return fmt::format("{}", v);
}
std::string text_of(double v) {
  return fmt::format("{:.17g}", v);
}
std::string text_of(const std::string& v) {
  return v;
}
template <class T>
std::string text_of(const std::vector<T>& v) {
  std::string s = "[";
  for (std::size_t k = 0; k < v.size(); ++k) s += (k ? ", " : "") + text_of(v[k]);
  return s + "]";
}

bool equal_bits(std::int64_t a, std::int64_t b) {
  return a == b;
}
bool equal_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
bool equal_bits(const std::string& a, const std::string& b) {
  return a == b;
}
template <class T>
bool equal_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k)
    if (!equal_bits(a[k], b[k])) return false;
  return true;
}

template <class T>
void note(std::vector<std::string>& lines, const std::string& name, const T& a, const T& b) {
  if (!equal_bits(a, b)) lines.push_back(name + ": " + text_of(a) + " against " + text_of(b));
}

void compare_config(std::vector<std::string>& lines, const std::string& a, const std::string& b) {
  const auto la = config_lines(a), lb = config_lines(b);
  const std::string absent = "(absent)";
  for (const auto& [key, value] : la) note(lines, "config " + key, value, lb.contains(key) ? lb.at(key) : absent);
  for (const auto& [key, value] : lb)
    if (!la.contains(key)) note(lines, "config " + key, absent, value);
}

void compare_fields(std::vector<std::string>& must, std::vector<std::string>& units,
                    std::vector<std::string>& roles, const StoredCheckpoint& a, const StoredCheckpoint& b) {
  const auto find = [](const StoredCheckpoint& c, const std::string& name) -> const StoredField* {
    for (const auto& f : c.fields)
      if (f.name == name) return &f;
    return nullptr;
  };
  for (const auto& f : a.fields) {
    const StoredField* const g = find(b, f.name);
    if (!g) {
      must.push_back("field " + f.name + ": only in the first file");
      continue;
    }
    note(must, "field " + f.name + " type", f.type, g->type);
    note(must, "field " + f.name + " shape", f.shape, g->shape);
    note(units, "field " + f.name + " units", f.units, g->units);
    note(roles, "field " + f.name + " role", f.role, g->role);
  }
  for (const auto& g : b.fields)
    if (!find(a, g.name)) must.push_back("field " + g.name + ": only in the second file");
}

}  // namespace

void compare_meta(const StoredCheckpoint& a, const StoredCheckpoint& b, const std::set<std::string>& ignore,
                  Comparison& report) {
  const auto lines = [&](const char* name) -> std::vector<std::string>& {
    return ignore.contains(name) ? report.ignored : report.metadata;
  };
  const CheckpointMeta &x = a.meta, &y = b.meta;
  note(report.metadata, "format major version", a.major, b.major);
  note(report.ignored, "format minor version", a.minor, b.minor);
  note(report.metadata, "grid shape", x.shape, y.shape);
  note(lines("grid"), "grid origin", x.origin, y.origin);
  note(lines("grid"), "grid spacing", x.spacing, y.spacing);
  note(lines("boundary"), "grid periodic", x.periodic, y.periodic);
  note(lines("boundary"), "boundary low", x.boundary_low, y.boundary_low);
  note(lines("boundary"), "boundary high", x.boundary_high, y.boundary_high);
  note(lines("step"), "step", x.step, y.step);
  note(lines("time"), "time", x.time, y.time);
  note(lines("time"), "dt", x.dt, y.dt);
  note(lines("random"), "random seed", x.random_seed, y.random_seed);
  note(lines("random"), "random counter", x.random_counter, y.random_counter);
  note(lines("reduction"), "reduction tree version", x.tree_version, y.tree_version);
  note(lines("reduction"), "reduction tile", x.tile, y.tile);
  note(lines("reduction"), "reduction method", x.method, y.method);
  note(lines("residual"), "change sum", x.change_sum, y.change_sum);
  note(lines("residual"), "residual", x.residual, y.residual);
  note(lines("step"), "residual step", x.residual_step, y.residual_step);
  compare_config(lines("config"), x.config, y.config);
  compare_fields(report.metadata, lines("units"), lines("roles"), a, b);
}

void compare_statistics(const StoredField& a, const StoredField& b, std::vector<std::string>& must) {
  note(must, "field " + a.name + " digest", hex_digest(a.digest), hex_digest(b.digest));
  note(must, "field " + a.name + " min", a.min, b.min);
  note(must, "field " + a.name + " max", a.max, b.max);
  note(must, "field " + a.name + " NaN count", a.nan_count, b.nan_count);
}

}  // namespace detail

}  // namespace isohalo
