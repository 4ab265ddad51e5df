#include "framework/run/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "framework/io/compare.hpp"
#include "framework/io/field_reader.hpp"
#include "framework/io/file_structure.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/io/problems.hpp"
#include "framework/io/schema.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"

namespace isohalo {

namespace fs = std::filesystem;
using detail::Problems;

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

FieldStatistics statistics_of(const fs::path& file, const StoredField& f, const Communicator& comm) {
  StatisticsSum sum;
  const auto add_share = [&](auto value) {
    using T = decltype(value);
    const FieldReader reader(file, f.name);
    const Pieces pieces(f.shape, static_cast<std::int64_t>(kPieceBytes / sizeof(T)));
    const std::int64_t end = pieces.share(comm.rank() + 1, comm.size());
    std::vector<T> cells;
    for (std::int64_t p = pieces.share(comm.rank(), comm.size()); p < end; ++p) {
      const Piece piece = pieces.piece(p);
      cells.resize(static_cast<std::size_t>(piece.cells));
      reader.read(piece, sizeof(T), reinterpret_cast<char*>(cells.data()));
      sum.add(cells.data(), piece.cells, piece.first);
    }
  };
  agreed(comm, [&] {
    if (!with_stored_type(f.type, add_share))
      throw UsageError(file.string() + ": field " + f.name + " is " + f.type);
    detail::fault_point("verify");
  });
  return sum.finish(comm, f.cells());
}

void check_field(Problems& check, const StoredField& f, const FieldStatistics& found) {
  const std::string what = "field " + f.name + ": its ";
  check.that(f.digest == found.digest,
             what + "digest " + hex_digest(f.digest) + " does not match its data, " + hex_digest(found.digest));
  check.number(what + "min", f.min, found.min);
  check.number(what + "max", f.max, found.max);
  check.that(f.nan_count == found.nan_count,
             fmt::format("{}NaN count is {}, the data has {}", what, f.nan_count, found.nan_count));
  check.that(is_role(f.role), what + "role is \"" + f.role + "\"");
}

using Names = std::set<std::string>;

/// The attributes of each group of the schema (docs/checkpoints.md).
std::map<std::string, Names> group_attributes() {
  std::map<std::string, Names> groups{{"/", {"format", "format_version", "complete"}},
                                      {"/config", {"digest"}},
                                      {"/fields", {}},
                                      {"/grid", {"dim"}}};
  detail::for_each_attribute(
      [&](const detail::SchemaAttribute& a, auto) { groups[std::string("/") + a.group].insert(a.name); });
  return groups;
}

void check_names(Problems& check, const char* kind, const std::vector<std::string>& found, const Names& known,
                 const std::string& place) {
  for (const auto& name : found)
    check.that(known.contains(name), fmt::format("{} \"{}\"{} is none of the schema", kind, name, place));
}

/// Is there anything that the schema does not know?
void check_objects(Problems& check, const fs::path& file, const std::vector<StoredField>& fields) {
  const H5Handle h = h5_own(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), file.string());
  for (const auto& [path, known] : group_attributes()) {
    const H5Handle group = open_object(h.get(), path, H5I_GROUP);
    check_names(check, "attribute", h5_attributes(group.get(), path), known, " of " + path);
    if (path == "/fields") continue;
    const Names members = path == "/"         ? Names{"config", "fields", "grid", "reduction", "time"}
                          : path == "/config" ? Names{"text"}
                                              : Names{};
    check_names(check, "object", h5_names(group.get(), path), members, path == "/" ? "" : " in " + path);
  }
  for (const auto& f : fields)
    check_names(check, "attribute",
                h5_attributes(open_object(h.get(), "fields/" + f.name, H5I_DATASET).get(), f.name),
                f.face < 0 ? Names{"units", "role", "digest", "min", "max", "nan_count"}
                           : Names{"units", "role", "digest", "min", "max", "nan_count", "face"},
                " of field " + f.name);
}

}  // namespace

Verification verify_checkpoint(const fs::path& file, const Communicator& comm) {
  const H5Quiet quiet;
  Verification v;
  v.stored = read_checkpoint_meta(file, comm);
  Problems check;
  agreed(comm, [&] {
    for (const auto& line : stray_bytes(file)) check.that(false, line);
    if (v.stored.minor <= kFormatMinor) naming(file, [&] { check_objects(check, file, v.stored.fields); });
  });
  const auto contradictions = meta_problems(v.stored.meta);
  check.lines.insert(check.lines.end(), contradictions.begin(), contradictions.end());
  check.that(!v.stored.fields.empty(), "there is no field");
  const bool any_face =
      std::any_of(v.stored.fields.begin(), v.stored.fields.end(), [](const auto& f) { return f.face >= 0; });
  check.that(v.stored.minor != kFormatMinor || any_face,
             fmt::format("format_version is 1.{}, but no field lies on faces", v.stored.minor));
  const auto config = config_lines(v.stored.meta.config);
  const auto type = config.find("domain.type");
  for (const auto& f : v.stored.fields) {
    check.that(type == config.end() || type->second == "\"" + f.type + "\"",
               fmt::format("field {} is {}, /config says domain.type = {}", f.name, f.type,
                           type == config.end() ? "" : type->second));
    v.found.push_back(statistics_of(file, f, comm));
    check_field(check, f, v.found.back());
  }
  v.problems = std::move(check.lines);
  return v;
}

}  // namespace isohalo
