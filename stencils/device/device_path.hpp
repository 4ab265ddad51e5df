#pragma once
/// Whether solvers are compiled for parallel.space = "device" as well.

#include "framework/run/solver.hpp"

namespace isohalo {

/// They are where Kokkos has a device, and where tests show what devices compute: those of bytes, and of float64 in
/// 2 and 3 dimensions, or with 2 all of them. Elsewhere those kernels are slower than the host's rows, and take
/// half of the time that solvers take to compile.
#if defined(ISOHALO_DEVICE_PATH)
inline constexpr int kDevicePath = ISOHALO_DEVICE_PATH;
#else
inline constexpr int kDevicePath = 0;
#endif
template <class T, int D>
inline constexpr bool kOnDevice = kDevicePath > 1 ||
                                  (kDevicePath > 0 && sizeof(T) != sizeof(float) && (D == 2 || D == 3));

/// `macro(T, D)` for all of them but bytes.
#if defined(ISOHALO_DEVICE_PATH) && ISOHALO_DEVICE_PATH > 1
#define ISOHALO_FOR_EACH_DEVICE_FLOAT(macro) ISOHALO_FOR_EACH_FLOAT_FIELD(macro)
#else
#define ISOHALO_FOR_EACH_DEVICE_FLOAT(macro) macro(double, 2) macro(double, 3)
#endif

/// Why solvers with fields of this type do not compute on devices, as the end of a sentence; empty: they do.
template <int D>
const char* without_device_path(ElementType type) {
  if (kDevicePath == 0)
    return "this isohalo was built without kernels for devices, as its Kokkos has none (docs/devices.md says how "
           "to "
           "build it for one; a build with -DISOHALO_TESTS=FULL has them for the host)";
  if (type == ElementType::float32 && !kOnDevice<float, D>)
    return "this isohalo has kernels of float32 for no device: set domain.type = \"float64\", or build with "
           "-DISOHALO_TESTS=FULL";
  if (type == ElementType::float64 && !kOnDevice<double, D>)
    return "this isohalo has kernels for devices in 2 and 3 dimensions only: build with -DISOHALO_TESTS=FULL";
  return "";
}

}  // namespace isohalo
