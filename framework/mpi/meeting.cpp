#include "framework/mpi/meeting.hpp"

#include <algorithm>
#include <array>
#include <list>
#include <set>
#include <utility>

#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo::detail {

namespace {

struct Greeting {
  std::uint64_t members = 0, serial = 0;  ///< of the communicator and of the object
  std::uint32_t number = 0, unused = 0;
  std::array<std::int64_t, kMeetingValues> values{};
};

/// Greetings of meetings that were broken off: MPI may still read them. There are some only after errors.
std::list<Greeting>& left_behind() {
  static std::list<Greeting> all;
  return all;
}

/// Of one meeting; they go on their way whatever becomes of it.
class Greetings {
 public:
  explicit Greetings(const Communicator& comm) : comm_(comm) {}
  Greetings(const Greetings&) = delete;
  Greetings& operator=(const Greetings&) = delete;
  ~Greetings() {
    const bool left = std::any_of(requests_.begin(), requests_.end(), [](auto r) { return r != MPI_REQUEST_NULL; });
    for (MPI_Request& r : requests_)
      if (r != MPI_REQUEST_NULL) MPI_Request_free(&r);
    if (left) left_behind().splice(left_behind().end(), sent_);
  }
  void send(const Greeting& greeting, int peer, int tag) {
    mpi_check(MPI_Isend(&sent_.emplace_back(greeting), sizeof greeting, MPI_BYTE, peer, tag, comm_.get(),
                        &requests_.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Isend to a meeting", comm_.get());
  }
  void wait() { comm_.wait(requests_, "a meeting"); }

 private:
  const Communicator& comm_;
  std::list<Greeting> sent_;
  std::vector<MPI_Request> requests_;
};

/// Takes a greeting of `peer` to this meeting; false when none has come. Throws away those to others: meetings that
/// were broken off, and objects that had the same tag before.
bool take(const Communicator& comm, int peer, int tag, const Greeting& mine, Greeting& theirs) {
  while (take_message(comm, peer, tag, std::as_writable_bytes(std::span(&theirs, 1))))
    if (theirs.members == mine.members && theirs.serial == mine.serial && theirs.number == mine.number) return true;
  return false;
}

/// How far apart the ranks of each round are.
std::vector<int> distances(int ranks) {
  std::vector<int> list;
  for (std::int64_t d = 1; d < ranks; d *= 2) list.push_back(static_cast<int>(d));
  return list;
}

}  // namespace

ObjectName::ObjectName(const Communicator& comm)
    : notices(comm.take_control_tags(1)), meetings(comm.take_control_tags(1)), serial(comm.take_serial()) {}

void meet(const Communicator& comm, const ObjectName& name, std::uint32_t number, std::span<std::int64_t> most,
          const std::function<void()>& listen) {
  const int p = comm.size(), rank = comm.rank();
  Greetings greetings(comm);
  Greeting mine, theirs;
  mine.members = comm.members(), mine.serial = name.serial, mine.number = number;
  std::copy(most.begin(), most.end(), mine.values.begin());
  for (const int distance : distances(p)) {
    greetings.send(mine, (rank + distance) % p, name.meetings);
    constexpr int patience = 256;
    int misses = 0;
    const auto come = [&] {
      if (take(comm, (rank + p - distance) % p, name.meetings, mine, theirs)) return true;
      if (++misses % patience == 0) listen();
      return false;
    };
    wait_until(come, comm.spins());
    for (std::size_t k = 0; k < most.size(); ++k) mine.values[k] = std::max(mine.values[k], theirs.values[k]);
  }
  greetings.wait();
  std::copy_n(mine.values.begin(), most.size(), most.begin());
}

std::vector<int> partners(const Communicator& comm) {
  const int p = comm.size(), rank = comm.rank();
  std::set<int> ranks;
  for (const int distance : distances(p)) {
    ranks.insert((rank + distance) % p);
    ranks.insert((rank + p - distance) % p);
  }
  return {ranks.begin(), ranks.end()};
}

void send_notices(const Communicator& comm, const ObjectName& name, std::span<const int> ranks, int mpi_class,
                  std::uint32_t served, const std::string& text) noexcept {
  for (int rank : ranks)
    send_notice(comm, name.notices, name.serial, rank, {0, mpi_class, static_cast<int>(served), text});
}

void send_questions(const Communicator& comm, const ObjectName& name, std::span<const int> ranks,
                    std::uint32_t number, const std::string& text) noexcept {
  send_notices(comm, name, ranks, MPI_SUCCESS, number, text);
}

bool is_question(const Notice& notice) {
  return notice.mpi_class == MPI_SUCCESS;
}

}  // namespace isohalo::detail
