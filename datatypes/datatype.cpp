#include "datatypes/datatype.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "datatypes/error.hpp"
#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"

namespace isohalo {

Datatype::Datatype(Datatype&& other) noexcept
    : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)), owned_(std::exchange(other.owned_, false)) {}

Datatype& Datatype::operator=(Datatype&& other) noexcept {
  std::swap(type_, other.type_);
  std::swap(owned_, other.owned_);
  return *this;
}

Datatype::~Datatype() {
  if (owned_ && mpi_is_active()) MPI_Type_free(&type_);
}

MPI_Datatype Datatype::release() noexcept {
  owned_ = false;
  return std::exchange(type_, MPI_DATATYPE_NULL);
}

Datatype Datatype::adopt(MPI_Datatype type, bool commit) {
  require_mpi();
  Datatype d;
  d.type_ = type;
  d.owned_ = true;
  if (commit) mpi_check(MPI_Type_commit(&d.type_), "MPI_Type_commit");
  return d;
}

Datatype Datatype::borrow(MPI_Datatype type) {
  Datatype d;
  d.type_ = type;
  return d;
}

std::int64_t Datatype::size() const {
  require_mpi();
  MPI_Count bytes = 0;
  mpi_check(mpi::type_size(type_, &bytes), "MPI_Type_size_c");
  return static_cast<std::int64_t>(bytes);
}

namespace {

/// What `make(&type)` makes, not committed. `call`: its name.
template <class Make>
Datatype made(const char* call, const Make& make) {
  require_mpi();
  MPI_Datatype t = MPI_DATATYPE_NULL;
  mpi_check(make(&t), call);
  return Datatype::adopt(t, false);
}

Datatype committed(Datatype type) {
  return Datatype::adopt(type.release());
}

Datatype contiguous(std::int64_t count, MPI_Datatype type) {
  return made("MPI_Type_contiguous_c", [&](auto* t) { return mpi::type_contiguous(count, type, t); });
}

Datatype resized(MPI_Datatype type, std::int64_t bytes) {
  return made("MPI_Type_create_resized_c", [&](auto* t) { return mpi::type_create_resized(type, 0, bytes, t); });
}

MPI_Count extent_of(MPI_Datatype type) {
  require_mpi();
  if (type == MPI_DATATYPE_NULL) throw UsageError("the type of the elements is MPI_DATATYPE_NULL: pass a real one");
  MPI_Count low = 0, extent = 0;
  mpi_check(mpi::type_get_extent(type, &low, &extent), "MPI_Type_get_extent_c");
  return extent;
}

/// Runs of elements, and where they start in bytes.
struct Runs {
  std::vector<MPI_Count> lengths, displacements;

  void add(std::int64_t length, std::int64_t byte) {
    lengths.push_back(length);
    displacements.push_back(byte);
  }

  /// By the cheapest constructor that says so.
  Datatype of(MPI_Datatype type) const {
    const auto n = static_cast<MPI_Count>(lengths.size());
    if (n > 0 && std::count(lengths.begin(), lengths.end(), lengths[0]) == n)
      return made("MPI_Type_create_hindexed_block_c", [&](auto* t) {
        return mpi::type_create_hindexed_block(n, lengths[0], displacements.data(), type, t);
      });
    return made("MPI_Type_create_hindexed_c", [&](auto* t) {
      return mpi::type_create_hindexed(n, lengths.data(), displacements.data(), type, t);
    });
  }
};

/// Repeats `b` over the dimensions last..first of `box` (fastest innermost), skipping `cuts`.
/// `dense` is the number of elements so far when they lie back to back, otherwise 0.
template <int D>
Datatype nested(Datatype b, const Box<D>& box, const Index<D>& stride, std::int64_t element_bytes, int first,
                int last, const std::vector<int>& cuts, std::int64_t dense) {
  for (int j = last; j >= first; --j) {
    const std::int64_t n = box.extent(j), bytes = stride[j] * element_bytes;
    if (n == 1 || std::find(cuts.begin(), cuts.end(), j) != cuts.end()) continue;
    const bool joins = dense > 0 && stride[j] == dense;
    b = joins ? contiguous(n, b.get()) : made("MPI_Type_create_hvector_c", [&](auto* t) {
      return mpi::type_create_hvector(n, bytes, b.get(), t);
    });
    dense = joins ? dense * n : 0;
  }
  return b;
}

/// The runs of a simplex prism along its last cut dimension; of a box its first element.
template <int D>
Runs runs_of(const Region<D>& region, const std::vector<int>& cuts, const Index<D>& origin, const Index<D>& stride,
             std::int64_t element_bytes) {
  Region<D> thin = region;  // full dimensions reduced to their first cell
  for (int j = 0; j < D; ++j)
    if (std::find(cuts.begin(), cuts.end(), j) == cuts.end()) thin.box.high[j] = thin.box.low[j] + 1;
  Runs runs;
  thin.for_each_box([&](const Box<D>& run) {
    const std::int64_t at = offset_of<D>(run.low, origin, stride);
    const std::int64_t n = cuts.empty() ? 1 : run.extent(cuts.back()),
                       step = cuts.empty() ? 1 : stride[cuts.back()];
    if (step > 0) return runs.add(n, at * element_bytes);
    for (std::int64_t i = 0; i < n; ++i)  // MPI gives no run a negative extent: cell by cell
      runs.add(1, (at + i * step) * element_bytes);
  });
  return runs;
}

}  // namespace

Datatype bytes_type(std::int64_t bytes) {
  return committed(contiguous(bytes, MPI_BYTE));
}

Datatype resized_type(const Datatype& type, std::int64_t extent) {
  return committed(resized(type.get(), extent));
}

Datatype triangular_type(std::int64_t count, std::int64_t firstblock, std::int64_t blockincrement,
                         std::int64_t stride, std::int64_t strideincrement, MPI_Datatype element) {
  if (count < 0) throw UsageError("triangular type: count " + std::to_string(count) + " is negative");
  const std::int64_t bytes = extent_of(element);
  Runs blocks;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t length = firstblock + i * blockincrement;
    if (length < 0)
      throw UsageError("triangular type: block " + std::to_string(i) + " has negative length " +
                       std::to_string(length));
    if (length > 0) blocks.add(length, i * (stride + strideincrement) * bytes);
  }
  return committed(blocks.of(element));
}

template <int D>
Datatype region_type(const Region<D>& region, const Index<D>& origin, const Index<D>& stride,
                     MPI_Datatype element) {
  const std::int64_t bytes = extent_of(element);
  if (region.empty()) return committed(Runs{}.of(element));
  const std::vector<int> cuts = region.cut_dimensions();
  const int run = cuts.empty() ? -1 : cuts.back();
  Datatype b = nested(Datatype::borrow(element), region.box, stride, bytes, run + 1, D - 1, cuts, 1);
  const Runs runs = runs_of(region, cuts, origin, stride, bytes);
  if (run >= 0 && stride[run] > 0)
    b = resized(b.get(), stride[run] * bytes);  // elements of a run are one stride apart
  const bool in_place =
      b.get() != element && runs.lengths.size() == 1 && runs.lengths[0] == 1 && runs.displacements[0] == 0;
  if (!in_place) b = runs.of(b.get());
  return committed(nested(std::move(b), region.box, stride, bytes, 0, run, cuts, 0));
}

Datatype joined_type(std::span<const Datatype> parts) {
  const std::vector<MPI_Count> ones(parts.size(), 1), zeros(parts.size(), 0);
  std::vector<MPI_Datatype> types;
  for (const Datatype& d : parts) types.push_back(d.get());
  return committed(made("MPI_Type_create_struct_c", [&](auto* t) {
    return mpi::type_create_struct(static_cast<MPI_Count>(types.size()), ones.data(), zeros.data(), types.data(),
                                   t);
  }));
}

#define ISOHALO_INSTANTIATE(D) \
  template Datatype region_type<D>(const Region<D>&, const Index<D>&, const Index<D>&, MPI_Datatype);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
