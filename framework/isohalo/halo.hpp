#pragma once
/// isohalo::halo - halo exchange for arrays of your own: CartesianDomain, adopt, StencilShape, HaloPlan; elements
/// known at run time, members of structures, faces.
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/faces.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/halo/run_time_elements.hpp"
#include "framework/halo/stencil_shape.hpp"
