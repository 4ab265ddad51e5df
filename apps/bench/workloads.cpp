/// `isohalo bench workloads`: programs that spend their time in collectives, with MPI's and with ours.
///
/// Source: Li, Hoefler, Snir 2013, "NUMA-aware shared-memory collective communication for MPI", sections 3.5
/// and 3.7.

#include "apps/bench/workloads.hpp"

#include <algorithm>
#include <array>

#include "apps/bench/timing.hpp"
#include "datatypes/mpi_check.hpp"

namespace isohalo {

namespace {

template <class T>
const std::byte* bytes(const T* data) {
  return reinterpret_cast<const std::byte*>(data);
}
template <class T>
std::byte* bytes(T* data) {
  return reinterpret_cast<std::byte*>(data);
}

struct Workload {
  const char* name;
  Json (*run)(WorkloadSides&, const BenchWorkloadsOptions&);
};
constexpr std::array<Workload, 3> kWorkloads{
    {{"matvec", run_matvec}, {"barnes-hut", run_barnes_hut}, {"openmp-reduce", run_openmp_reduce}}};

}  // namespace

std::unique_ptr<NodeCollectives> node_collectives(const Communicator& comm, const std::string& bench,
                                                  const std::string& hierarchy) {
  if (comm.ranks_on_node() != comm.size()) throw UsageError(bench + ": all ranks must share a compute node");
  NodeCollectivesOptions how{.spins = comm.spins()};
  if (!hierarchy.empty()) how.hierarchy = Hierarchy::of_text(hierarchy, comm.size());
  auto node = NodeCollectives::make(comm.get(), how);
  if (!node) throw UsageError(bench + ": the system gives no shared memory");
  return node;
}

WorkloadCollectives::WorkloadCollectives(MPI_Comm comm, NodeCollectives* node)
    : comm_(comm),
      node_(node),
      doubles_(*Combine::of(MPI_DOUBLE, MPI_SUM)),
      integers_(*Combine::of(MPI_INT64_T, MPI_SUM)) {}

void WorkloadCollectives::scatter(const double* all, std::size_t count, double* mine) {
  if (node_) return node_->run(Collective::scatter(bytes(all), count * sizeof(double), bytes(mine), 0));
  const int n = static_cast<int>(count);
  mpi_check(MPI_Scatter(all, n, MPI_DOUBLE, mine, n, MPI_DOUBLE, 0, comm_), "MPI_Scatter", comm_);
}

void WorkloadCollectives::broadcast(double* data, std::size_t count) {
  if (node_) return node_->run(Collective::broadcast(bytes(data), count * sizeof(double), 0));
  mpi_check(MPI_Bcast(data, static_cast<int>(count), MPI_DOUBLE, 0, comm_), "MPI_Bcast", comm_);
}

void WorkloadCollectives::reduce(const double* mine, double* sum, std::size_t count) {
  if (node_) return node_->run(Collective::reduce(bytes(mine), bytes(sum), count, doubles_, 0));
  mpi_check(MPI_Reduce(mine, sum, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, 0, comm_), "MPI_Reduce", comm_);
}

void WorkloadCollectives::allreduce(const std::int64_t* mine, std::int64_t* sum, std::size_t count) {
  if (node_) return node_->run(Collective::allreduce(bytes(mine), bytes(sum), count, integers_));
  mpi_check(MPI_Allreduce(mine, sum, static_cast<int>(count), MPI_INT64_T, MPI_SUM, comm_), "MPI_Allreduce", comm_);
}

Json compare_sides(WorkloadSides& sides, const std::vector<std::string>& names,
                   const std::function<std::vector<double>(WorkloadCollectives&)>& run) {
  std::vector<Turns> turns(names.size());
  for (int k = 0; k < sides.repeats; ++k) {
    std::vector<double> us, them;
    if (k % 2 == 0) us = run(sides.ours);
    them = run(sides.mpi);
    if (k % 2 == 1) us = run(sides.ours);
    for (std::size_t i = 0; i < names.size(); ++i) turns[i].add({us[i], them[i]});
  }
  Json phases;
  for (std::size_t i = 0; i < names.size(); ++i)
    phases.push_back({{"phase", names[i]},
                      {"isohalo_s", turns[i].middle(0)},
                      {"mpi_s", turns[i].middle(1)},
                      {"mpi_over_isohalo", turns[i].ratio(1, 0)}});
  return phases;
}

ExitCode bench_workloads(MPI_Comm user, const BenchWorkloadsOptions& options) {
  const Communicator comm = Communicator::of(user);
  const auto node = node_collectives(comm, "bench workloads");
  WorkloadSides sides{comm, {comm.get(), node.get()}, {comm.get(), nullptr}, options.repeats};
  Json json = report_of("workloads");
  json.update({{"ranks", comm.size()}, {"repeats", options.repeats}, {"workloads", Json::array()}});
  bool right = true;
  Cases cases(options.cases);
  for (const Workload& w : kWorkloads)
    cases.add(w.name, [&] {
      Json& all = json["workloads"].emplace_back(Json{{"workload", w.name}});
      all.update(w.run(sides, options));
      right = right && all["right"];
    });
  cases.measure("bench workloads");
  json["right"] = right;
  return print_report(user, options.json, json, right);
}

}  // namespace isohalo
