#pragma once
/// isohalo::reduce - sums, minima, maxima whose bits do not depend on the ranks: TreeReducer for grids,
/// ArrayReducer for arrays of your own; and ScheduledAllreduce, a quick plain allreduce of any MPI type.
#include "framework/reduce/allreduce.hpp"
#include "framework/reduce/array_reducer.hpp"
#include "framework/reduce/tree_reducer.hpp"
