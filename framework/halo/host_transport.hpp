#pragma once
/// Halo messages from and to host memory: by MPI datatypes, or packed. Private to framework/halo: use HaloPlan.

#include "framework/halo/strided_copy.hpp"
#include "framework/halo/transport.hpp"

namespace isohalo::detail {

template <int D>
class HostTransport : public HaloTransport<D> {
 public:
  explicit HostTransport(HaloTask<D> task) : HaloTransport<D>(std::move(task)), copiers_(this->stages()) {
    for (const auto& schedule : this->task_.schedules)
      for (std::size_t k = 0; k < this->stages(); ++k) copiers_[k].emplace_back(boxes_of(schedule[k].copies));
  }

 protected:
  void copy(std::size_t stage) final {
    for (std::size_t f = 0; f < this->arrays_.size(); ++f)
      copiers_[stage][this->schedule_of(f)].run(this->arrays_[f], this->task_.stores.in_place,
                                                this->task_.stores.workers);
  }

 private:
  std::vector<std::vector<BoxCopier<D>>> copiers_;  ///< by stage and schedule
};

/// Zero copy: MPI datatypes on both sides, made once per schedule and array layout and found again. Local.
template <int D>
std::unique_ptr<HaloTransport<D>> datatype_transport(HaloTask<D> task);

/// All arrays of an exchange in one message per peer, packed by our own copies into persistent buffers; between
/// ranks of one compute node, if wanted, through channels in shared memory. Local without channels, otherwise
/// collective; then throws RunError, the same on all ranks of a compute node, when it has no room for them.
template <int D>
std::unique_ptr<HaloTransport<D>> packed_transport(HaloTask<D> task, bool channels);

}  // namespace isohalo::detail
