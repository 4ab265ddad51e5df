/// `isohalo bench neighborhood`: the experiments of "Isomorphic, Sparse MPI-like Collective Communication
/// Operations" (Träff, Lübbe, Rougier, Hunold 2015), section 7: set-up times (Figs. 2, 3), alltoallw against
/// MPI_Neighbor_alltoallw (Figs. 4 to 6), the order of neighbors (Fig. 7) and stencil kernels (Figs. 8, 9).
///
/// Every method is checked with a value of its own per (rank, block) before it is timed; a wrong result is reported
/// instead of a time.

#include <algorithm>
#include <functional>
#include <random>
#include <utility>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/experiment.hpp"
#include "apps/bench/owned_comm.hpp"
#include "apps/bench/timing.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/neighborhood/offsets.hpp"

namespace isohalo {

namespace {

using List = std::vector<int>;

/// As adjacent_graph, by the call that is told the targets alone.
OwnedComm graph_of(MPI_Comm user, const IsomorphicNeighborhood& n) {
  OwnedComm graph;
  const auto to = n.present_targets();
  int rank = 0;
  MPI_Comm_rank(user, &rank);
  const int degree = static_cast<int>(to.size());
  mpi_check(
      MPI_Dist_graph_create(user, 1, &rank, &degree, to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph.comm),
      "MPI_Dist_graph_create");
  return graph;
}

/// Buffers of one neighborhood and block size, and the ways to exchange them.
class NeighborExchange {
 public:
  NeighborExchange(MPI_Comm cart, const List& list, std::int64_t bytes, Algorithm algorithm)
      : iso_(cart, list), bytes_(bytes), s_(static_cast<std::size_t>(iso_.neighbors().count())) {
    iso_.set_algorithm(algorithm);
    send_.resize(s_ * size());
    receive_.resize(s_ * size());
    const auto &to = iso_.neighbors().targets(), &from = iso_.neighbors().sources();
    for (std::size_t i = 0; i < s_; ++i) {
      const auto at = static_cast<MPI_Aint>(i * size());
      all_displacements_.push_back(at);
      if (to[i] != Mesh::no_rank) send_displacements_.push_back(at);
      if (from[i] != Mesh::no_rank) receive_displacements_.push_back(at);
    }
    counts_.assign(s_, static_cast<int>(bytes));
    types_.assign(s_, MPI_BYTE);
    fill();
  }

  void ours_w() {
    iso_.execute(NeighborCall::alltoallw(iso_.neighbors(), send_.data(), counts_, all_displacements_, types_,
                                         receive_.data(), counts_, all_displacements_, types_));
  }
  void ours() {
    iso_.execute(NeighborCall::alltoall(iso_.neighbors(), send_.data(), bytes_, MPI_BYTE, receive_.data(), bytes_,
                                        MPI_BYTE));
  }
  /// On a graph communicator without absent neighbors.
  void mpi_w(MPI_Comm graph) {
    mpi_check(MPI_Neighbor_alltoallw(send_.data(), counts_.data(), send_displacements_.data(), types_.data(),
                                     receive_.data(), counts_.data(), receive_displacements_.data(), types_.data(),
                                     graph),
              "MPI_Neighbor_alltoallw");
  }
  /// On a Cartesian communicator, for lists of steps of one: MPI's own order of them, and what comes from a
  /// neighbor is what it sends in the opposite direction.
  void mpi_cart_w(MPI_Comm cart) {
    std::vector<MPI_Aint> to, from;
    const auto place = [&](int j, int sign) {
      const auto list = iso_.neighbors().relative();
      for (std::size_t i = 0; i < s_; ++i)
        if (list[2 * i + static_cast<std::size_t>(j)] == sign) return all_displacements_[i];
      throw UsageError("bench neighborhood: not a list of steps of one");
    };
    for (const int j : {0, 1})
      for (const int sign : {-1, 1}) to.push_back(place(j, sign)), from.push_back(place(j, -sign));
    mpi_check(MPI_Neighbor_alltoallw(send_.data(), counts_.data(), to.data(), types_.data(), receive_.data(),
                                     counts_.data(), from.data(), types_.data(), cart),
              "MPI_Neighbor_alltoallw");
  }
  /// One MPI_Isend and MPI_Irecv per neighbor.
  void by_hand() {
    const Communicator& comm = iso_.comm();
    const auto &to = iso_.neighbors().targets(), &from = iso_.neighbors().sources();
    requests_.clear();
    const int n = static_cast<int>(bytes_);
    for (std::size_t i = 0; i < s_; ++i)
      if (from[i] != Mesh::no_rank)
        mpi_check(MPI_Irecv(receive_.data() + i * size(), n, MPI_BYTE, from[i], static_cast<int>(i), comm.get(),
                            &requests_.emplace_back()),
                  "MPI_Irecv");
    for (std::size_t i = 0; i < s_; ++i)
      if (to[i] != Mesh::no_rank)
        mpi_check(MPI_Isend(send_.data() + i * size(), n, MPI_BYTE, to[i], static_cast<int>(i), comm.get(),
                            &requests_.emplace_back()),
                  "MPI_Isend");
    mpi_check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
              "MPI_Waitall");
  }

  template <class Run>
  bool right(Run&& run) {
    std::fill(receive_.begin(), receive_.end(), std::byte{0xee});
    run();
    for (std::size_t i = 0; i < s_; ++i) {
      const int from = iso_.neighbors().sources()[i];
      for (std::size_t k = 0; k < size(); ++k)
        if (receive_[i * size() + k] != (from == Mesh::no_rank ? std::byte{0xee} : value(from, i, k))) return false;
    }
    return true;
  }
  const IsomorphicNeighborhood& neighbors() const { return iso_.neighbors(); }

 private:
  std::size_t size() const { return static_cast<std::size_t>(bytes_); }
  static std::byte value(int rank, std::size_t block, std::size_t k) {
    return static_cast<std::byte>((static_cast<std::size_t>(rank) * 37 + block * 11 + k * 7 + 1) & 0x7f);
  }
  void fill() {
    for (std::size_t i = 0; i < s_; ++i)
      for (std::size_t k = 0; k < size(); ++k) send_[i * size() + k] = value(iso_.comm().rank(), i, k);
  }

  IsoComm iso_;
  std::int64_t bytes_;
  std::size_t s_;
  std::vector<std::byte> send_, receive_;
  std::vector<MPI_Aint> all_displacements_, send_displacements_, receive_displacements_;
  std::vector<int> counts_;
  std::vector<MPI_Datatype> types_;
  std::vector<MPI_Request> requests_;
};

/// All experiments, with what they need to live.
class NeighborSuite {
 public:
  explicit NeighborSuite(MPI_Comm user)
      : user_(user),
        comm_(Communicator::of(user)),
        torus_(cart_of(user, 2, true)),
        mesh_(cart_of(user, 2, false)) {}

  void add_setup(const std::string& figure, const List& list, bool with_cart) {
    auto neighbors = std::make_shared<IsomorphicNeighborhood>(*mesh_of(torus_.comm), comm_.rank(), list);
    const auto add = [&](const std::string& method, std::function<void(MPI_Comm)> create) {
      Experiment e{figure, method, "block_bytes"};
      e.run = [this, with_cart, create = std::move(create)] {
        const OwnedComm cart = with_cart ? cart_of(user_, 2, true) : OwnedComm();
        create(with_cart ? cart.comm : torus_.comm);
      };
      experiments_.push_back(std::move(e));
    };
    if (with_cart) add("MPI_Cart_create", [](MPI_Comm) {});
    add("MPI_Dist_graph_create_adjacent", [neighbors](MPI_Comm cart) { adjacent_graph(cart, *neighbors); });
    add("MPI_Dist_graph_create", [neighbors](MPI_Comm cart) { graph_of(cart, *neighbors); });
    add("isohalo", [list](MPI_Comm cart) { const IsoComm iso(cart, list); });
  }

  struct Methods {
    bool combining = false, regular = false, by_hand = false, mpi = true, mpi_cart = false;
    std::string name = "isohalo alltoallw";
  };

  void add_exchange(const std::string& figure, const List& list, bool periodic, std::int64_t bytes,
                    const Methods& m) {
    const MPI_Comm cart = periodic ? torus_.comm : mesh_.comm;
    const auto add = [&](const std::string& method, Algorithm a, auto run) {
      Experiment e{figure, method, "block_bytes", bytes};
      auto exchange = std::make_shared<NeighborExchange>(cart, list, bytes, a);
      e.run = [exchange, run] { run(*exchange); };
      e.right = [exchange, run] { return exchange->right([&] { run(*exchange); }); };
      experiments_.push_back(std::move(e));
    };
    add(m.name, Algorithm::automatic, [](NeighborExchange& x) { x.ours_w(); });
    if (m.regular) add("isohalo alltoall", Algorithm::automatic, [](NeighborExchange& x) { x.ours(); });
    if (m.combining) add("isohalo combining", Algorithm::combining, [](NeighborExchange& x) { x.ours_w(); });
    if (m.by_hand) add("MPI_Isend, MPI_Irecv", Algorithm::direct, [](NeighborExchange& x) { x.by_hand(); });
    if (m.mpi_cart)
      add("MPI_Neighbor_alltoallw, cart", Algorithm::direct, [cart](NeighborExchange& x) { x.mpi_cart_w(cart); });
    if (!m.mpi) return;
    const auto graph = std::make_shared<OwnedComm>(
        adjacent_graph(cart, IsomorphicNeighborhood(*mesh_of(cart), comm_.rank(), list)));
    add("MPI_Neighbor_alltoallw", Algorithm::direct, [graph](NeighborExchange& x) { x.mpi_w(graph->comm); });
  }

  std::vector<Experiment>& experiments() { return experiments_; }

 private:
  MPI_Comm user_;
  Communicator comm_;
  OwnedComm torus_, mesh_;
  std::vector<Experiment> experiments_;
};

/// Nanoseconds per offset to make a neighborhood of a list, on a communicator that was duplicated before.
Json time_set_ups(MPI_Comm user) {
  const Communicator comm = Communicator::of(user);
  const auto ns = [&](MPI_Comm cart, const List& list, int dimensions) {
    const double s = median_of(51, [&] { return timed_calls(comm, 100, [&] { const IsoComm iso(cart, list); }); });
    return 1e9 * s * dimensions / static_cast<double>(list.size());
  };
  Json all;
  for (const bool periodic : {true, false}) {
    const OwnedComm plane = cart_of(user, 2, periodic), space = cart_of(user, 3, periodic);
    const std::string kind = periodic ? "torus" : "mesh";
    all["2-D " + kind + ", Moore 6"] = ns(plane.comm, flat<2>(moore<2>(6, Self::leave_out)), 2);
    all["3-D " + kind + ", Moore 3"] = ns(space.comm, flat<3>(moore<3>(3, Self::leave_out)), 3);
  }
  return all;
}

void build(NeighborSuite& suite, const std::vector<std::int64_t>& sizes) {
  const List vn1 = flat<2>(von_neumann<2>(1, Self::leave_out)), moore1 = flat<2>(moore<2>(1, Self::leave_out));
  const auto moore3 = moore<2>(3, Self::leave_out);
  auto by_columns = moore3, shuffled = moore3;
  std::sort(by_columns.begin(), by_columns.end(),
            [](const auto& a, const auto& b) { return std::pair(a[1], a[0]) < std::pair(b[1], b[0]); });
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(7));  // the same on all ranks
  suite.add_setup("fig2 set-up with MPI_Cart_create, von Neumann 1", vn1, true);
  suite.add_setup("fig3 set-up alone, Moore 3", flat<2>(moore3), false);
  for (std::int64_t b : sizes) {
    suite.add_exchange("fig4 Moore 3, periodic", flat<2>(moore3), true, b, {.combining = true, .by_hand = true});
    suite.add_exchange("fig5 von Neumann 1, not periodic", vn1, false, b, {.mpi_cart = true});
    suite.add_exchange("fig6 Moore 1, periodic", moore1, true, b,
                       {.combining = true, .regular = true, .by_hand = true});
    suite.add_exchange("fig7 Moore 3, not periodic", flat<2>(moore3), false, b,
                       {.mpi = false, .name = "row-major"});
    suite.add_exchange("fig7 Moore 3, not periodic", flat<2>(by_columns), false, b,
                       {.mpi = false, .name = "column-major"});
    suite.add_exchange("fig7 Moore 3, not periodic", flat<2>(shuffled), false, b,
                       {.mpi = false, .name = "shuffled"});
  }
}

/// What Figs. 8 and 9 are annotated with.
Json improvements(const std::vector<Experiment>& all) {
  Json list = Json::array();
  for (const auto& e : all) {
    if (e.method != "isohalo alltoallw, set-up") continue;
    const double ratio = ratio_of(all, e.figure, e.x, e.method, "MPI_Neighbor_alltoallw, set-up");
    if (ratio > 0)
      list.push_back({{"figure", e.figure.substr(0, 4)}, {"ranks", e.x}, {"percent", (1 - ratio) * 100}});
  }
  return list;
}

}  // namespace

ExitCode bench_neighborhood(MPI_Comm user, const BenchNeighborhoodOptions& options) {
  NeighborSuite suite(user);
  std::vector<std::int64_t> sizes;
  for (std::int64_t b = 1; b <= options.largest_block; b *= 8) sizes.push_back(b);
  if (sizes.back() != options.largest_block) sizes.push_back(options.largest_block);
  build(suite, sizes);
  add_stencil_kernels(user, options.order, suite.experiments());
  const Communicator comm = Communicator::of(user);
  run_experiments(comm, suite.experiments(), options.samples, options.seconds_each);
  const Json set_ups = time_set_ups(user);
  const auto& all = suite.experiments();
  const double small = ratio_of(all, "fig6", 8, "isohalo alltoall", "MPI_Isend, MPI_Irecv");
  const Json gains = improvements(all);
  bool right = true;
  for (const auto& e : all) right = right && (e.correct || e.method.rfind("isohalo", 0) != 0);
  agreed(comm, [&] {
    if (comm.rank() == 0 && !options.plot_directory.empty()) write_plots(all, options.plot_directory);
  });
  Json j = report_of("neighborhood");
  j["ranks"] = comm.size();
  j["setup_ns_per_offset"] = set_ups;
  j["moore1_8_bytes_over_isend_irecv"] = small;
  for (const auto& e : all) j["experiments"].push_back(json_of(e));
  if (!gains.empty()) j["improvement_percent"] = gains;
  return print_report(user, options.json, j, right);
}

}  // namespace isohalo
