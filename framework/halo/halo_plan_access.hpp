#pragma once
/// Plans that are broken, or copy otherwise than they would, to see that checks notice. Private: no program needs
/// it. All before the first exchange, else UsageError.

#include "framework/halo/halo_plan.hpp"
#include "framework/halo/halo_schedule.hpp"
#include "framework/halo/stores.hpp"

namespace isohalo::detail {

struct HaloPlanAccess {
  /// Changes the regions of each block before schedules are made. Local.
  template <int D>
  static void change(HaloPlan<D>& plan, HaloMutation<D> mutation);
  /// All our copies, which otherwise go by their size. Local.
  template <int D>
  static void copy_by(HaloPlan<D>& plan, Stores stores);
};

}  // namespace isohalo::detail
