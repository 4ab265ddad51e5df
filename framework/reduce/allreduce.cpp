#include "framework/reduce/allreduce.hpp"

#include <algorithm>
#include <cstring>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/schedule/schedule_check.hpp"
#include "framework/schedule/schedule_search.hpp"

namespace isohalo {

ScheduledAllreduce::ScheduledAllreduce(MPI_Comm user, int count, MPI_Datatype type, MPI_Op op,
                                       const std::string& schedule, const EmulatedLatency& emulate,
                                       const Planning& planning)
    : comm_(Communicator::of(user)), count_(count), type_(type), op_(op), schedule_({}, 1) {
  const bool automatic = schedule == "auto";
  bool commutative = false;
  const auto error = error_of([&] {
    if (count < 0) throw UsageError("an allreduce of " + std::to_string(count) + " elements: give 0 or more");
    measure_type();
    commutative = commutes();
    if (!automatic) schedule_ = parse(schedule);
  });
  agree_same(comm_, "allreduce",
             {{"count", std::to_string(count)},
              {"bytes of the elements", std::to_string(bytes_)},
              {"the operation commutes", commutative ? "true" : "false"},
              {"schedule", automatic || error ? schedule : schedule_.text()},
              {"planning", detail::to_text(planning)},
              {"emulation", detail::to_text(emulate)}},
             error.get());
  tag_ = comm_.take_tags(2);  // where a rank makes something else the counters of tags must not part
  choice_ = {.schedule = schedule_.text(), .by = "given"};
  if (automatic) choose(emulate, planning);
  std::size_t most_received = 0, most_requests = 0;
  for (int s = 0; s < schedule_.size(); ++s) {
    StageWork work{schedule_.actions(s, comm_.rank()), 0};
    work.requests = work.actions.send.size() + work.actions.receive.size();
    most_received = std::max(most_received, work.actions.receive.size());
    most_requests = std::max(most_requests, work.requests);
    work_.push_back(std::move(work));
  }
  buffer_.resize((most_received + 1) * room_);
  requests_.assign(most_requests, MPI_REQUEST_NULL);
  stamps_ = detail::LatencyStamps(emulate, tag_ + 1, most_received, most_requests);
}

bool ScheduledAllreduce::commutes() const {
  int commutes = 0;
  mpi_check(MPI_Op_commutative(op_, &commutes), "MPI_Op_commutative", comm_.get());
  return commutes;
}

void ScheduledAllreduce::choose(const EmulatedLatency& emulate, const Planning& planning) {
  detail::ChoiceRequest request;
  for (int r = 0; r < comm_.size(); ++r) request.ranks.push_back(r);
  request.plan.bytes = static_cast<double>(std::max<std::size_t>(bytes_, 1));
  request.plan.rank_order = !commutes();
  request.value_bytes = std::max<std::size_t>(bytes_, 1);
  request.emulate = emulate;
  request.program = [this](const Schedule& s) { return detail::plain_program(s, comm_.rank()); };
  choice_ = detail::choose_schedule(comm_, planning, request, tag_);
  schedule_ = Schedule::parse(choice_.schedule, comm_.size());
}

Schedule ScheduledAllreduce::parse(const std::string& text) const {
  Schedule schedule = Schedule::parse(text, comm_.size());
  if (schedule.for_sets_only())
    throw UsageError(
        "schedule " + text +
        " has a dissemination, which may bring a contribution twice: use it for partial-result sets, not for a "
        "plain allreduce");
  if (!commutes() && !keeps_rank_order(schedule))
    throw UsageError(
        "schedule " + text +
        " does not combine in rank order, but the operation does not commute: use factor stages, collapse "
        "and expand, or \"auto\"");
  return schedule;
}

void ScheduledAllreduce::measure_type() {
  MPI_Aint lower = 0, extent = 0, true_extent = 0;
  int size = 0;
  mpi_check(MPI_Type_get_extent(type_, &lower, &extent), "MPI_Type_get_extent", comm_.get());
  mpi_check(MPI_Type_get_true_extent(type_, &true_lower_, &true_extent), "MPI_Type_get_true_extent", comm_.get());
  mpi_check(MPI_Type_size(type_, &size), "MPI_Type_size", comm_.get());
  bytes_ = static_cast<std::size_t>(size) * static_cast<std::size_t>(count_);
  dense_ = size == extent && extent == true_extent && true_lower_ == 0;
  // Arrays of doubles must stay aligned whatever the number of bytes before them.
  const MPI_Aint bytes = count_ > 0 ? true_extent + (count_ - 1) * extent : 0;
  room_ = static_cast<std::size_t>((bytes + 63) / 64 * 64);
}

void ScheduledAllreduce::copy(const void* from, void* to) const {
  if (dense_) {
    MPI_Aint lower = 0, extent = 0;
    mpi_check(MPI_Type_get_extent(type_, &lower, &extent), "MPI_Type_get_extent", comm_.get());
    std::memcpy(to, from, static_cast<std::size_t>(extent * count_));
  } else {
    mpi_check(
        MPI_Sendrecv(from, count_, type_, 0, tag_, to, count_, type_, 0, tag_, MPI_COMM_SELF, MPI_STATUS_IGNORE),
        "a copy of an allreduce's result", comm_.get());
  }
}

void ScheduledAllreduce::reduce(void* in_out) {
  in_out_ = in_out;
  launch();
  wait();
}

void ScheduledAllreduce::start(void* in_out) {
  in_out_ = in_out;
  launch();
  if (work_.size() > 1) activate(this);
}

void ScheduledAllreduce::post(const StageWork& work) {
  const MPI_Comm comm = comm_.get();
  std::size_t k = 0;
  for (std::size_t i = 0; i < work.actions.receive.size(); ++i) {
    const int from = work.actions.receive[i];
    mpi_check(MPI_Irecv(origin(received(i)), count_, type_, from, tag_, comm, &requests_[k++]),
              "MPI_Irecv of an allreduce", comm);
    stamps_.expect(comm_, i, from);
  }
  for (std::size_t i = 0; i < work.actions.send.size(); ++i) {
    const int to = work.actions.send[i];
    mpi_check(MPI_Isend(in_out_, count_, type_, to, tag_, comm, &requests_[k++]), "MPI_Isend of an allreduce",
              comm);
    stamps_.send(comm_, i, to);
  }
}

bool ScheduledAllreduce::arrived(std::size_t round) {
  if (round == 0) return true;
  const StageWork& work = work_[round - 1];
  return test_all(std::span(requests_).first(work.requests), "an allreduce") &&
         stamps_.arrived(0, work.actions.receive.size()) && stamps_.sent(0, work.actions.send.size());
}

void ScheduledAllreduce::enter(std::size_t round) {
  if (round > 0) combine(work_[round - 1].actions);
  if (round < work_.size()) post(work_[round]);
}

void ScheduledAllreduce::pause(Backoff& backoff) {
  if (stamps_.on())
    detail::nap_for_emulation();
  else
    backoff.pause();
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
    if (i < actions.receive.size()) take(origin(received(i)));
  }
  if (left != in_out_) copy(left, in_out_);
}

}  // namespace isohalo
