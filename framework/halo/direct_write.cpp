#include "framework/halo/direct_write.hpp"

namespace isohalo::detail {

template <int D>
GhostPlace<D> ghost_place(const ErasedArray<D>& a) {
  GhostPlace<D> place;
  const Index<D> stride = a.byte_strides();
  if (stride[D - 1] != a.bytes || !SharedMemory::find(a.data, place.memory)) return place;
  for (int j = 0; j < D; ++j) place.low[j] = a.owned.low[j], place.stride[j] = stride[j];
  place.writable = 1;
  return place;
}

void GhostsOfPeers::begin_exchange() {
  constexpr std::int64_t kept = 4;  // solvers use two or three arrays in turn
  ++exchanges_;
  std::erase_if(targets_, [&](const Target& t) { return exchanges_ - t.last_used > kept; });
}

std::byte* GhostsOfPeers::find(int peer, const SharedAddress& address) {
  Target* target = nullptr;
  for (auto& t : targets_)
    if (t.peer == peer && t.serial == address.serial) target = &t;
  if (!target) target = &targets_.emplace_back(Target{peer, address.serial, 0, MappedMemory(address)});
  target->last_used = exchanges_;
  return target->memory.mapped() ? target->memory.data() + address.offset : nullptr;
}

template GhostPlace<1> ghost_place<1>(const ErasedArray<1>&);
template GhostPlace<2> ghost_place<2>(const ErasedArray<2>&);
template GhostPlace<3> ghost_place<3>(const ErasedArray<3>&);
template GhostPlace<4> ghost_place<4>(const ErasedArray<4>&);

}  // namespace isohalo::detail
