#pragma once
/// What is wrong with a command line, in words that say what would be right.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace isohalo {

/// One line for the error that parsing `arguments` (without the program's name) ended with. Local.
std::string usage_error(const CLI::App& app, const std::vector<std::string>& arguments,
                        const CLI::ParseError& error);

}  // namespace isohalo
