#include <fmt/format.h>

#include <filesystem>

#include "apps/isohalo/commands.hpp"
#include "apps/isohalo/compare_options.hpp"
#include "apps/isohalo/compare_report.hpp"
#include "datatypes/printable.hpp"
#include "framework/io/readable.hpp"
#include "framework/mpi/agreement.hpp"

namespace isohalo {

namespace {

bool is_digest_log(const std::string& file) {
  return std::filesystem::path(file).extension() == ".txt";
}

ExitCode compare_log_files(const Communicator& c, const CompareRequest& request) {
  if (!request.abs.empty() || !request.rel.empty() || !request.ulp.empty() || !request.ignore.empty())
    throw UsageError("digest logs are equal or not: --abs, --rel, --ulp and --ignore are for checkpoints");
  DigestLogComparison result;
  agreed(c, [&] { result = compare_digest_logs(read_digest_log(request.a), read_digest_log(request.b)); });
  if (c.rank() == 0)
    fmt::print("{}", request.json ? digest_logs_json(result, request.a, request.b) : digest_logs_text(result));
  return result.same() ? ExitCode::fine : ExitCode::different;
}

}  // namespace

ExitCode compare_command(MPI_Comm comm, const CompareRequest& request) {
  const Communicator c = Communicator::of(comm);
  if (is_digest_log(request.a) && is_digest_log(request.b)) return compare_log_files(c, request);
  const Comparison result =
      compare_checkpoints(pinned(request.a, c), pinned(request.b, c), c, compare_options(request));
  if (c.rank() == 0) {
    for (const auto& line : result.warnings) fmt::print(stderr, "isohalo: warning: {}\n", printable(line));
    fmt::print("{}", request.json ? comparison_json(result, request.a, request.b) : comparison_text(result));
  }
  return result.same() ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
