#include "framework/io/verify.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "datatypes/error.hpp"
#include "framework/io/compare.hpp"
#include "framework/io/field_reader.hpp"
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

void check_meta(Checks& check, const CheckpointMeta& m) {
  double cells = 1;
  for (std::int64_t n : m.shape) cells *= static_cast<double>(n);
  check.numbers("/time: time", m.time, static_cast<double>(m.step) * m.dt);
  check.that(m.step >= 0, fmt::format("/time: step is {}", m.step));
  check.that(m.residual_step == m.step,
             fmt::format("/reduction: residual_step is {}, the file's step is {}", m.residual_step, m.step));
  check.numbers("/reduction: residual", m.residual, std::sqrt(m.change_sum / cells));
  check.that(m.tree_version == 1, fmt::format("/reduction: tree version {} is not known", m.tree_version));
  check.that(m.tile.size() == m.shape.size(),
             "/reduction: the tile has another number of dimensions than the grid");
  const auto config = config_lines(m.config);
  const auto listed = [&](const std::string& key, const std::string& expected) {
    const auto found = config.find(key);
    if (found != config.end())
      check.that(found->second == expected,
                 fmt::format("/config: {} is {}, /grid says {}", key, found->second, expected));
  };
  std::string shape;
  for (std::int64_t n : m.shape) shape += (shape.empty() ? "[" : ", ") + std::to_string(n);
  listed("domain.shape", shape + "]");
  listed("domain.boundary.low", m.boundary_low);
  listed("domain.boundary.high", m.boundary_high);
}

void check_objects(Checks& check, const fs::path& file) {
  const H5Handle h = h5_own(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), file.string());
  for (const auto& n : h5_names(h.get(), file.string()))
    check.that(n == "config" || n == "fields" || n == "grid" || n == "reduction" || n == "time",
               "object \"" + n + "\" is none of the schema");
}

}  // namespace

std::vector<std::string> meta_problems(const CheckpointMeta& meta) {
  std::vector<std::string> problems;
  Checks check(problems);
  check_meta(check, meta);
  return problems;
}

Verification verify_checkpoint(const fs::path& file, const Communicator& comm) {
  const H5Quiet quiet;
  Verification v;
  v.stored = read_checkpoint_meta(file, comm);
  Checks check(v.problems);
  agreed(comm, [&] {
    if (v.stored.minor <= kFormatMinor) check_objects(check, file);
  });
  check_meta(check, v.stored.meta);
  check.that(!v.stored.fields.empty(), "there is no field");
  for (const auto& f : v.stored.fields) {
    v.found.push_back(statistics_of(file, f, comm));
    check_field(check, f, v.found.back());
  }
  return v;
}

}  // namespace isohalo
