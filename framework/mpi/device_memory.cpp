#include "framework/mpi/device_memory.hpp"

#include <mpi.h>

#include <cstdlib>
#include <string_view>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace isohalo {

bool host_messages_wanted() {
  const char* const host = std::getenv("ISOHALO_HOST_MESSAGES");
  return host && std::string_view(host) == "1";
}

bool mpi_reads_device_memory([[maybe_unused]] DeviceMemory memory) {
#if defined(MPIX_GPU_SUPPORT_CUDA) && defined(MPIX_GPU_SUPPORT_HIP)  // MPICH
  int yes = 0;
  const int kind = memory == DeviceMemory::cuda ? MPIX_GPU_SUPPORT_CUDA : MPIX_GPU_SUPPORT_HIP;
  return MPIX_GPU_query_support(kind, &yes) == MPI_SUCCESS && yes != 0;
#else
#ifdef MPIX_CUDA_AWARE_SUPPORT  // Open MPI
  if (memory == DeviceMemory::cuda) return MPIX_Query_cuda_support() == 1;
#endif
#ifdef MPIX_ROCM_AWARE_SUPPORT
  if (memory == DeviceMemory::hip) return MPIX_Query_rocm_support() == 1;
#endif
  return false;
#endif
}

}  // namespace isohalo
