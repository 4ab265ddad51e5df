#pragma once
/// Pages of shared memory before they are used: MPI and the system only promise addresses, and a page that then is
/// not there ends the process with SIGBUS.

#include <cstddef>

namespace isohalo::detail {

/// False when the machine is known to have less than twice so many bytes of memory left: what is shared is memory
/// like any other. Local.
bool memory_has_room(double bytes);

/// Zeroes fresh memory of a tmpfs, so that all its pages are there for good; false, and none of them is taken, when
/// there is no room. Local.
bool reserve_pages(std::byte* memory, std::size_t bytes) noexcept;

}  // namespace isohalo::detail
