#pragma once
/// The steps of a schedule of a compute node's ranks as a drawing: who reads what from whom.

#include <string>

#include "framework/shm/node_cost.hpp"

namespace isohalo {

/// SVG: a column per rank, groups of a level boxed, a row per stage and one for results of the last; arrows go from
/// what is read to its reader. `bytes`: of the vector whose time stands in the title.
std::string to_svg(const NodeSchedule& schedule, const Hierarchy& hierarchy, const NodeCosts& costs,
                   const std::string& name, double bytes);

}  // namespace isohalo
