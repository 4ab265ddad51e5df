#include "framework/reduce/exact_sum.hpp"

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

void ExactSum::use_schedule(const std::string& text, const Planning& planning, int root) {
  root_ = root;
  scheduled_.reset();
  if (text == "auto" && planning.by == PlanBy::model) return;
  scheduled_ = std::make_unique<ScheduledAllreduce>(comm_.get(), static_cast<int>(sum_.words().size()), MPI_INT64_T,
                                                    MPI_SUM, text, planning);
}

void ExactSum::start() {
  sum_.settle();
  if (scheduled_) return scheduled_->start(sum_.words().data());
  if (comm_.size() == 1) return;
  auto* const words = sum_.words().data();
  const int count = static_cast<int>(sum_.words().size());
  if (root_ < 0)
    mpi_check(MPI_Iallreduce(MPI_IN_PLACE, words, count, MPI_INT64_T, MPI_SUM, comm_.get(), &request_),
              "MPI_Iallreduce of an exact sum", comm_.get());
  else
    mpi_check(MPI_Ireduce(root_ == comm_.rank() ? MPI_IN_PLACE : words, words, count, MPI_INT64_T, MPI_SUM, root_,
                          comm_.get(), &request_),
              "MPI_Ireduce of an exact sum", comm_.get());
}

bool ExactSum::test() {
  return scheduled_ ? scheduled_->test() : test_all({&request_, 1}, "an exact sum", comm_.get());
}

}  // namespace isohalo::detail
