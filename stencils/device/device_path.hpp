#pragma once
/// Whether solvers are compiled for parallel.space = "device" as well.

namespace isohalo {

/// They are where Kokkos has a device, and where tests show what devices compute. Elsewhere those kernels are
/// slower than the host's rows, and take about half of the time that solvers take to compile.
#if defined(ISOHALO_DEVICE_PATH)
inline constexpr bool kDevicePath = true;
#else
inline constexpr bool kDevicePath = false;
#endif

/// Why a solver does not compute on devices then, as the end of a sentence.
inline constexpr const char* kNoDevicePath =
    "this isohalo was built without kernels for devices, as its Kokkos has none (docs/devices.md says how to "
    "build it for one; a build with tests has them for the host)";

}  // namespace isohalo
