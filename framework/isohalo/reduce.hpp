#pragma once
/// isohalo::reduce - sums, minima, maxima whose bits do not depend on the ranks: TreeReducer.
#include "framework/reduce/tree_reducer.hpp"
