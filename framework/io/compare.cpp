#include "framework/io/compare.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <sstream>

#include "datatypes/error.hpp"
#include "framework/io/checkpoint_names.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/mpi/agreement.hpp"

namespace isohalo {

bool Comparison::same() const {
  if (!metadata.empty()) return false;
  for (const auto& f : fields)
    if (f.cells_different) return false;
  return true;
}

namespace {

std::string text_of(std::int64_t v) { return fmt::format("{}", v); }
std::string text_of(double v) { return fmt::format("{:.17g}", v); }
std::string text_of(const std::string& v) { return v; }
template <class T>
std::string text_of(const std::vector<T>& v) {
  std::string s = "[";
  for (std::size_t k = 0; k < v.size(); ++k) s += (k ? ", " : "") + text_of(v[k]);
  return s + "]";
}

bool equal_bits(std::int64_t a, std::int64_t b) { return a == b; }
bool equal_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }
bool equal_bits(const std::string& a, const std::string& b) { return a == b; }
template <class T>
bool equal_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k)
    if (!equal_bits(a[k], b[k])) return false;
  return true;
}

class MetaComparer {
 public:
  template <class T>
  void value(const std::string& name, const T& a, const T& b) {
    if (!equal_bits(a, b)) lines.push_back(name + ": " + text_of(a) + " against " + text_of(b));
  }
  std::vector<std::string> lines;
};

std::map<std::string, std::string> config_lines(const std::string& text) {
  std::map<std::string, std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(" = ");
    lines[line.substr(0, at)] = at == std::string::npos ? "" : line.substr(at + 3);
  }
  return lines;
}

void compare_config(MetaComparer& m, const std::string& a, const std::string& b) {
  auto la = config_lines(a), lb = config_lines(b);
  for (const auto& [key, value] : la)
    m.value("config " + key, value, lb.contains(key) ? lb[key] : std::string("(absent)"));
  for (const auto& [key, value] : lb)
    if (!la.contains(key)) m.value("config " + key, std::string("(absent)"), value);
}

const StoredField* find(const StoredCheckpoint& c, const std::string& name) {
  for (const auto& f : c.fields)
    if (f.name == name) return &f;
  return nullptr;
}

std::vector<std::string> compare_meta(const StoredCheckpoint& a, const StoredCheckpoint& b) {
  MetaComparer m;
  m.value("grid shape", a.meta.shape, b.meta.shape);
  m.value("grid origin", a.meta.origin, b.meta.origin);
  m.value("grid spacing", a.meta.spacing, b.meta.spacing);
  m.value("grid periodic", a.meta.periodic, b.meta.periodic);
  m.value("boundary low", a.meta.boundary_low, b.meta.boundary_low);
  m.value("boundary high", a.meta.boundary_high, b.meta.boundary_high);
  m.value("step", a.meta.step, b.meta.step);
  m.value("time", a.meta.time, b.meta.time);
  m.value("dt", a.meta.dt, b.meta.dt);
  m.value("random seed", a.meta.random_seed, b.meta.random_seed);
  m.value("random counter", a.meta.random_counter, b.meta.random_counter);
  m.value("reduction tree version", a.meta.tree_version, b.meta.tree_version);
  m.value("reduction tile", a.meta.tile, b.meta.tile);
  m.value("reduction method", a.meta.method, b.meta.method);
  m.value("change sum", a.meta.change_sum, b.meta.change_sum);
  m.value("residual", a.meta.residual, b.meta.residual);
  m.value("residual step", a.meta.residual_step, b.meta.residual_step);
  compare_config(m, a.meta.config, b.meta.config);
  for (const auto& f : a.fields) {
    const StoredField* g = find(b, f.name);
    if (!g) {
      m.lines.push_back("field " + f.name + ": only in the first file");
      continue;
    }
    m.value("field " + f.name + " type", f.type, g->type);
    m.value("field " + f.name + " shape", f.shape, g->shape);
    m.value("field " + f.name + " units", f.units, g->units);
    m.value("field " + f.name + " role", f.role, g->role);
  }
  for (const auto& g : b.fields)
    if (!find(a, g.name)) m.lines.push_back("field " + g.name + ": only in the second file");
  return m.lines;
}

/// One field of one open file, read in pieces of whole rows of the slowest dimension.
class FieldReader {
 public:
  FieldReader(const std::filesystem::path& file, const std::string& name)
      : file_(h5_own(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open " + file.string())),
        set_(h5_own(H5Dopen2(file_.get(), ("fields/" + name).c_str(), H5P_DEFAULT), "field " + name)),
        type_(h5_own(H5Dget_type(set_.get()), "type")) {}

  void read(const std::vector<std::int64_t>& shape, std::int64_t from, std::int64_t to, std::vector<char>& out) const {
    std::vector<hsize_t> start(shape.size(), 0), count(shape.begin(), shape.end());
    start[0] = static_cast<hsize_t>(from);
    count[0] = static_cast<hsize_t>(to - from);
    const H5Handle space = h5_own(H5Dget_space(set_.get()), "file space");
    h5_check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), "select");
    const H5Handle memory =
        h5_own(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), "memory space");
    h5_check(H5Dread(set_.get(), type_.get(), memory.get(), space.get(), H5P_DEFAULT, out.data()), "read");
  }

 private:
  H5Handle file_, set_, type_;
};

std::size_t type_bytes(const std::string& type) { return type == "float64" ? 8 : type == "float32" ? 4 : 1; }

std::uint64_t bits_at(const std::vector<char>& data, std::size_t cell, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, data.data() + cell * bytes, bytes);  // little-endian hosts only, as the files are
  return bits;
}

double as_double(std::uint64_t bits, const std::string& type) {
  if (type == "float64") return std::bit_cast<double>(bits);
  if (type == "float32") return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return static_cast<double>(bits);
}

struct Found {
  std::int64_t different = 0;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::uint64_t bits[2] = {0, 0};
};

/// Compares this rank's share of one field.
Found compare_share(const FieldReader& a, const FieldReader& b, const StoredField& f, const Communicator& comm) {
  const std::int64_t rows = f.shape[0];
  std::int64_t row_cells = 1;
  for (std::size_t j = 1; j < f.shape.size(); ++j) row_cells *= f.shape[j];
  const std::size_t bytes = type_bytes(f.type);
  const std::int64_t begin = rows * comm.rank() / comm.size(), end = rows * (comm.rank() + 1) / comm.size();
  const std::int64_t chunk =
      std::max<std::int64_t>(1, (std::int64_t{4} << 20) / (row_cells * static_cast<std::int64_t>(bytes)));
  std::vector<char> da, db;
  Found found;
  for (std::int64_t r = begin; r < end; r += chunk) {
    const std::int64_t to = std::min(r + chunk, end);
    const auto cells = static_cast<std::size_t>((to - r) * row_cells);
    da.resize(cells * bytes);
    db.resize(cells * bytes);
    a.read(f.shape, r, to, da);
    b.read(f.shape, r, to, db);
    if (std::memcmp(da.data(), db.data(), da.size()) == 0) continue;
    for (std::size_t c = 0; c < cells; ++c) {
      const std::uint64_t x = bits_at(da, c, bytes), y = bits_at(db, c, bytes);
      if (x == y) continue;
      if (found.different++ == 0) {
        found.first = r * row_cells + static_cast<std::int64_t>(c);
        found.bits[0] = x;
        found.bits[1] = y;
      }
    }
  }
  return found;
}

FieldDifference compare_field(const std::filesystem::path& a, const std::filesystem::path& b, const StoredField& f,
                              const Communicator& comm) {
  Found mine;
  agreed(comm, [&] { mine = compare_share(FieldReader(a, f.name), FieldReader(b, f.name), f, comm); });
  FieldDifference d;
  d.name = f.name;
  d.cells = 1;
  for (std::int64_t n : f.shape) d.cells *= n;
  d.cells_different = static_cast<std::int64_t>(comm.sum(static_cast<std::uint64_t>(mine.different)));
  if (d.cells_different == 0) return d;
  std::int64_t first = comm.min(mine.first);
  std::uint64_t bits[2] = {mine.first == first ? mine.bits[0] : 0, mine.first == first ? mine.bits[1] : 0};
  comm.allreduce(bits, 2, MPI_UINT64_T, MPI_SUM);
  d.bits_a = bits[0];
  d.bits_b = bits[1];
  d.value_a = as_double(bits[0], f.type);
  d.value_b = as_double(bits[1], f.type);
  d.first.resize(f.shape.size());
  for (std::size_t j = f.shape.size(); j-- > 0; first /= f.shape[j]) d.first[j] = first % f.shape[j];
  return d;
}

}  // namespace

Comparison compare_checkpoints(const std::filesystem::path& a, const std::filesystem::path& b,
                               const Communicator& comm) {
  const H5Quiet quiet;
  const StoredCheckpoint ca = read_checkpoint_meta(a, comm), cb = read_checkpoint_meta(b, comm);
  Comparison c;
  c.metadata = compare_meta(ca, cb);
  for (const auto& f : ca.fields) {
    const StoredField* g = find(cb, f.name);
    if (!g || g->shape != f.shape || g->type != f.type) continue;  // already in the metadata's list
    if (f.shape.empty() || (f.type != "float64" && f.type != "float32" && f.type != "uint8"))
      throw UsageError("field " + f.name + " is " + f.type + ": cannot be compared");
    c.fields.push_back(compare_field(a, b, f, comm));
  }
  return c;
}

}  // namespace isohalo
