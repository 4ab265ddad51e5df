#pragma once
/// isohalo::halo - halo exchange for arrays of your own: CartesianDomain, adopt, StencilShape, HaloPlan; elements
/// known at run time, members of structures, faces, outside cells; GridArray, RowSweep; SharedAllocator.
#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/faces.hpp"
#include "framework/halo/grid_array.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/halo/outside_cells.hpp"
#include "framework/halo/row_sweep.hpp"
#include "framework/halo/run_time_elements.hpp"
#include "framework/halo/stencil_shape.hpp"
#include "framework/shm/shared_memory.hpp"
