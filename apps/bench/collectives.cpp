/// `isohalo bench collectives`: blocking collectives through shared memory against MPI's, on the same ranks.

#include "framework/shm/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/timing.hpp"
#include "apps/bench/workloads.hpp"

namespace isohalo {

namespace {

using Bytes = std::vector<std::byte>;

/// One collective of so many bytes, ours and MPI's; `copied` of them if they go through shared memory, in and out,
/// on all ranks.
struct CollectiveCase {
  std::string name;
  std::size_t bytes;
  std::function<void()> ours, mpi;
  double copied;
  std::function<bool()> right = [] { return true; };  ///< after ours, where it can tell
};

class CollectiveSuite {
 public:
  CollectiveSuite(const Communicator& comm, NodeCollectives& node, std::size_t largest)
      : comm_(comm),
        node_(node),
        p_(static_cast<std::size_t>(comm.size())),
        send_(largest),
        receive_(largest),
        sum_(*Combine::of(MPI_DOUBLE, MPI_SUM)) {
    for (std::size_t i = 0; i * 8 + 8 <= largest; ++i)
      set(send_, i, comm.rank() + 1.0 + static_cast<double>(i % 7));
    cases_.push_back(
        {"barrier", 0, [this] { node_.run(Collective::barrier()); }, [this] { MPI_Barrier(comm_.get()); }, 0});
    for (std::size_t n = 8; n <= largest; n *= 4) add(n);
  }
  const std::vector<CollectiveCase>& cases() const { return cases_; }

 private:
  static void set(Bytes& v, std::size_t i, double x) { std::memcpy(v.data() + 8 * i, &x, 8); }
  static double get(const Bytes& v, std::size_t i) {
    double x = 0;
    std::memcpy(&x, v.data() + 8 * i, 8);
    return x;
  }
  /// Element i summed over the ranks: whole numbers, exact.
  double sum(std::size_t i) const {
    const auto p = static_cast<double>(p_);
    return p * (p + 1) / 2 + p * static_cast<double>(i % 7);
  }

  void add(std::size_t n) {
    const std::size_t count = n / 8, part = n / p_ / 8 * 8;
    const int m = static_cast<int>(count), k = static_cast<int>(part / 8);
    const auto p = static_cast<double>(p_), b = static_cast<double>(n), others = (p - 1) / p;
    std::byte *const out = receive_.data(), *const in = send_.data();
    cases_.push_back(
        {"allreduce", n, [=, this] { node_.run(Collective::allreduce(in, out, count, sum_)); },
         [=, this] { MPI_Allreduce(in, out, m, MPI_DOUBLE, MPI_SUM, comm_.get()); }, (2 * p * others + 2) * b,
         [=, this] { return get(receive_, 0) == sum(0) && get(receive_, count - 1) == sum(count - 1); }});
    cases_.push_back({"reduce", n, [=, this] { node_.run(Collective::reduce(in, out, count, sum_, 0)); },
                      [=, this] { MPI_Reduce(in, out, m, MPI_DOUBLE, MPI_SUM, 0, comm_.get()); }, p * b,
                      [=, this] { return comm_.rank() != 0 || get(receive_, count - 1) == sum(count - 1); }});
    cases_.push_back({"broadcast", n, [=, this] { node_.run(Collective::broadcast(out, n, 0)); },
                      [=, this] { MPI_Bcast(out, m, MPI_DOUBLE, 0, comm_.get()); }, p * b});
    if (part == 0) return;
    cases_.push_back({"allgather", n, [=, this] { node_.run(Collective::allgather(in, part, out)); },
                      [=, this] { MPI_Allgather(in, k, MPI_DOUBLE, out, k, MPI_DOUBLE, comm_.get()); }, (1 + p) * b,
                      [=, this] { return get(receive_, part / 8 * (p_ - 1)) == p; }});
  }

  const Communicator& comm_;
  NodeCollectives& node_;
  std::size_t p_;
  Bytes send_, receive_;
  Combine sum_;
  std::vector<CollectiveCase> cases_;
};

/// Microseconds of a call of ours and of MPI's, in unsynchronised loops, on rank 0.
Turns measure(const Communicator& comm, const CollectiveCase& c, int repeats, bool& right) {
  c.ours();
  right = comm.min(c.right()) == 1 && right;
  c.mpi();
  const auto loop_of = [&](const std::function<void()>& call, int tries) {
    const int count = calls_in(comm, 0.004, looped_calls(comm, tries, call), 5000);
    return [&comm, &call, count] { return 1e6 * looped_calls(comm, count, call); };
  };
  return Turns(repeats, {loop_of(c.ours, 10), loop_of(c.mpi, 3)});
}

/// Bytes per microsecond that a rank copies within its cache while all do.
double copy_rate(const Communicator& comm) {
  Bytes from(std::size_t{128} << 10), to(from.size());
  const double s =
      timed_calls(comm, 200, [&] { std::memcpy(to.data(), from.data(), from.size()), from[0] = to[1]; });
  return static_cast<double>(from.size()) * 1e-6 / s;
}

}  // namespace

ExitCode bench_collectives(MPI_Comm user, const BenchCollectivesOptions& options) {
  if (options.model) return bench_collectives_model(user, options);
  const Communicator comm = Communicator::of(user);
  const auto node = node_collectives(comm, "bench collectives", options.hierarchy);
  const double rate = copy_rate(comm);
  CollectiveSuite suite(comm, *node, options.largest);
  bool right = true;
  double logs = 0;
  Json json = report_of("collectives");
  json.update({{"ranks", comm.size()}, {"hierarchy", node->hierarchy().text()}, {"copy_bytes_per_us", rate}});
  for (const CollectiveCase& c : suite.cases()) {
    const Turns turns = measure(comm, c, options.repeats, right);
    const double ours = turns.middle(0), ratio = turns.ratio(1, 0);
    logs += std::log(ratio);
    Json row{{"collective", c.name},
             {"bytes", c.bytes},
             {"isohalo_us", ours},
             {"mpi_us", turns.middle(1)},
             {"mpi_over_isohalo", ratio}};
    if (c.bytes >= 65536) {
      row["bytes_moved"] = c.copied;
      row["of_copy_rate"] = c.copied / static_cast<double>(comm.size()) / rate / ours;
    }
    json["cases"].push_back(row);
  }
  json["geometric_mean"] = std::exp(logs / static_cast<double>(suite.cases().size()));
  json["right"] = right;
  return print_report(user, options.json, json, right);
}

}  // namespace isohalo
