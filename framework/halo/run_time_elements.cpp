#include "framework/halo/run_time_elements.hpp"

#include <string>

#include "datatypes/error.hpp"
#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/neighborhood/neighbor_call.hpp"

namespace isohalo {

namespace {

/// The C-order array of elements that begin `apart` bytes after one another; of each the first `bytes` travel.
template <int D>
ErasedArray<D> c_order(std::byte* first, std::int64_t bytes, std::int64_t apart, const Box<D>& owned,
                       std::int64_t width, std::int64_t row_padding) {
  detail::check_adopted(width, row_padding);
  const Index<D> ghosts = index_of<D>(width);
  const Box<D> all = owned.grown(ghosts, ghosts);
  ErasedArray<D> a{nullptr, bytes, 1, nullptr, owned, ghosts, ghosts, detail::c_strides(all, row_padding, apart)};
  if (first) a.data = first + offset_of<D>(owned.low, all.low, a.stride);
  return a;
}

}  // namespace

template <int D>
ErasedArray<D> adopt_bytes(void* first, std::int64_t bytes, const Box<D>& owned, std::int64_t width,
                           std::int64_t row_padding) {
  if (bytes < 1) throw UsageError("adopt_bytes: elements have " + std::to_string(bytes) + " bytes; the least is 1");
  return c_order(static_cast<std::byte*>(first), bytes, bytes, owned, width, row_padding);
}

ElementLayout::ElementLayout(MPI_Datatype type, const Communicator& comm) {
  if (type == MPI_DATATYPE_NULL) throw UsageError("the element type is MPI_DATATYPE_NULL: pass a committed type");
  const TypeLayout layout = layout_of(type);
  if (layout.size < 1 || layout.extent < 1)
    throw UsageError("an element type of " + std::to_string(layout.size) + " bytes and extent " +
                     std::to_string(layout.extent) + ": both must be positive");
  extent_ = layout.extent;
  // Where ones arrive that are unpacked into zeros.
  std::vector<char> packed(static_cast<std::size_t>(layout.size), '\xff'),
      bytes(static_cast<std::size_t>(layout.true_extent), 0);
  MPI_Count at = 0;
  char* const base = bytes.data() - layout.true_low;
  mpi_check(mpi::unpack(packed.data(), layout.size, &at, base, 1, type, comm.get()), "MPI_Unpack_c");
  for (std::int64_t k = 0; k < layout.true_extent; ++k) {
    if (!bytes[static_cast<std::size_t>(k)]) continue;
    if (runs_.empty() || runs_.back().offset + runs_.back().length != layout.true_low + k)
      runs_.push_back({layout.true_low + k, 0});
    ++runs_.back().length;
  }
}

template <int D>
std::vector<ErasedArray<D>> adopt_elements(void* first, const ElementLayout& element, const Box<D>& owned,
                                           std::int64_t width, std::int64_t row_padding) {
  std::vector<ErasedArray<D>> arrays;
  for (const auto& run : element.runs()) {
    auto* const data = first ? static_cast<std::byte*>(first) + run.offset : nullptr;
    arrays.push_back(c_order(data, run.length, element.extent(), owned, width, row_padding));
  }
  return arrays;
}

#define ISOHALO_INSTANTIATE(D)                                                                                     \
  template ErasedArray<D> adopt_bytes<D>(void*, std::int64_t, const Box<D>&, std::int64_t, std::int64_t);          \
  template std::vector<ErasedArray<D>> adopt_elements<D>(void*, const ElementLayout&, const Box<D>&, std::int64_t, \
                                                         std::int64_t);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
