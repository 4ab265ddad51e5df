/// The isohalo command.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "apps/isohalo/command_line.hpp"
#include "datatypes/error.hpp"
#include "datatypes/printable.hpp"

namespace {

using isohalo::ExitCode;

/// Becomes isohalo-bench, which lies beside this program. Returns only when that cannot be.
int start_bench(char** arguments) {
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  program.replace_filename("isohalo-bench");
  if (!error) {
    execv(program.c_str(), arguments);
    error.assign(errno, std::generic_category());
  }
  fmt::print(stderr, "isohalo: error: {} cannot be started ({}): build all (cmake --build) or install all\n",
             isohalo::printable(program.string()), error.message());
  return static_cast<int>(ExitCode::usage);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "bench") return start_bench(argv + 1);
  return isohalo::run_command_line(argc, argv, "isohalo", true, [](isohalo::SolverKinds&) {});
}
