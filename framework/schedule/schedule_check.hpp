#pragma once
/// Is a schedule an allreduce? The numbers of its stages, and a run with values.

#include <cstdint>
#include <span>

#include "framework/schedule/schedule.hpp"

namespace isohalo {

/// Throws UsageError unless after the last stage every rank holds the contribution of every rank exactly once, or,
/// if the schedule is for sets only, at least once. Runs the schedule in process; O(messages) time, O(ranks)
/// memory.
///
/// Sets are compared exactly, as sorted lists of intervals of ranks. Plain schedules are run on random numbers, one
/// per rank, added modulo 2^64, and each rank must end with the sum over all ranks. A schedule in which every
/// contribution arrives once always passes. One that loses or doubles a contribution passes only if a random
/// combination of the numbers is zero: with probability 2^-64 (the numbers are fixed, so it is the same verdict on
/// every rank and in every run). What a refused one lacks is worked out exactly for the rank it names.
void check_allreduce(const Schedule& schedule);

/// Whether combining in the order of StageActions keeps the contributions in rank order, so that an associative
/// operation that does not commute gives x_0 op x_1 op .. op x_{p-1}. True for factor, collapse and expand stages
/// and for merges into one group; false with more groups and for sets. O(messages).
bool keeps_rank_order(const Schedule& schedule);

/// What a schedule may have at most, so that it is checked in reasonable time and memory.
inline constexpr std::int64_t kMostScheduleMessages = 4'000'000'000;
inline constexpr int kMostScheduleRanks = 1 << 24;

namespace detail {

/// Throws UsageError when the numbers of a stage are wrong in themselves or against the stages before it.
void check_numbers(std::span<const Stage> stages, int ranks, int stage);

/// Throws UsageError when the groups of a stage do not cover the `active` ranks, `product` being that of the
/// earlier bases, or when it makes that pass 2^62.
void check_groups(std::span<const Stage> stages, int ranks, int stage, std::int64_t product, std::int64_t active);

}  // namespace detail

}  // namespace isohalo
