#pragma once
/// Who moves the cells of arrays that the host need not reach. Private to framework/halo; the one implementation is
/// kernel_transport.hpp, which needs Kokkos, as this must not.

#include <memory>
#include <span>
#include <vector>

#include "framework/halo/transport.hpp"

namespace isohalo::detail {

/// One for each memory space; arrays with the same one can be exchanged together.
template <int D>
struct KernelCopies {
  /// As the transports of host memory are made. Fences. Local.
  std::unique_ptr<HaloTransport<D>> (*make)(const CartesianDomain<D>& domain, int first_tag,
                                            std::vector<HaloSchedule<D>> schedules,
                                            std::span<const std::int64_t> element_bytes);
};

}  // namespace isohalo::detail
