#include "framework/mpi/comparison.hpp"

#include <algorithm>
#include <limits>
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

}  // namespace

Comparison::Comparison(const Communicator& comm, std::int64_t label, std::int64_t number)
    : comm_(comm), label_(label), number_(number), done_(comm.size() == 1) {}

std::shared_ptr<Comparison> Comparison::begin(const Communicator& comm, std::uint64_t serial,
                                              std::uint64_t number) {
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

void Comparison::catch_up(const Communicator& comm, std::int64_t most) {
  while (comm.comparisons() < most) {
    const auto here = [&](const Comparison* c) { return c->comm_.get() == comm.get(); };
    const auto open = std::find_if(running().begin(), running().end(), here);
    if (open == running().end()) {
      begun(comm, kMissing, 0);
      continue;
    }
    const std::shared_ptr<Comparison> c = (*open)->self_;
    const std::int64_t before = comm.comparisons();
    wait_until([&] { return c->done() || comm.comparisons() > before; }, comm.spins());
  }
}

}  // namespace isohalo::detail
