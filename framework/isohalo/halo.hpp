#pragma once
/// isohalo::halo - halo exchange for arrays of your own: CartesianDomain, adopt, StencilShape, HaloPlan.
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/halo/stencil_shape.hpp"
