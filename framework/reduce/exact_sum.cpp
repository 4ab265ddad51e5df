#include "framework/reduce/exact_sum.hpp"

namespace isohalo::detail {

void ExactSum::use_schedule(const std::string& text, const Planning& planning) {
  scheduled_.reset();
  scheduled_ = std::make_unique<ScheduledAllreduce>(comm_.get(), static_cast<int>(sum_.words().size()), MPI_INT64_T,
                                                    MPI_SUM, text, planning);
}

void ExactSum::start() {
  sum_.settle();
  scheduled_->start(sum_.words().data());
}

}  // namespace isohalo::detail
