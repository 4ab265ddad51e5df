#include "datatypes/datatype.hpp"

#include <string>
#include <utility>

#include "datatypes/error.hpp"
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

Datatype Datatype::adopt(MPI_Datatype type) {
  require_mpi();
  Datatype d;
  d.type_ = type;
  d.owned_ = true;
  mpi_check(MPI_Type_commit(&d.type_), "MPI_Type_commit");
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
  mpi_check(MPI_Type_size_c(type_, &bytes), "MPI_Type_size_c");
  return static_cast<std::int64_t>(bytes);
}

template <>
Datatype value_type<double>() {
  return Datatype::borrow(MPI_DOUBLE);
}
template <>
Datatype value_type<float>() {
  return Datatype::borrow(MPI_FLOAT);
}
template <>
Datatype value_type<std::uint8_t>() {
  return Datatype::borrow(MPI_UINT8_T);
}
template <>
Datatype value_type<std::int32_t>() {
  return Datatype::borrow(MPI_INT32_T);
}
template <>
Datatype value_type<std::int64_t>() {
  return Datatype::borrow(MPI_INT64_T);
}

Datatype bytes_type(std::int64_t bytes) {
  require_mpi();
  MPI_Datatype t = MPI_DATATYPE_NULL;
  mpi_check(MPI_Type_contiguous_c(bytes, MPI_BYTE, &t), "MPI_Type_contiguous_c");
  return Datatype::adopt(t);
}

Datatype resized_type(const Datatype& type, std::int64_t extent) {
  require_mpi();
  MPI_Datatype t = MPI_DATATYPE_NULL;
  mpi_check(MPI_Type_create_resized_c(type.get(), 0, extent, &t), "MPI_Type_create_resized_c");
  return Datatype::adopt(t);
}

namespace {

MPI_Count extent_of(MPI_Datatype type) {
  require_mpi();
  MPI_Count low = 0, extent = 0;
  mpi_check(MPI_Type_get_extent_c(type, &low, &extent), "MPI_Type_get_extent_c");
  return extent;
}

/// Holds an intermediate type while the next level is built on it.
class Building {
 public:
  explicit Building(MPI_Datatype borrowed) : type_(borrowed) {}
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;
  ~Building() {
    if (owned_) MPI_Type_free(&type_);
  }
  MPI_Datatype get() const { return type_; }
  void replace(MPI_Datatype next) {
    if (owned_) MPI_Type_free(&type_);
    type_ = next;
    owned_ = true;
  }
  Datatype commit() {
    if (!owned_) {  // a bare element: give it a handle of its own
      MPI_Datatype t = MPI_DATATYPE_NULL;
      mpi_check(MPI_Type_dup(type_, &t), "MPI_Type_dup");
      return Datatype::adopt(t);
    }
    owned_ = false;
    return Datatype::adopt(type_);
  }

  /// `count` copies, `bytes` apart.
  void repeat(std::int64_t count, std::int64_t bytes, bool contiguous) {
    if (count == 1) return;
    MPI_Datatype t = MPI_DATATYPE_NULL;
    if (contiguous)
      mpi_check(MPI_Type_contiguous_c(count, type_, &t), "MPI_Type_contiguous_c");
    else
      mpi_check(MPI_Type_create_hvector_c(count, 1, bytes, type_, &t), "MPI_Type_create_hvector_c");
    replace(t);
  }

  void resize(std::int64_t bytes) {
    MPI_Datatype t = MPI_DATATYPE_NULL;
    mpi_check(MPI_Type_create_resized_c(type_, 0, bytes, &t), "MPI_Type_create_resized_c");
    replace(t);
  }

  /// Blocks of lengths[i] elements at displacements[i] bytes; the cheapest constructor that says so.
  void blocks(const std::vector<MPI_Count>& lengths, const std::vector<MPI_Count>& displacements) {
    const auto n = static_cast<MPI_Count>(lengths.size());
    bool equal = true;
    for (MPI_Count l : lengths) equal = equal && l == lengths.front();
    if (n == 1 && lengths[0] == 1 && displacements[0] == 0 && owned_) return;
    MPI_Datatype t = MPI_DATATYPE_NULL;
    if (equal && n > 0)
      mpi_check(MPI_Type_create_hindexed_block_c(n, lengths[0], displacements.data(), type_, &t),
                "MPI_Type_create_hindexed_block_c");
    else
      mpi_check(MPI_Type_create_hindexed_c(n, lengths.data(), displacements.data(), type_, &t),
                "MPI_Type_create_hindexed_c");
    replace(t);
  }

 private:
  MPI_Datatype type_;
  bool owned_ = false;
};

/// Repeats `b` over the dimensions last..first of `box` (fastest innermost), skipping the ones marked in `skip`.
/// `dense` is the number of elements so far when they lie back to back, otherwise 0.
template <int D>
void nest(Building& b, const Box<D>& box, const Index<D>& stride, std::int64_t element_bytes, int first, int last,
          const PerDim<bool, D>& skip, std::int64_t& dense) {
  for (int j = last; j >= first; --j) {
    if (skip[j]) continue;
    const bool contiguous = dense > 0 && stride[j] == dense;
    b.repeat(box.extent(j), stride[j] * element_bytes, contiguous);
    dense = contiguous || box.extent(j) == 1 ? dense * box.extent(j) : 0;
  }
}

/// The runs of a simplex prism along its last cut dimension: where each starts and how long it is.
template <int D>
void simplex_runs(const Region<D>& region, const std::vector<int>& cuts, const Index<D>& origin,
                  const Index<D>& stride, std::int64_t element_bytes, std::vector<MPI_Count>& lengths,
                  std::vector<MPI_Count>& displacements) {
  Region<D> thin = region;  // full dimensions reduced to their first cell
  for (int j = 0; j < D; ++j)
    if (region.side[j] == 0) thin.box.high[j] = thin.box.low[j] + 1;
  thin.for_each_box([&](const Box<D>& run) {
    std::int64_t at = 0;
    for (int j = 0; j < D; ++j) at += (run.low[j] - origin[j]) * stride[j];
    const int along = cuts.back();
    if (stride[along] > 0) {
      lengths.push_back(run.extent(along));
      displacements.push_back(at * element_bytes);
      return;
    }
    for (std::int64_t i = 0; i < run.extent(along); ++i) {  // MPI gives no run a negative extent: cell by cell
      lengths.push_back(1);
      displacements.push_back((at + i * stride[along]) * element_bytes);
    }
  });
}

}  // namespace

Datatype triangular_type(std::int64_t count, std::int64_t firstblock, std::int64_t blockincrement,
                         std::int64_t stride, std::int64_t strideincrement, MPI_Datatype element) {
  if (count < 0) throw UsageError("triangular type: count " + std::to_string(count) + " is negative");
  const std::int64_t bytes = extent_of(element);
  std::vector<MPI_Count> lengths, displacements;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t length = firstblock + i * blockincrement;
    if (length < 0)
      throw UsageError("triangular type: block " + std::to_string(i) + " has negative length " +
                       std::to_string(length));
    if (length == 0) continue;
    lengths.push_back(length);
    displacements.push_back(i * (stride + strideincrement) * bytes);
  }
  Building b(element);
  b.blocks(lengths, displacements);
  return b.commit();
}

template <int D>
Datatype region_type(const Region<D>& region, const Index<D>& origin, const Index<D>& stride,
                     MPI_Datatype element) {
  const std::int64_t bytes = extent_of(element);
  Building b(element);
  if (region.empty()) {
    b.blocks({}, {});
    return b.commit();
  }
  const std::vector<int> cuts = region.cut_dimensions();
  std::int64_t dense = 1;
  PerDim<bool, D> skip{};
  for (int j : cuts) skip[j] = true;
  if (cuts.empty()) {
    std::int64_t at = 0;
    for (int j = 0; j < D; ++j) at += (region.box.low[j] - origin[j]) * stride[j];
    nest(b, region.box, stride, bytes, 0, D - 1, skip, dense);
    b.blocks({1}, {at * bytes});
    return b.commit();
  }
  const int run = cuts.back();
  nest(b, region.box, stride, bytes, run + 1, D - 1, skip, dense);
  std::vector<MPI_Count> lengths, displacements;
  simplex_runs(region, cuts, origin, stride, bytes, lengths, displacements);
  if (stride[run] > 0) b.resize(stride[run] * bytes);  // elements of a run are one stride apart
  b.blocks(lengths, displacements);
  dense = 0;
  nest(b, region.box, stride, bytes, 0, run, skip, dense);
  return b.commit();
}

Datatype joined_type(std::span<const Datatype> parts) {
  require_mpi();
  if (parts.size() == 1) {
    MPI_Datatype t = MPI_DATATYPE_NULL;
    mpi_check(MPI_Type_dup(parts[0].get(), &t), "MPI_Type_dup");
    return Datatype::adopt(t);
  }
  std::vector<MPI_Count> ones(parts.size(), 1), zeros(parts.size(), 0);
  std::vector<MPI_Datatype> types;
  for (const Datatype& d : parts) types.push_back(d.get());
  MPI_Datatype t = MPI_DATATYPE_NULL;
  mpi_check(
      MPI_Type_create_struct_c(static_cast<MPI_Count>(parts.size()), ones.data(), zeros.data(), types.data(), &t),
      "MPI_Type_create_struct_c");
  return Datatype::adopt(t);
}

template Datatype region_type<1>(const Region<1>&, const Index<1>&, const Index<1>&, MPI_Datatype);
template Datatype region_type<2>(const Region<2>&, const Index<2>&, const Index<2>&, MPI_Datatype);
template Datatype region_type<3>(const Region<3>&, const Index<3>&, const Index<3>&, MPI_Datatype);
template Datatype region_type<4>(const Region<4>&, const Index<4>&, const Index<4>&, MPI_Datatype);

}  // namespace isohalo
