#include "framework/reduce/exact_sum.hpp"

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

void ExactSum::use_schedule(const std::string& text, const Planning& planning) {
  scheduled_.reset();
  if (text == "auto" && !planning.asks()) return;
  scheduled_ = std::make_unique<ScheduledAllreduce>(comm_.get(), static_cast<int>(sum_.words().size()), MPI_INT64_T,
                                                    MPI_SUM, text, EmulatedLatency{}, planning);
}

void ExactSum::start(std::span<const double> addends) {
  sum_.clear();
  for (const double v : addends) sum_.add(v);
  sum_.settle();
  if (scheduled_)
    scheduled_->start(sum_.words().data());
  else if (comm_.size() > 1)
    mpi_check(MPI_Iallreduce(MPI_IN_PLACE, sum_.words().data(), static_cast<int>(sum_.words().size()), MPI_INT64_T,
                             MPI_SUM, comm_.get(), &request_),
              "MPI_Iallreduce of an exact sum", comm_.get());
}

bool ExactSum::test() {
  if (scheduled_) return scheduled_->test();
  int done = 0;
  mpi_check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test of an exact sum", comm_.get());
  return done;
}

}  // namespace isohalo::detail
