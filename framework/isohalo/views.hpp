#pragma once
/// Kokkos views as arrays of a halo exchange: view_ref. Needs Kokkos; not part of isohalo/halo.hpp.
#include "framework/halo/view_ref.hpp"
