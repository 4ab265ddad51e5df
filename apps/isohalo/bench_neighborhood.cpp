/// `isohalo bench neighborhood`: the experiments of "Isomorphic, Sparse MPI-like Collective Communication
/// Operations" (Träff, Lübbe, Rougier, Hunold 2015), section 7.1 and 7.2: set-up times (Figs. 2, 3), alltoallw
/// against MPI_Neighbor_alltoallw (Figs. 4 to 6) and the order of neighbors (Fig. 7).
///
/// Every method is checked with a value of its own per (rank, block) before it is timed; a wrong result is reported
/// instead of a time. Experiments are run in one random order, several samples at a time; a sample is the slowest
/// rank's time.

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "apps/isohalo/bench.hpp"
#include "apps/isohalo/bench_statistics.hpp"
#include "apps/isohalo/commands.hpp"
#include "apps/isohalo/plot.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/neighborhood/iso_comm.hpp"
#include "framework/neighborhood/offsets.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

using List = std::vector<int>;

List flat(const Offsets<2>& offsets) {
  List f;
  for (const auto& o : offsets) f.push_back(static_cast<int>(o[0])), f.push_back(static_cast<int>(o[1]));
  return f;
}

/// A communicator that is freed with its owner.
class OwnedComm {
 public:
  OwnedComm() = default;
  OwnedComm(const OwnedComm&) = delete;
  OwnedComm& operator=(const OwnedComm&) = delete;
  ~OwnedComm() {
    if (comm != MPI_COMM_NULL && mpi_is_active()) MPI_Comm_free(&comm);
  }
  MPI_Comm comm = MPI_COMM_NULL;
};

void make_cart(MPI_Comm user, bool periodic, OwnedComm& cart) {
  int p = 1, dims[2] = {0, 0};
  const int wrap[2] = {periodic, periodic};
  MPI_Comm_size(user, &p);
  mpi_check(MPI_Dims_create(p, 2, dims), "MPI_Dims_create");
  mpi_check(MPI_Cart_create(user, 2, dims, wrap, 0, &cart.comm), "MPI_Cart_create");
}

void make_adjacent(MPI_Comm user, const IsomorphicNeighborhood& n, OwnedComm& graph) {
  const auto from = n.present_sources(), to = n.present_targets();
  mpi_check(MPI_Dist_graph_create_adjacent(user, static_cast<int>(from.size()), from.data(), MPI_UNWEIGHTED,
                                           static_cast<int>(to.size()), to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                           &graph.comm),
            "MPI_Dist_graph_create_adjacent");
}

void make_graph(MPI_Comm user, const IsomorphicNeighborhood& n, OwnedComm& graph) {
  const auto to = n.present_targets();
  int rank = 0;
  MPI_Comm_rank(user, &rank);
  const int degree = static_cast<int>(to.size());
  mpi_check(
      MPI_Dist_graph_create(user, 1, &rank, &degree, to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph.comm),
      "MPI_Dist_graph_create");
}

/// One curve's point: something to run, and whether its result is right.
struct Experiment {
  std::string figure, method;
  std::int64_t block_bytes = 0;  ///< 0: set-up
  std::function<void()> run;
  std::function<bool()> right;  ///< runs once and checks; local
  bool correct = true;
  int batch = 1;
  std::vector<double> samples;  ///< seconds of one run
};

/// Buffers of one neighborhood and block size, and the ways to exchange them.
class Exchange {
 public:
  Exchange(MPI_Comm cart, const List& list, std::int64_t bytes, Algorithm algorithm)
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
class Suite {
 public:
  explicit Suite(MPI_Comm user) : user_(user), comm_(Communicator::of(user)) {
    make_cart(user, true, torus_);
    make_cart(user, false, mesh_);
  }

  void add_setup(const std::string& figure, const List& list, bool with_cart) {
    auto neighbors = std::make_shared<IsomorphicNeighborhood>(*mesh_of(torus_.comm), comm_.rank(), list);
    const auto add = [&](const std::string& method, std::function<void(MPI_Comm)> create) {
      Experiment e;
      e.figure = figure, e.method = method;
      e.run = [this, with_cart, create = std::move(create)] {
        OwnedComm cart;
        if (with_cart) make_cart(user_, true, cart);
        create(with_cart ? cart.comm : torus_.comm);
      };
      experiments_.push_back(std::move(e));
    };
    if (with_cart) add("MPI_Cart_create", [](MPI_Comm) {});
    add("MPI_Dist_graph_create_adjacent", [neighbors](MPI_Comm cart) {
      OwnedComm graph;
      make_adjacent(cart, *neighbors, graph);
    });
    add("MPI_Dist_graph_create", [neighbors](MPI_Comm cart) {
      OwnedComm graph;
      make_graph(cart, *neighbors, graph);
    });
    add("isohalo", [list](MPI_Comm cart) { const IsoComm iso(cart, list); });
  }

  struct Methods {
    bool combining = false, regular = false, by_hand = false, mpi = true;
    std::string name = "isohalo alltoallw";
  };

  void add_exchange(const std::string& figure, const List& list, bool periodic, std::int64_t bytes,
                    const Methods& m) {
    const MPI_Comm cart = periodic ? torus_.comm : mesh_.comm;
    const auto add = [&](const std::string& method, Algorithm a, auto run) {
      Experiment e;
      e.figure = figure, e.method = method, e.block_bytes = bytes;
      auto exchange = std::make_shared<Exchange>(cart, list, bytes, a);
      e.run = [exchange, run] { run(*exchange); };
      e.right = [exchange, run] { return exchange->right([&] { run(*exchange); }); };
      experiments_.push_back(std::move(e));
    };
    add(m.name, Algorithm::automatic, [](Exchange& x) { x.ours_w(); });
    if (m.regular) add("isohalo alltoall", Algorithm::automatic, [](Exchange& x) { x.ours(); });
    if (m.combining) add("isohalo combining", Algorithm::combining, [](Exchange& x) { x.ours_w(); });
    if (m.by_hand) add("MPI_Isend, MPI_Irecv", Algorithm::direct, [](Exchange& x) { x.by_hand(); });
    if (!m.mpi) return;
    auto graph = std::make_shared<OwnedComm>();
    make_adjacent(cart, IsomorphicNeighborhood(*mesh_of(cart), comm_.rank(), list), *graph);
    add("MPI_Neighbor_alltoallw", Algorithm::direct, [graph](Exchange& x) { x.mpi_w(graph->comm); });
  }

  /// Checks all, then takes `samples` of each in random order.
  void run(int samples, double seconds_each) {
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < experiments_.size(); ++k) {
      Experiment& e = experiments_[k];
      if (e.right) e.correct = comm_.min(e.right() ? 1 : 0) == 1;
      if (!e.correct) continue;
      const double once = timed(comm_, e.run);
      e.batch = static_cast<int>(std::clamp(seconds_each / samples / std::max(once, 1e-7), 1.0, 200.0));
      const int takes =
          static_cast<int>(std::clamp(seconds_each / std::max(once * e.batch, 1e-7), 5.0, 1.0 * samples));
      order.insert(order.end(), static_cast<std::size_t>(takes), k);
    }
    std::uint64_t seed = 2015;
    for (std::size_t n = order.size(); n > 1; --n) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      std::swap(order[n - 1], order[(seed >> 33) % n]);
    }
    for (std::size_t k : order) {
      Experiment& e = experiments_[k];
      e.run();  // warm again after another experiment
      e.samples.push_back(timed(comm_,
                                [&] {
                                  for (int b = 0; b < e.batch; ++b) e.run();
                                }) /
                          e.batch);
    }
  }

  const std::vector<Experiment>& experiments() const { return experiments_; }

  /// Nanoseconds per offset to make a neighborhood of `list` on a communicator that was duplicated before.
  double setup_ns_per_offset(const List& list) {
    std::vector<double> ns;
    for (int k = 0; k < 51; ++k) {
      constexpr int batch = 100;
      ns.push_back(timed(comm_,
                         [&] {
                           for (int b = 0; b < batch; ++b) const IsoComm iso(torus_.comm, list);
                         }) /
                   batch / static_cast<double>(list.size() / 2) * 1e9);
    }
    return median(ns);
  }

 private:
  MPI_Comm user_;
  Communicator comm_;
  OwnedComm torus_, mesh_;
  std::vector<Experiment> experiments_;
};

void build(Suite& suite, const std::vector<std::int64_t>& sizes) {
  const List vn1 = flat(von_neumann<2>(1, Self::leave_out)), moore1 = flat(moore<2>(1, Self::leave_out));
  const auto moore3 = moore<2>(3, Self::leave_out);
  suite.add_setup("fig2 set-up with MPI_Cart_create, von Neumann 1", vn1, true);
  suite.add_setup("fig3 set-up alone, Moore 3", flat(moore3), false);
  for (std::int64_t b : sizes) {
    suite.add_exchange("fig4 Moore 3, periodic", flat(moore3), true, b, {.combining = true, .by_hand = true});
    suite.add_exchange("fig5 von Neumann 1, not periodic", vn1, false, b, {});
    suite.add_exchange("fig6 Moore 1, periodic", moore1, true, b,
                       {.combining = true, .regular = true, .by_hand = true});
    suite.add_exchange("fig7 Moore 3, not periodic", flat(moore3), false, b, {.mpi = false, .name = "row-major"});
    suite.add_exchange("fig7 Moore 3, not periodic", flat(column_major<2>(moore3)), false, b,
                       {.mpi = false, .name = "column-major"});
    suite.add_exchange("fig7 Moore 3, not periodic", flat(shuffled<2>(moore3, 7)), false, b,
                       {.mpi = false, .name = "shuffled"});
  }
}

/// The median of one method over that of another, of the same figure and block size; negative when one is missing.
double ratio_of(const std::vector<Experiment>& all, const std::string& figure, std::int64_t bytes,
                const std::string& a, const std::string& b) {
  double of_a = -1, of_b = -1;
  for (const auto& e : all) {
    if (e.figure.rfind(figure, 0) != 0 || e.block_bytes != bytes || e.samples.empty()) continue;
    if (e.method == a) of_a = median(e.samples);
    if (e.method == b) of_b = median(e.samples);
  }
  return of_a < 0 || of_b < 0 ? -1 : of_a / of_b;
}

void write_plots(const std::vector<Experiment>& all, const std::string& directory) {
  std::filesystem::create_directories(directory);
  std::vector<Plot> plots;
  for (const auto& e : all) {
    if (e.block_bytes == 0 || e.samples.empty()) continue;
    auto plot = std::find_if(plots.begin(), plots.end(), [&](const Plot& p) { return p.title == e.figure; });
    if (plot == plots.end())
      plot =
          plots.insert(plots.end(), Plot{e.figure, "block size [bytes]", "time [us], mean and 95 % interval", {}});
    auto series = std::find_if(plot->series.begin(), plot->series.end(),
                               [&](const PlotSeries& s) { return s.name == e.method; });
    if (series == plot->series.end()) series = plot->series.insert(plot->series.end(), PlotSeries{e.method, {}});
    const Sample s = summarize(e.samples);
    series->points.push_back({static_cast<double>(e.block_bytes), s.mean * 1e6, s.ci95 * 1e6});
  }
  for (const auto& p : plots) std::ofstream(directory + "/" + p.title.substr(0, 4) + ".svg") << to_svg(p);
}

}  // namespace

ExitCode bench_neighborhood_command(MPI_Comm user, const BenchNeighborhoodOptions& options) {
  Suite suite(user);
  std::vector<std::int64_t> sizes;
  for (std::int64_t b = 1; b <= options.largest_block; b *= 8) sizes.push_back(b);
  if (sizes.back() != options.largest_block) sizes.push_back(options.largest_block);
  build(suite, sizes);
  suite.run(options.samples, options.seconds_each);
  const double setup = suite.setup_ns_per_offset(flat(moore<2>(6, Self::leave_out)));
  const auto& all = suite.experiments();
  const double small = ratio_of(all, "fig6", 8, "isohalo alltoall", "MPI_Isend, MPI_Irecv");
  const Communicator comm = Communicator::of(user);
  bool right = true;
  for (const auto& e : all) right = right && (e.correct || e.method.rfind("isohalo", 0) != 0);
  agreed(comm, [&] {
    if (comm.rank() == 0 && !options.plot_directory.empty()) write_plots(all, options.plot_directory);
  });
  if (comm.rank() == 0 && options.json) {
    nlohmann::ordered_json j;
    j["benchmark"] = "neighborhood", j["machine"] = machine_text(), j["ranks"] = comm.size();
    j["setup_ns_per_offset"] = setup;
    j["moore1_8_bytes_over_isend_irecv"] = small;
    for (const auto& e : all) {
      const Sample s = summarize(e.samples);
      nlohmann::ordered_json x = {{"figure", e.figure}, {"method", e.method}, {"block_bytes", e.block_bytes}};
      if (e.correct)
        x.update({{"samples", s.taken},
                  {"kept", s.kept},
                  {"batch", e.batch},
                  {"mean_us", s.mean * 1e6},
                  {"ci95_us", s.ci95 * 1e6},
                  {"median_us", s.median * 1e6}});
      else
        x["wrong_result"] = true;
      j["experiments"].push_back(x);
    }
    fmt::print("{}\n", j.dump(2));
  } else if (comm.rank() == 0) {
    fmt::print("{}, {} ranks\n", machine_text(), comm.size());
    std::string figure;
    for (const auto& e : all) {
      if (e.figure != figure) fmt::print("{}\n", figure = e.figure);
      const Sample s = summarize(e.samples);
      if (e.correct)
        fmt::print("  {:32} {:>8} B {:>12.2f} us +- {:<9.2f} ({} of {} samples)\n", e.method, e.block_bytes,
                   s.mean * 1e6, s.ci95 * 1e6, s.kept, s.taken);
      else
        fmt::print("  {:32} {:>8} B  WRONG RESULT, not timed\n", e.method, e.block_bytes);
    }
    fmt::print(
        "set-up of a neighborhood: {:.1f} ns per offset\nMoore 1, 8 bytes, isohalo over one Isend and Irecv "
        "per neighbor: {:.2f}\n",
        setup, small);
  }
  return right ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
