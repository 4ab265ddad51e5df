#include "framework/neighborhood/neighbor_choice.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <utility>

#include "datatypes/mpi_check.hpp"

namespace isohalo {

std::int64_t messages_on(const NeighborSchedule& schedule, const Mesh& mesh) {
  const Mesh ways = schedule.ring ? Mesh({mesh.size()}, {true}) : mesh;
  std::set<std::pair<int, std::vector<int>>> distinct;
  for (const auto& step : schedule.steps) {
    std::vector<int> shift = step.shift;
    bool possible = true, moves = false;
    for (int j = 0; j < ways.dimensions(); ++j) {
      int& c = shift[static_cast<std::size_t>(j)];
      const int n = ways.extent(j);
      if (ways.periodic(j)) c = ((c % n) + n) % n;
      possible = possible && c > -n && c < n;
      moves = moves || c != 0;
    }
    if (possible && moves) distinct.emplace(step.phase, std::move(shift));
  }
  return static_cast<std::int64_t>(distinct.size());
}

AlgorithmFigures figures_of(const NeighborSchedule& schedule, const Mesh& mesh, std::int64_t block_bytes,
                            const LinkCost& link) {
  AlgorithmFigures f;
  f.algorithm = schedule.algorithm;
  f.rounds = schedule.rounds();
  f.messages = messages_on(schedule, mesh);
  f.volume_blocks = schedule.volume();
  f.predicted_s = static_cast<double>(f.messages) * link.latency_s +
                  static_cast<double>(f.volume_blocks) * static_cast<double>(block_bytes) * link.seconds_per_byte;
  return f;
}

NeighborChoice cheapest(std::vector<AlgorithmFigures> candidates, std::int64_t block_bytes) {
  NeighborChoice choice;
  choice.block_bytes = block_bytes;
  const bool timed =
      std::all_of(candidates.begin(), candidates.end(), [](const auto& f) { return f.measured_s >= 0; });
  const auto cost = [timed](const AlgorithmFigures& f) { return timed ? f.measured_s : f.predicted_s; };
  const auto best = std::min_element(candidates.begin(), candidates.end(),
                                     [&](const auto& a, const auto& b) { return cost(a) < cost(b); });
  choice.algorithm = best->algorithm;
  choice.reason = std::string(timed ? "measured" : "by the model");
  for (const auto& f : candidates) {
    char text[96];
    std::snprintf(text, sizeof text, "%s %s %.3g us", &f == candidates.data() ? ":" : ",", to_string(f.algorithm),
                  cost(f) * 1e6);
    choice.reason += text;
  }
  choice.figures = std::move(candidates);
  return choice;
}

LinkCost measured_link(const Communicator& comm) {
  if (comm.size() == 1) return {};
  const int p = comm.size(), rank = comm.rank(), tag = comm.take_tags(1);
  constexpr int small = 8, large = 1 << 16;
  std::vector<std::byte> out(large), in(large);
  const auto ring = [&](int bytes, int repeats) {
    comm.barrier();
    const auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < repeats; ++k) {
      MPI_Request r[2];
      mpi_check(MPI_Irecv(in.data(), bytes, MPI_BYTE, (rank + p - 1) % p, tag, comm.get(), &r[0]), "MPI_Irecv");
      mpi_check(MPI_Isend(out.data(), bytes, MPI_BYTE, (rank + 1) % p, tag, comm.get(), &r[1]), "MPI_Isend");
      comm.wait(r, "measured_link");
    }
    double t = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / repeats;
    comm.allreduce(&t, 1, MPI_DOUBLE, MPI_MAX);
    return t;
  };
  double t_small = 1e300, t_large = 1e300;
  for (int k = 0; k < 3; ++k) {
    t_small = std::min(t_small, ring(small, 20));
    t_large = std::min(t_large, ring(large, 4));
  }
  LinkCost link;
  link.seconds_per_byte = std::max(1e-12, (t_large - t_small) / (large - small));
  link.latency_s = std::max(1e-9, t_small - small * link.seconds_per_byte);
  return link;
}

}  // namespace isohalo
