#pragma once
/// Whether solvers are compiled for parallel.space = "device" as well.

namespace isohalo {

/// They are where Kokkos has a device, and where tests show what devices compute (CMake's ISOHALO_DEVICE_PATH).
/// Elsewhere those kernels are slower than the host's rows, and take half of the time that a solver takes to
/// compile: advection.cpp 38 instead of 101 seconds, wave.cpp 29 instead of 70 (GCC 12, a Zen 3).
#if defined(ISOHALO_DEVICE_PATH)
inline constexpr bool kDevicePath = true;
#else
inline constexpr bool kDevicePath = false;
#endif

/// Why a solver does not compute on devices then, as the end of a sentence.
inline constexpr const char* kNoDevicePath =
    "this isohalo was built without kernels for devices, as its Kokkos has none (docs/devices.md says how to build "
    "it for one; -DISOHALO_DEVICE_PATH=ON compiles them for the host)";

}  // namespace isohalo
