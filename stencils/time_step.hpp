#pragma once
/// The keys solver.dt and solver.cfl.

#include <string>

#include "framework/run/config.hpp"

namespace isohalo {

/// A step as it is given, or as a part of the largest stable one. Records errors, above `limit` too.
/// `help_limit` and `limit_text` are its formula as help and messages have it.
double read_time_step(Config& config, double limit, const std::string& help_limit, const std::string& limit_text);

/// A step that must be given.
double read_time_step(Config& config);

}  // namespace isohalo
