#include "framework/reduce/multicast.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

namespace {

using Clock = std::chrono::steady_clock;

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

/// Buffers and requests of multicasts of up to so many messages and bytes.
class Multicaster {
 public:
  Multicaster(const Communicator& comm, const std::vector<int>& ranks, const EmulatedLatency& emulate,
              std::size_t messages, std::int64_t bytes)
      : comm_(comm), ranks_(ranks), tag_(comm.take_tags(3)), pitch_(std::max<std::int64_t>(bytes, 1)) {
    buffer_.resize(messages * static_cast<std::size_t>(pitch_));
    requests_.assign(messages + 1, MPI_REQUEST_NULL);
    stamps_ = detail::LatencyStamps(emulate, tag_ + 2, messages + 1, messages + 1);
    takes_part_ = std::find(ranks.begin(), ranks.end(), comm.rank()) != ranks.end();
  }

  /// The time at ranks[0], elsewhere 0. `turn`: the place of the first receiver among the others.
  double run(const MulticastCase& c, int turn) {
    const std::size_t others = ranks_.size() - 1;
    const auto peer = [&](int m) { return ranks_[1 + static_cast<std::size_t>(turn + m) % others]; };
    const int last = peer(c.messages - 1);
    if (comm_.rank() == ranks_[0]) return lead(c, peer, last);
    if (takes_part_) follow(c, peer, last);
    return 0;
  }

 private:
  template <class Peer>
  double lead(const MulticastCase& c, const Peer& peer, int last) {
    const auto reply = static_cast<std::size_t>(c.messages);
    receive(reply, 0, last, tag_ + 1);
    const auto start = Clock::now();
    for (int m = 0; m < c.messages; ++m) {
      const auto k = static_cast<std::size_t>(m);
      send(k, c.bytes, peer(m), tag_);
      if (c.blocking) comm_.wait(requests_[k], "a multicast");
    }
    await_arrivals(reply, reply + 1);
    const double ns = ns_since(start);
    await_sends(0, reply);
    return ns;
  }

  template <class Peer>
  void follow(const MulticastCase& c, const Peer& peer, int last) {
    std::size_t mine = 0;
    for (int m = 0; m < c.messages; ++m)
      if (peer(m) == comm_.rank()) receive(mine++, c.bytes, ranks_[0], tag_);
    await_arrivals(0, mine);
    if (last != comm_.rank()) return;
    send(0, 0, ranks_[0], tag_ + 1);
    await_sends(0, 1);
  }

  void receive(std::size_t k, std::int64_t bytes, int from, int tag) {
    mpi_check(MPI_Irecv_c(buffer_.data() + k * static_cast<std::size_t>(pitch_ * (bytes > 0)), bytes, MPI_BYTE,
                          from, tag, comm_.get(), &requests_[k]),
              "MPI_Irecv of a multicast", comm_.get());
    stamps_.expect(comm_, k, from);
  }

  void send(std::size_t k, std::int64_t bytes, int to, int tag) {
    mpi_check(MPI_Isend_c(buffer_.data(), bytes, MPI_BYTE, to, tag, comm_.get(), &requests_[k]),
              "MPI_Isend of a multicast", comm_.get());
    stamps_.send(comm_, k, to);
  }

  void await_arrivals(std::size_t first, std::size_t last) {
    comm_.wait(std::span(requests_).subspan(first, last - first), "a multicast");
    while (!stamps_.arrived(first, last)) detail::nap_for_emulation();
  }

  void await_sends(std::size_t first, std::size_t last) {
    comm_.wait(std::span(requests_).subspan(first, last - first), "a multicast");
    while (!stamps_.sent(first, last)) detail::nap_for_emulation();
  }

  Communicator comm_;
  std::vector<int> ranks_;
  int tag_;
  std::int64_t pitch_;
  std::vector<std::byte> buffer_;
  std::vector<MPI_Request> requests_;
  detail::LatencyStamps stamps_;
  bool takes_part_ = false;
};

/// The same on all ranks.
class Shuffler {
 public:
  std::uint64_t below(std::uint64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % n;
  }

 private:
  std::uint64_t state_ = 2017;
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
  Multicaster caster(comm, ranks, options.emulate, messages, bytes);
  Shuffler random;
  std::vector<std::size_t> order(cases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto start = Clock::now();
  for (int round = 0; round <= options.samples; ++round) {
    for (std::size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[random.below(n)]);
    if (round == 1)
      for (MulticastTimes& c : cases) c.ns.clear();
    for (const std::size_t k : order)
      cases[k].ns.push_back(
          caster.run(cases[k].multicast, static_cast<int>(random.below(static_cast<std::uint64_t>(ranks.size())))));
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

MessageCosts measured_costs(const Communicator& comm, const std::vector<int>& ranks,
                            const EmulatedLatency& emulate) {
  if (ranks.size() < 2) return {};
  std::vector<MulticastTimes> cases;
  for (const int messages : {1, 2, 4, 8})
    for (const std::int64_t bytes : {8, 4096}) cases.push_back({{messages, bytes}});
  time_multicasts(comm, ranks, {.samples = 100, .seconds = 0.02, .emulate = emulate}, cases);
  std::vector<MulticastPoint> points;
  for (const MulticastTimes& c : cases)
    points.push_back(
        {static_cast<double>(c.multicast.messages), static_cast<double>(c.multicast.bytes), median(c.ns)});
  return fit_costs(points);
}

}  // namespace isohalo
