#include "framework/reduce/allreduce.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "datatypes/error.hpp"
#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/schedule/schedule_check.hpp"
#include "framework/schedule/schedule_search.hpp"

namespace isohalo {

ScheduledAllreduce::ScheduledAllreduce(MPI_Comm user, int count, MPI_Datatype type, MPI_Op op,
                                       const std::string& schedule, const Planning& planning)
    : comm_(Communicator::of(user)), count_(count), type_(type), op_(op), schedule_({}, 1) {
  const bool automatic = schedule == "auto";
  const auto error = error_of([&] {
    if (count < 0) throw UsageError("an allreduce of " + std::to_string(count) + " elements: give 0 or more");
    ask_mpi();
    if (!automatic) schedule_ = parse(schedule);
  });
  agree_same(comm_, "allreduce",
             {{"count", std::to_string(count)},
              {"bytes of the elements", std::to_string(bytes_)},
              {"the operation commutes", commutes_ ? "true" : "false"},
              {"schedule", automatic || error ? schedule : schedule_.text()},
              {"planning", detail::to_text(planning)}},
             error.get());
  tag_ = comm_.take_tags(1);  // where a rank makes something else the counters of tags must not part
  choice_ = {.schedule = schedule_.text(), .by = "given"};
  if (automatic) choose(planning);
  std::size_t most_received = 0, most_requests = 0;
  for (int s = 0; s < schedule_.size(); ++s) {
    const StageActions& stage = stages_.emplace_back(schedule_.actions(s, comm_.rank()));
    most_received = std::max(most_received, stage.receive.size());
    most_requests = std::max(most_requests, stage.receive.size() + stage.send.size());
  }
  buffer_.resize((most_received + 1) * room_);
  requests_.assign(most_requests, MPI_REQUEST_NULL);
}

void ScheduledAllreduce::choose(const Planning& planning) {
  const std::size_t bytes = std::max<std::size_t>(bytes_, 1);
  choice_ = detail::choose_schedule(
      comm_, planning,
      {.plan = {.bytes = static_cast<double>(bytes), .rank_order = !commutes_},
       .value_bytes = bytes,
       .program = [this](const Schedule& s) { return detail::plain_program(s, comm_.rank()); }},
      tag_);
  schedule_ = Schedule::parse(choice_.schedule, comm_.size());
}

Schedule ScheduledAllreduce::parse(const std::string& text) const {
  Schedule schedule = Schedule::parse(text, comm_.size());
  if (schedule.for_sets_only())
    throw UsageError(
        "schedule " + text +
        " has a dissemination, which may bring a contribution twice: use it for partial-result sets, not for a "
        "plain allreduce");
  if (!commutes_ && !keeps_rank_order(schedule))
    throw UsageError(
        "schedule " + text +
        " does not combine in rank order, but the operation does not commute: use factor stages, collapse "
        "and expand, or \"auto\"");
  return schedule;
}

/// Whether the operation commutes, and how its elements lie in memory.
void ScheduledAllreduce::ask_mpi() {
  MPI_Aint lower = 0, extent = 0, true_extent = 0;
  int size = 0, commutes = 0;
  if (op_ == MPI_OP_NULL) throw UsageError("an allreduce by MPI_OP_NULL: pass an operation");
  if (type_ == MPI_DATATYPE_NULL) throw UsageError("an allreduce of MPI_DATATYPE_NULL: pass a committed type");
  mpi_check(MPI_Op_commutative(op_, &commutes), "MPI_Op_commutative", comm_.get());
  mpi_check(MPI_Type_get_extent(type_, &lower, &extent), "MPI_Type_get_extent", comm_.get());
  mpi_check(MPI_Type_get_true_extent(type_, &true_lower_, &true_extent), "MPI_Type_get_true_extent", comm_.get());
  mpi_check(MPI_Type_size(type_, &size), "MPI_Type_size", comm_.get());
  commutes_ = commutes;
  if (!mpi_combines(op_, type_))
    throw UsageError(
        "an allreduce: MPI does not combine elements of this type by this operation, or the type is not "
        "committed");
  bytes_ = static_cast<std::size_t>(size) * static_cast<std::size_t>(count_);
  dense_ = size == extent && extent == true_extent && true_lower_ == 0;
  // Arrays of doubles must stay aligned whatever the number of bytes before them.
  const MPI_Aint shift = count_ > 0 ? (count_ - 1) * extent : 0;  // of the last element; extents may be negative
  const MPI_Aint bytes = count_ > 0 ? true_extent + std::abs(shift) : 0;
  true_lower_ += std::min<MPI_Aint>(0, shift);
  room_ = static_cast<std::size_t>((bytes + 63) / 64 * 64);
}

void ScheduledAllreduce::take(void* in_out) {
  comm_.get();  // throws after MPI_Finalize, on one rank too
  if (in_flight_) throw UsageError("an allreduce is in flight: wait() for it first");
  in_out_ = in_out;
  launch();
  in_flight_ = true;
}

void ScheduledAllreduce::reduce(void* in_out) {
  take(in_out);
  wait();
}

void ScheduledAllreduce::start(void* in_out) {
  take(in_out);
  if (stages_.size() > 1) activate(this);
}

bool ScheduledAllreduce::arrived(std::size_t stage) {
  if (stage == 0) return true;
  const StageActions& before = stages_[stage - 1];
  return test_all({requests_.data(), before.receive.size() + before.send.size()}, "an allreduce");
}

void ScheduledAllreduce::enter(std::size_t stage) {
  if (stage > 0) combine(stages_[stage - 1]);
  if (stage == stages_.size()) return;
  const StageActions& actions = stages_[stage];
  const MPI_Comm comm = comm_.get();
  MPI_Request* request = requests_.data();
  for (std::size_t i = 0; i < actions.receive.size(); ++i)
    mpi_check(mpi::irecv(received(i), count_, type_, actions.receive[i], tag_, comm, request++),
              "MPI_Irecv of an allreduce", comm);
  for (const int to : actions.send)
    mpi_check(mpi::isend(in_out_, count_, type_, to, tag_, comm, request++), "MPI_Isend of an allreduce", comm);
}

/// What StageActions promises, from left to right: MPI_Reduce_local(a, b) makes b = a op b.
void ScheduledAllreduce::combine(const StageActions& actions) {
  if (actions.receive.empty()) return;
  void* left = nullptr;
  const auto take = [&](void* right) {
    if (left) mpi_check(MPI_Reduce_local(left, right, count_, type_, op_), "MPI_Reduce_local", comm_.get());
    left = right;
  };
  for (std::size_t i = 0; i <= actions.receive.size(); ++i) {
    if (i == actions.own && !actions.replace) take(in_out_);
    if (i < actions.receive.size()) take(received(i));
  }
  if (left == in_out_) return;
  if (dense_)
    std::memcpy(in_out_, left, bytes_);
  else
    mpi_check(MPI_Sendrecv(left, count_, type_, 0, tag_, in_out_, count_, type_, 0, tag_, MPI_COMM_SELF,
                           MPI_STATUS_IGNORE),
              "a copy of an allreduce's result", comm_.get());
}

}  // namespace isohalo
