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

std::map<std::string, std::string> config_lines(const std::string& text) {
  std::map<std::string, std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(" = ");
    lines[line.substr(0, at)] = at == std::string::npos ? "" : line.substr(at + 3);
  }
  return lines;
}

bool Comparison::same() const {
  if (!metadata.empty()) return false;
  for (const auto& f : fields)
    if (f.cells_different) return false;
  return true;
}

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

class MetaComparer {
 public:
  template <class T>
  void value(const std::string& name, const T& a, const T& b) {
    if (!equal_bits(a, b)) lines.push_back(name + ": " + text_of(a) + " against " + text_of(b));
  }
  std::vector<std::string> lines;
};

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

/// One field of one open file, read box by box.
class FieldReader {
 public:
  FieldReader(const std::filesystem::path& file, const std::string& name)
      : file_(h5_own(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open " + file.string())),
        set_(h5_own(H5Dopen2(file_.get(), ("fields/" + name).c_str(), H5P_DEFAULT), "field " + name)),
        type_(h5_own(H5Dget_type(set_.get()), "type")) {}

  void read(const std::vector<hsize_t>& start, const std::vector<hsize_t>& count, std::vector<char>& out) const {
    const H5Handle space = h5_own(H5Dget_space(set_.get()), "file space");
    h5_check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
             "select");
    const H5Handle memory =
        h5_own(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), "memory space");
    h5_check(H5Dread(set_.get(), type_.get(), memory.get(), space.get(), H5P_DEFAULT, out.data()), "read");
  }

 private:
  H5Handle file_, set_, type_;
};

/// Cuts a field into pieces of consecutive cells, at most `most` each: runs along the first dimension whose slices
/// are small enough, one index in the dimensions before it.
class Pieces {
 public:
  Pieces(const std::vector<std::int64_t>& shape, std::int64_t most) : shape_(shape) {
    while (along_ + 1 < shape.size() && slice() > most) ++along_;
    run_ = std::clamp<std::int64_t>(most / slice(), 1, shape[along_]);
    runs_ = (shape[along_] + run_ - 1) / run_;
    for (std::size_t j = 0; j < along_; ++j) outer_ *= shape[j];
  }
  std::int64_t count() const { return outer_ * runs_; }
  /// Start and extents of a piece; returns its cells and, in `first`, the linear index of its first one.
  std::int64_t piece(std::int64_t p, std::vector<hsize_t>& start, std::vector<hsize_t>& extents,
                     std::int64_t& first) const {
    start.assign(shape_.size(), 0);
    extents.assign(shape_.begin(), shape_.end());
    std::int64_t rest = p / runs_;
    for (std::size_t j = along_; j-- > 0; rest /= shape_[j]) {
      start[j] = static_cast<hsize_t>(rest % shape_[j]);
      extents[j] = 1;
    }
    const std::int64_t from = p % runs_ * run_, to = std::min(from + run_, shape_[along_]);
    start[along_] = static_cast<hsize_t>(from);
    extents[along_] = static_cast<hsize_t>(to - from);
    first = (p / runs_ * shape_[along_] + from) * slice();
    return (to - from) * slice();
  }

 private:
  std::int64_t slice() const {
    std::int64_t n = 1;
    for (std::size_t j = along_ + 1; j < shape_.size(); ++j) n *= shape_[j];
    return n;
  }
  std::vector<std::int64_t> shape_;
  std::size_t along_ = 0;
  std::int64_t run_ = 1, runs_ = 1, outer_ = 1;
};

std::size_t type_bytes(const std::string& type) {
  return type == "float64" ? 8 : type == "float32" ? 4 : 1;
}

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
  std::uint64_t digest[2] = {0, 0};
};

/// Compares one piece, whose first cell has linear index `first`.
void compare_piece(const std::vector<char>& a, const std::vector<char>& b, std::size_t bytes, std::int64_t first,
                   Found& found) {
  const bool equal = std::memcmp(a.data(), b.data(), a.size()) == 0;
  for (std::size_t c = 0; c < a.size() / bytes; ++c) {
    const std::uint64_t x = bits_at(a, c, bytes), y = equal ? x : bits_at(b, c, bytes);
    const std::uint64_t key = (static_cast<std::uint64_t>(first) + c + 1) * kGolden;
    const std::uint64_t mixed = mix64(x + key);
    found.digest[0] += mixed;
    found.digest[1] += x == y ? mixed : mix64(y + key);
    if (x == y || found.different++ > 0) continue;
    found.first = first + static_cast<std::int64_t>(c);
    found.bits[0] = x;
    found.bits[1] = y;
  }
}

/// Compares this rank's share of one field.
Found compare_share(const FieldReader& a, const FieldReader& b, const StoredField& f, const Communicator& comm) {
  const std::size_t bytes = type_bytes(f.type);
  const Pieces pieces(f.shape, static_cast<std::int64_t>((std::size_t{4} << 20) / bytes));
  std::vector<char> da, db;
  std::vector<hsize_t> start, extents;
  Found found;
  for (std::int64_t p = pieces.count() * comm.rank() / comm.size();
       p < pieces.count() * (comm.rank() + 1) / comm.size(); ++p) {
    std::int64_t first = 0;
    const auto cells = static_cast<std::size_t>(pieces.piece(p, start, extents, first));
    da.resize(cells * bytes);
    db.resize(cells * bytes);
    a.read(start, extents, da);
    b.read(start, extents, db);
    compare_piece(da, db, bytes, first, found);
  }
  return found;
}

FieldDifference compare_field(const std::filesystem::path& a, const std::filesystem::path& b, const StoredField& f,
                              const StoredField& g, const Communicator& comm, Comparison& report) {
  Found mine;
  agreed(comm, [&] { mine = compare_share(FieldReader(a, f.name), FieldReader(b, f.name), f, comm); });
  FieldDifference d;
  d.name = f.name;
  d.cells = 1;
  for (std::int64_t n : f.shape) d.cells *= n;
  d.cells_different = static_cast<std::int64_t>(comm.sum(static_cast<std::uint64_t>(mine.different)));
  const std::uint64_t digests[2] = {comm.sum(mine.digest[0]), comm.sum(mine.digest[1])};
  const StoredField* const stored[2] = {&f, &g};
  for (int k = 0; k < 2; ++k)
    if (digests[k] != stored[k]->digest)
      report.warnings.push_back(fmt::format("field {} of the {} file: its digest {} does not match its data, {}",
                                            f.name, k ? "second" : "first", hex_digest(stored[k]->digest),
                                            hex_digest(digests[k])));
  if (d.cells_different == 0) {  // with other data these differ anyway
    MetaComparer m;
    m.value("field " + f.name + " digest", hex_digest(f.digest), hex_digest(g.digest));
    m.value("field " + f.name + " min", f.min, g.min);
    m.value("field " + f.name + " max", f.max, g.max);
    m.value("field " + f.name + " NaN count", f.nan_count, g.nan_count);
    report.metadata.insert(report.metadata.end(), m.lines.begin(), m.lines.end());
    return d;
  }
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
    c.fields.push_back(compare_field(a, b, f, *g, comm, c));
  }
  return c;
}

}  // namespace isohalo
