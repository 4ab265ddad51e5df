#include "framework/mpi/comparison.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

namespace {

/// Of ranks that stand in for themselves where they are missing: larger than all others, which know it by that.
constexpr std::int64_t kMissing = std::numeric_limits<std::int64_t>::max();

/// Those that run.
std::vector<Comparison*>& running() {
  static std::vector<Comparison*> list;
  return list;
}

/// An object that this rank stays away from.
struct Absence {
  FormerCommunicator comm;
  ObjectName name;
  bool waited = false, settled = false;
};
std::deque<Absence>& absences() {
  static std::deque<Absence> list;
  return list;
}
constexpr std::size_t kMostAbsences = 64;

}  // namespace

Comparison::Comparison(const Communicator& comm, std::int64_t label, std::int64_t number)
    : comm_(comm), label_(label), number_(number), done_(comm.size() == 1) {}

std::shared_ptr<Comparison> Comparison::begin(const Communicator& comm, std::uint64_t serial,
                                              std::uint64_t number) {
  make_up(comm);
  // Signed maxima, because MPICH compares unsigned ones as signed numbers.
  return begun(comm, static_cast<std::int64_t>(serial), static_cast<std::int64_t>(number >> 2));
}

std::shared_ptr<Comparison> Comparison::begun(const Communicator& comm, std::int64_t label, std::int64_t number) {
  std::shared_ptr<Comparison> c(new Comparison(comm, label, number));
  if (c->done_) return c;
  c->post();
  c->self_ = c;
  running().push_back(c.get());
  activate(c.get());
  return c;
}

void Comparison::post() {
  values_[0] = number_, values_[1] = -number_, values_[2] = label_, values_[3] = -label_;
  ++comm_.comparisons();
  mpi_check(MPI_Iallreduce(MPI_IN_PLACE, values_, 4, MPI_INT64_T, MPI_MAX, comm_.get(), &request_),
            "MPI_Iallreduce of a comparison", comm_.get());
}

void Comparison::advance() {
  if (done_) return;
  int found = 0;
  mpi_check(MPI_Test(&request_, &found, MPI_STATUS_IGNORE), "MPI_Test of a comparison", comm_.get());
  if (!found) return;
  if (missed() && label_ == values_[2] && label_ != kMissing) {  // the others are still to come to this one
    post();
    return;
  }
  done_ = true;
  deactivate(this);
  std::erase(running(), this);
  const std::shared_ptr<Comparison> last = std::move(self_);  // may be the last owner: nothing after this line
}

bool Comparison::done() {
  if (!done_) {
    const std::shared_ptr<Comparison> keep = self_;
    advance();
  }
  return done_;
}

void Comparison::stand_in(const Communicator& comm) {
  begun(comm, kMissing, 0);
}

void Comparison::stay_away(const Communicator& comm, const ObjectName& name) {
  const auto same = [&](const Absence& a) {
    const auto its = a.comm.find();
    return its && its->get() == comm.get() && a.name.serial == name.serial;
  };
  if (comm.size() == 1 || std::any_of(absences().begin(), absences().end(), same)) return;
  if (absences().size() == kMostAbsences) absences().pop_front();
  absences().push_back({FormerCommunicator(comm), name});
}

void Comparison::make_up(const Communicator& comm) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds moment{300};
  for (Absence& a : absences()) {
    const auto its = a.comm.find();
    if (a.settled || !its || its->get() != comm.get()) continue;
    const auto end = a.waited ? Clock::time_point{} : Clock::now() + moment;
    a.waited = true;
    std::optional<Notice> notice;
    const auto heard = [&] {
      notice = find_notice(comm, a.name.notices, a.name.serial);
      return notice || Clock::now() > end;
    };
    for (wait_until(heard, comm.spins()); notice && !a.settled; heard()) a.settled = notice->sent & kCompares;
    if (a.settled) stand_in(comm);
  }
}

void Comparison::catch_up(const Communicator& comm, std::int64_t most) {
  while (comm.comparisons() < most) {
    const auto here = [&](const Comparison* c) { return c->comm_.get() == comm.get(); };
    const auto open = std::find_if(running().begin(), running().end(), here);
    if (open == running().end()) {
      stand_in(comm);
      continue;
    }
    const std::shared_ptr<Comparison> c = (*open)->self_;
    const std::int64_t before = comm.comparisons();
    wait_until([&] { return c->done() || comm.comparisons() > before; }, comm.spins());
  }
}

}  // namespace isohalo::detail
