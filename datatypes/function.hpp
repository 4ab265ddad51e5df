#pragma once
/// Functions that kernels of a device may call.

/// What Kokkos calls KOKKOS_FUNCTION, without Kokkos: such functions are compiled for CUDA and HIP devices, too.
/// (nvcc wants --expt-relaxed-constexpr for them, which our targets with Kokkos pass on.)
#if defined(__CUDACC__) || defined(__HIPCC__)
#define ISOHALO_FUNCTION __host__ __device__
#else
#define ISOHALO_FUNCTION
#endif
