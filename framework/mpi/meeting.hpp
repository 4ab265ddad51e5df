#pragma once
/// All ranks come together before they do what none of them may begin alone; one that cannot come says so to those
/// that wait for it, and they to others.

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/mpi/communicator.hpp"
#include "framework/mpi/notice.hpp"

namespace isohalo::detail {

/// What an object is known by on all ranks, in messages about it.
struct ObjectName {
  int notices = 0, meetings = 0;  ///< tags
  std::uint64_t serial = 0;       ///< different from all others of the communicator
  ObjectName() = default;
  /// Collective in order.
  explicit ObjectName(const Communicator& comm);
};

/// At most so many values.
constexpr std::size_t kMeetingValues = 3;

/// Waits until all ranks have come to meeting `number` of the object, and leaves the largest of all ranks' values
/// in `most`. `listen` is called now and then and may throw. By dissemination in ceil(log2 p) rounds of one
/// message. Collective; not in the order of MPI's collectives, which all ranks can begin together afterwards.
void meet(const Communicator& comm, const ObjectName& name, std::uint32_t number, std::span<std::int64_t> most,
          const std::function<void()>& listen);

/// The ranks that wait for this one in a meeting, or for which it waits; sorted.
std::vector<int> partners(const Communicator& comm);

/// Says to these ranks that this one takes part in nothing of the object from number `served` on. Local; never
/// throws.
void send_notices(const Communicator& comm, const ObjectName& name, std::span<const int> ranks, int mpi_class,
                  std::uint32_t served, const std::string& text) noexcept;

/// Meetings longer than this make a rank ask whether the others do something else instead.
constexpr std::chrono::milliseconds kLongMeeting{100};

/// Asks these ranks in meeting `number`. Whoever does something else has `text` as error. Local; never throws.
void send_questions(const Communicator& comm, const ObjectName& name, std::span<const int> ranks,
                    std::uint32_t number, const std::string& text) noexcept;
/// Its sender asks, and does not stay away.
bool is_question(const Notice& notice);

}  // namespace isohalo::detail
