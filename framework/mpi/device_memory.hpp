#pragma once
/// What this MPI does with the memory of devices.

namespace isohalo {

enum class DeviceMemory { cuda, hip };

/// Must messages go by way of host memory, whatever MPI can reach: is ISOHALO_HOST_MESSAGES=1 in the environment?
bool host_messages_wanted();

/// Can it send from such memory, and receive there? Asked of the MPI that runs, by the extensions of MPICH and Open
/// MPI; no for one that cannot be asked. Between MPI_Init and MPI_Finalize. Local.
bool mpi_reads_device_memory(DeviceMemory memory);

}  // namespace isohalo
