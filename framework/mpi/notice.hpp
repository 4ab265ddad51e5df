#pragma once
/// What a rank that gives up says to others, who find it while they wait.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "framework/mpi/communicator.hpp"

namespace isohalo::detail {

/// Ranks that come to something given up later than this are not waited for; they find the notices.
constexpr std::chrono::milliseconds kLateness{2000};

struct Notice {
  int peer = 0;  ///< who says it
  int mpi_class = 0;
  int sent = 0;  ///< how far it came: messages sent, or exchanges served
  std::string text;
};

/// Sends it to `peer` under `tag`, about the object or operation of number `serial`. Local; never throws.
void send_notice(const Communicator& comm, int tag, std::uint64_t serial, int peer, const Notice& notice) noexcept;

/// Takes a message of just so many bytes that has come from `source`, or from anybody; the rank that sent it.
/// Throws others away: what is left over under a tag that comes round again. Local.
std::optional<int> take_message(const Communicator& comm, int source, int tag, std::span<std::byte> into);

/// Takes one that has come. Throws away those about objects that had the same tag before, and from communicators
/// that had the same context. Local.
std::optional<Notice> find_notice(const Communicator& comm, int tag, std::uint64_t serial);

}  // namespace isohalo::detail
