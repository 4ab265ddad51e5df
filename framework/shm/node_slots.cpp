#include "framework/shm/node_slots.hpp"

#include <time.h>

#include <climits>
#include <utility>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace isohalo {

std::unique_ptr<NodeSlots> NodeSlots::make(const Communicator& comm, std::size_t bytes) {
  if (bytes > kMostBytes) return nullptr;
  const auto node = Node::of(comm);
  const std::size_t slot = (sizeof(Flag) + bytes + kLine - 1) / kLine * kLine;
  auto memory = detail::NodeMemory::make(node->comm(), comm.spins(), kLine + 2 * slot);
  if (comm.min(memory.has_value()) == 0) return nullptr;
  return std::unique_ptr<NodeSlots>(new NodeSlots(node, std::move(*memory), slot));
}

void NodeSlots::sleep(std::uint32_t calls_before, std::int64_t timeout_ns) {
  const timespec time{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
#ifdef __linux__
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&calls()), FUTEX_WAIT, calls_before, &time, nullptr, 0);
#else
  const timespec nap{0, 20000};
  if (calls().load() == calls_before)
    nanosleep(time.tv_sec > 0 || time.tv_nsec > nap.tv_nsec ? &nap : &time, nullptr);
#endif
}

void NodeSlots::wake() {
  calls().fetch_add(1);
#ifdef __linux__
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&calls()), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
#endif
}

}  // namespace isohalo
