#include "framework/io/verify.hpp"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <set>

#include "datatypes/error.hpp"
#include "framework/io/compare.hpp"
#include "framework/io/field_reader.hpp"
#include "framework/io/file_structure.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

template <class T>
void sum_share(const fs::path& file, const StoredField& f, const Communicator& comm, StatisticsSum& sum) {
  const FieldReader reader(file, f.name);
  const Pieces pieces(f.shape, static_cast<std::int64_t>(kPieceBytes / sizeof(T)));
  std::vector<T> cells;
  for (std::int64_t p = pieces.share(comm.rank(), comm.size()); p < pieces.share(comm.rank() + 1, comm.size());
       ++p) {
    const Piece piece = pieces.piece(p);
    cells.resize(static_cast<std::size_t>(piece.cells));
    reader.read(piece, sizeof(T), reinterpret_cast<char*>(cells.data()));
    sum.add(cells.data(), piece.cells, piece.first);
  }
}

FieldStatistics statistics_of(const fs::path& file, const StoredField& f, const Communicator& comm) {
  StatisticsSum sum;
  agreed(comm, [&] {
    if (f.type == "float64")
      sum_share<double>(file, f, comm, sum);
    else if (f.type == "float32")
      sum_share<float>(file, f, comm, sum);
    else if (f.type == "uint8")
      sum_share<std::uint8_t>(file, f, comm, sum);
    else
      throw UsageError(file.string() + ": field " + f.name + " is " + f.type);
    detail::fault_point("verify");
  });
  std::int64_t cells = 1;
  for (std::int64_t n : f.shape) cells *= n;
  return sum.finish(comm, cells);
}

class Checks {
 public:
  explicit Checks(std::vector<std::string>& problems) : problems_(problems) {}
  void that(bool good, const std::string& problem) {
    if (!good) problems_.push_back(problem);
  }
  void numbers(const std::string& what, double stored, double expected) {
    that(same_bits(stored, expected), fmt::format("{} is {:.17g}, it should be {:.17g}", what, stored, expected));
  }

 private:
  std::vector<std::string>& problems_;
};

void check_field(Checks& check, const StoredField& f, const FieldStatistics& found) {
  const std::string what = "field " + f.name + ": its ";
  check.that(f.digest == found.digest,
             what + "digest " + hex_digest(f.digest) + " does not match its data, " + hex_digest(found.digest));
  check.numbers(what + "min", f.min, found.min);
  check.numbers(what + "max", f.max, found.max);
  check.that(f.nan_count == found.nan_count,
             fmt::format("{}NaN count is {}, the data has {}", what, f.nan_count, found.nan_count));
  check.that(f.role == "state" || f.role == "auxiliary", what + "role is \"" + f.role + "\"");
}

/// The objects of the schema, with their attributes and members (docs/checkpoints.md).
struct Known {
  std::set<std::string> attributes, members;
};
const std::map<std::string, Known>& schema() {
  static const std::map<std::string, Known> objects{
      {"/", {{"format", "format_version", "complete"}, {"config", "fields", "grid", "reduction", "time"}}},
      {"/config", {{"digest"}, {"text"}}},
      {"/fields", {}},
      {"/grid", {{"dim", "shape", "origin", "spacing", "periodic", "boundary_low", "boundary_high"}, {}}},
      {"/reduction", {{"tree_version", "tile", "method", "change_sum", "residual", "residual_step"}, {}}},
      {"/time", {{"step", "time", "dt", "random_seed", "random_counter"}, {}}}};
  return objects;
}
const std::set<std::string>& field_attributes() {
  static const std::set<std::string> names{"units", "role", "digest", "min", "max", "nan_count"};
  return names;
}

void check_attributes(Checks& check, const H5Handle& object, const std::string& name,
                      const std::set<std::string>& known) {
  for (const auto& a : h5_attributes(object.get(), name))
    check.that(known.contains(a), fmt::format("attribute \"{}\" of {} is none of the schema", a, name));
}

/// Is there anything that the schema does not know? Throws UsageError where that cannot be read.
void check_objects(Checks& check, const fs::path& file, const std::vector<StoredField>& fields) try {
  const H5Handle h = h5_own(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), file.string());
  for (const auto& [path, known] : schema()) {
    const H5Handle group = open_group(h.get(), path);
    check_attributes(check, group, path, known.attributes);
    if (path == "/fields") continue;
    for (const auto& n : h5_names(group.get(), path))
      check.that(known.members.contains(n),
                 fmt::format("object \"{}\"{} is none of the schema", n, path == "/" ? "" : " in " + path));
  }
  for (const auto& f : fields)
    check_attributes(check, open_dataset(h.get(), "fields/" + f.name), "field " + f.name, field_attributes());
} catch (const Error& e) {
  throw UsageError(file.string() + ": " + e.what());
}

}  // namespace

Verification verify_checkpoint(const fs::path& file, const Communicator& comm) {
  const H5Quiet quiet;
  Verification v;
  v.stored = read_checkpoint_meta(file, comm);
  Checks check(v.problems);
  agreed(comm, [&] {
    if (const std::int64_t beyond = check_file_structure(file))
      check.that(false, fmt::format("{} the end of the HDF5 data, at byte {}: no part of it",
                                    beyond == 1 ? "1 byte follows" : fmt::format("{} bytes follow", beyond),
                                    fs::file_size(file) - static_cast<std::uintmax_t>(beyond)));
    if (v.stored.minor <= kFormatMinor) check_objects(check, file, v.stored.fields);
  });
  for (const auto& problem : meta_problems(v.stored.meta)) check.that(false, problem);
  check.that(!v.stored.fields.empty(), "there is no field");
  const auto config = config_lines(v.stored.meta.config);
  const auto type = config.find("domain.type");
  for (const auto& f : v.stored.fields) {
    check.that(type == config.end() || type->second == "\"" + f.type + "\"",
               fmt::format("field {} is {}, /config says domain.type = {}", f.name, f.type,
                           type == config.end() ? "" : type->second));
    v.found.push_back(statistics_of(file, f, comm));
    check_field(check, f, v.found.back());
  }
  return v;
}

}  // namespace isohalo
