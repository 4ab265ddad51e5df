#include "framework/shm/node_slots.hpp"

#include <utility>

namespace isohalo {

std::unique_ptr<NodeSlots> NodeSlots::make(const Communicator& comm, std::size_t bytes) {
  if (bytes > kMostBytes) return nullptr;
  const auto node = Node::of(comm);
  const std::size_t slot = (sizeof(Flag) + bytes + kLine - 1) / kLine * kLine;
  auto memory = detail::NodeMemory::make(node->comm(), comm.spins(), kLine + 2 * slot);
  if (comm.min(memory.has_value()) == 0) return nullptr;
  return std::unique_ptr<NodeSlots>(new NodeSlots(node, std::move(*memory), slot));
}

}  // namespace isohalo
