#include "framework/reduce/multicast.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <random>

#include "datatypes/error.hpp"
#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

namespace {

using Clock = std::chrono::steady_clock;

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

/// Multicasts of up to so many messages and bytes by ranks[0] to the others.
class Multicaster {
 public:
  Multicaster(const Communicator& comm, const std::vector<int>& ranks, std::size_t messages, std::int64_t bytes)
      : comm_(comm),
        ranks_(ranks),
        tag_(comm.take_tags(2)),
        pitch_(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))),
        buffer_(messages * pitch_),
        requests_(messages, MPI_REQUEST_NULL) {}

  /// The time at ranks[0], elsewhere 0. `turn`: the place of the first receiver among the others.
  double run(const MulticastCase& c, int turn) {
    const auto peer = [&](int m) { return ranks_[1 + static_cast<std::size_t>(turn + m) % (ranks_.size() - 1)]; };
    const int last = peer(c.messages - 1);
    std::size_t mine = 0;
    if (comm_.rank() == ranks_[0]) {
      MPI_Request reply = MPI_REQUEST_NULL;
      receive(0, 0, last, tag_ + 1, reply);
      const auto start = Clock::now();
      for (int m = 0; m < c.messages; ++m) {
        send(c.bytes, peer(m), tag_, requests_[mine]);
        if (c.blocking) comm_.wait(requests_[mine], kPlace);
        ++mine;
      }
      comm_.wait(reply, kPlace);
      const double ns = ns_since(start);
      comm_.wait(std::span(requests_).first(mine), kPlace);
      return ns;
    }
    for (int m = 0; m < c.messages; ++m)
      if (peer(m) == comm_.rank()) receive(mine, c.bytes, ranks_[0], tag_, requests_[mine]), ++mine;
    comm_.wait(std::span(requests_).first(mine), kPlace);
    if (last != comm_.rank()) return 0;
    send(0, ranks_[0], tag_ + 1, requests_[0]);
    comm_.wait(requests_[0], kPlace);
    return 0;
  }

 private:
  static constexpr const char* kPlace = "a multicast";

  void receive(std::size_t k, std::int64_t bytes, int from, int tag, MPI_Request& request) {
    mpi_check(mpi::irecv(buffer_.data() + k * pitch_, bytes, MPI_BYTE, from, tag, comm_.get(), &request),
              "MPI_Irecv of a multicast", comm_.get());
  }
  void send(std::int64_t bytes, int to, int tag, MPI_Request& request) {
    mpi_check(mpi::isend(buffer_.data(), bytes, MPI_BYTE, to, tag, comm_.get(), &request),
              "MPI_Isend of a multicast", comm_.get());
  }

  Communicator comm_;
  std::vector<int> ranks_;
  int tag_;
  std::size_t pitch_;
  std::vector<std::byte> buffer_;
  std::vector<MPI_Request> requests_;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.size() % 2 ? v[v.size() / 2] : 0.5 * (v[v.size() / 2 - 1] + v[v.size() / 2]);
}

}  // namespace

void time_multicasts(const Communicator& comm, const std::vector<int>& ranks, const MulticastOptions& options,
                     std::vector<MulticastTimes>& cases) {
  if (ranks.size() < 2) throw UsageError("a multicast needs at least 2 ranks: start more");
  std::size_t messages = 1;
  std::int64_t bytes = 0;
  for (const MulticastTimes& c : cases) {
    messages = std::max(messages, static_cast<std::size_t>(c.multicast.messages));
    bytes = std::max(bytes, c.multicast.bytes);
  }
  Multicaster caster(comm, ranks, messages, bytes);
  std::mt19937_64 random(2017);  // the same on all ranks
  std::vector<std::size_t> order(cases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto start = Clock::now();
  for (int lap = 0; lap <= options.samples; ++lap) {
    std::shuffle(order.begin(), order.end(), random);
    if (lap == 1)
      for (MulticastTimes& c : cases) c.ns.clear();
    for (const std::size_t k : order)
      cases[k].ns.push_back(caster.run(cases[k].multicast, static_cast<int>(random() % ranks.size())));
    std::int64_t go_on = ns_since(start) < options.seconds * 1e9;
    comm.broadcast(&go_on, sizeof go_on, ranks[0]);
    if (!go_on) break;
  }
  for (MulticastTimes& c : cases)
    comm.broadcast(c.ns.data(), static_cast<std::int64_t>(c.ns.size() * sizeof(double)), ranks[0]);
}

MessageCosts fit_costs(std::span<const MulticastPoint> points) {
  double smallest = points.empty() ? 0 : points[0].bytes;
  for (const MulticastPoint& p : points) smallest = std::min(smallest, p.bytes);
  double n = 0, k = 0, t = 0, kk = 0, kt = 0;
  std::map<double, double> base;  // time of the smallest size by number of messages
  for (const MulticastPoint& p : points) {
    if (p.bytes != smallest) continue;
    n += 1, k += p.messages, t += p.ns, kk += p.messages * p.messages, kt += p.messages * p.ns;
    base[p.messages] = p.ns;
  }
  if (base.size() < 2)
    throw UsageError("a fit of message costs needs times of two numbers of messages of the smallest size");
  const double slope = (n * kt - k * t) / (n * kk - k * k), start = (t - slope * k) / n;
  std::vector<double> per_byte;
  for (const MulticastPoint& p : points)
    if (const auto at = base.find(p.messages); p.bytes != smallest && at != base.end())
      per_byte.push_back((p.ns - at->second) / (p.messages * (p.bytes - smallest)));
  MessageCosts costs;
  costs.per_byte_ns = per_byte.empty() ? 0 : std::max(0.0, median(per_byte));
  costs.pipeline_ns = std::max(0.0, slope - smallest * costs.per_byte_ns);
  costs.latency_ns = std::max(0.0, (start - costs.pipeline_ns) / 2);
  return costs;
}

MessageCosts measured_costs(const Communicator& comm, const std::vector<int>& ranks) {
  if (ranks.size() < 2) return {};
  std::vector<MulticastTimes> cases;
  for (const int messages : {1, 2, 4, 8})
    for (const std::int64_t bytes : {8, 4096}) cases.push_back({{messages, bytes}});
  time_multicasts(comm, ranks, {.samples = 100, .seconds = 0.02}, cases);
  std::vector<MulticastPoint> points;
  for (const MulticastTimes& c : cases)
    points.push_back(
        {static_cast<double>(c.multicast.messages), static_cast<double>(c.multicast.bytes), median(c.ns)});
  return fit_costs(points);
}

}  // namespace isohalo
