#include "framework/run/run_metadata.hpp"

#include <hdf5.h>
#include <mpi.h>
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <nlohmann/json.hpp>

#include "framework/run/version.hpp"

namespace isohalo {

std::string run_metadata_json(const RunMetadata& facts) {
  nlohmann::ordered_json j;
  j["isohalo"] = kVersion;
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  j["hdf5"] = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(mpi, &length);
  const std::string text(mpi, static_cast<std::size_t>(length));
  j["mpi"] = text.substr(0, text.find('\n'));
  j["kokkos"] = std::to_string(KOKKOS_VERSION / 10000) + "." + std::to_string(KOKKOS_VERSION / 100 % 100) + "." +
                std::to_string(KOKKOS_VERSION % 100);
  j["kokkos_host_space"] = Kokkos::DefaultHostExecutionSpace::name();
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  j["host"] = host;
  j["ranks"] = facts.ranks;
  j["process_grid"] = facts.process_grid;
  j["cuts"] = facts.cuts;
  j["halo_depth"] = facts.halo_depth;
  j["exchange"] = exchange_name(facts.exchange.used);
  for (const auto& [way, seconds] : facts.exchange.seconds) j["exchange_seconds"][exchange_name(way)] = seconds;
  j["wall_s"] = facts.wall_s;
  for (const auto& t : facts.phases)
    j["phases"][t.name] = {
        {"min_s", t.min_s}, {"avg_s", t.avg_s}, {"max_s", t.max_s}, {"slowest_rank", t.slowest}, {"slow", t.slow}};
  j["command_line"] = facts.command_line;
  j["config"] = facts.config;
  // Host names and arguments may hold any bytes, and terminals show the file: plain ASCII.
  return j.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace isohalo
