/// `isohalo bench collectives`: blocking collectives through shared memory against MPI's, on the same ranks.

#include "framework/shm/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/timing.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

using Json = nlohmann::ordered_json;
using Bytes = std::vector<std::byte>;

/// One collective of so many bytes, ours and MPI's; `copied` of them through shared memory, in and out, on all
/// ranks.
struct CollectiveCase {
  std::string name;
  std::size_t bytes;
  std::function<void()> ours, mpi;
  double copied;
  std::function<bool()> right = [] { return true; };  ///< after ours, where it can tell
};

struct CollectiveFigures {
  const CollectiveCase* c;
  double ours_us, mpi_us, ratio;  ///< medians; of the pairs
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
    cases_.push_back({"barrier", 0, [this] { node_.barrier(); }, [this] { MPI_Barrier(comm_.get()); }, 0});
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
        {"allreduce", n, [=, this] { node_.allreduce(in, out, count, sum_); },
         [=, this] { MPI_Allreduce(in, out, m, MPI_DOUBLE, MPI_SUM, comm_.get()); }, (2 * p * others + 2) * b,
         [=, this] { return get(receive_, 0) == sum(0) && get(receive_, count - 1) == sum(count - 1); }});
    cases_.push_back({"reduce", n, [=, this] { node_.reduce(in, out, count, sum_, 0); },
                      [=, this] { MPI_Reduce(in, out, m, MPI_DOUBLE, MPI_SUM, 0, comm_.get()); }, p * b,
                      [=, this] { return comm_.rank() != 0 || get(receive_, count - 1) == sum(count - 1); }});
    cases_.push_back({"broadcast", n, [=, this] { node_.broadcast(out, n, 0); },
                      [=, this] { MPI_Bcast(out, m, MPI_DOUBLE, 0, comm_.get()); }, p * b});
    if (part == 0) return;
    cases_.push_back({"allgather", n, [=, this] { node_.allgather(in, part, out); },
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

/// Microseconds of a call in an unsynchronised loop, on rank 0.
double microseconds(const Communicator& comm, const std::function<void()>& call, int count) {
  comm.barrier();
  const double start = MPI_Wtime();
  for (int k = 0; k < count; ++k) call();
  return (MPI_Wtime() - start) / count * 1e6;
}

CollectiveFigures measure(const Communicator& comm, const CollectiveCase& c, int repeats, bool& right) {
  c.ours();
  right = comm.min(c.right()) == 1 && right;
  c.mpi();
  const auto often = [&](double us, double total_us) {
    double n = std::clamp(total_us / std::max(us, 0.02), 3.0, 5000.0);
    comm.allreduce(&n, 1, MPI_DOUBLE, MPI_MIN);
    return static_cast<int>(n);
  };
  const int ours_count = often(microseconds(comm, c.ours, 10), 4000),
            mpi_count = often(microseconds(comm, c.mpi, 3), 4000);
  std::vector<double> ours, mpi, ratio;
  for (int k = 0; k < repeats; ++k) {
    ours.push_back(microseconds(comm, c.ours, ours_count));
    mpi.push_back(microseconds(comm, c.mpi, mpi_count));
    ratio.push_back(mpi.back() / ours.back());
  }
  return {&c, median(ours), median(mpi), median(ratio)};
}

/// Bytes per microsecond that a rank copies within its cache while all do.
double copy_rate(const Communicator& comm) {
  Bytes from(std::size_t{128} << 10), to(from.size());
  const double us = timed(comm,
                          [&] {
                            for (int k = 0; k < 200; ++k)
                              std::memcpy(to.data(), from.data(), from.size()), from[0] = to[1];
                          }) *
                    1e6 / 200;
  return static_cast<double>(from.size()) / us;
}

}  // namespace

ExitCode bench_collectives(MPI_Comm user, const BenchCollectivesOptions& options) {
  const Communicator comm = Communicator::of(user);
  if (comm.ranks_on_node() != comm.size())
    throw UsageError("bench collectives: all ranks must share a compute node");
  NodeCollectivesOptions how{.spins = comm.spins()};
  if (!options.hierarchy.empty()) how.hierarchy = Hierarchy::of_text(options.hierarchy, comm.size());
  const auto node = NodeCollectives::make(comm.get(), how);
  if (!node) throw UsageError("bench collectives: the system gives no shared memory");
  const double rate = copy_rate(comm);
  CollectiveSuite suite(comm, *node, options.largest);
  bool right = true;
  double logs = 0;
  Json json{{"benchmark", "collectives"},
            {"machine", machine_text()},
            {"ranks", comm.size()},
            {"copy_bytes_per_us", rate},
            {"cases", Json::array()}};
  if (comm.rank() == 0 && !options.json)
    fmt::print(
        "{}\n{} ranks; a rank copies {:.1f} GB/s in its cache; us per call, unsynchronised loops, median of {}\n",
        machine_text(), comm.size(), rate / 1e3, options.repeats);
  for (const CollectiveCase& c : suite.cases()) {
    const CollectiveFigures f = measure(comm, c, options.repeats, right);
    logs += std::log(f.ratio);
    Json row{{"collective", c.name},
             {"bytes", c.bytes},
             {"isohalo_us", f.ours_us},
             {"mpi_us", f.mpi_us},
             {"mpi_over_isohalo", f.ratio}};
    std::string moved;
    if (c.bytes >= 65536) {
      const double part = c.copied / static_cast<double>(comm.size()) / rate / f.ours_us;
      row["bytes_moved"] = c.copied;
      row["of_copy_rate"] = part;
      moved = fmt::format("  {:8.0f} KiB moved, {:.2f} of the copy rate", c.copied / 1024, part);
    }
    json["cases"].push_back(row);
    if (comm.rank() == 0 && !options.json)
      fmt::print("{:<10} {:>9} B  {:10.3f}  MPI {:10.3f}  {:7.2f} times as fast{}\n", c.name, c.bytes, f.ours_us,
                 f.mpi_us, f.ratio, moved);
  }
  const double mean = std::exp(logs / static_cast<double>(suite.cases().size()));
  json["geometric_mean"] = mean;
  json["right"] = right;
  if (comm.rank() == 0 && options.json) fmt::print("{}\n", json.dump(2));
  if (comm.rank() == 0 && !options.json)
    fmt::print("geometric mean: {:.2f} times as fast as MPI{}\n", mean, right ? "" : "; WRONG RESULTS");
  return right ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
