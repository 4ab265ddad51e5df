/// `isohalo bench exchange`: every transport of ours against what a careful programmer writes first: a subarray
/// type per neighbor, MPI_Isend and MPI_Irecv to all of them, this rank included where it is its own neighbor,
/// MPI_Waitall.

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/subarray_exchange.hpp"
#include "apps/bench/timing.hpp"
#include "framework/halo/field.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/run/machine.hpp"

namespace isohalo {

namespace {

struct ExchangeFigures {
  std::string name, shape;
  int ranks = 1, depth = 1;
  std::vector<std::string> ways;            ///< the opponent first
  std::vector<double> milliseconds, ratio;  ///< medians; time / opponent's, in pairs
  std::vector<double> best;                 ///< milliseconds of the best repetition, for busy machines
  std::string chosen;                       ///< by the plan on its own
  bool in_place = false;                    ///< whether its field is in shared memory, as our solvers' are here
  bool right = true;
};

template <int D>
struct ExchangeCase {
  std::string name;
  Index<D> shape;
  StencilShape<D> stencil;
  int depth;
};

/// The ghosts that the stencil needs, to be spoilt before an exchange and checked after it.
template <int D>
class GhostCheck {
 public:
  GhostCheck(const CartesianDomain<D>& domain, const ExchangeCase<D>& c) : global_(domain.global()) {
    const BoundaryTopology<D> around{domain.global(), domain.periodic(), {}, {}};
    const HaloGeometry<D> geometry{domain.decomposition(), c.stencil, c.depth, around};
    for (const auto& part : geometry.regions(domain.coordinates()))
      part.region.for_each_box([&](const Box<D>& b) { boxes_.push_back(b); });
  }

  double value(Index<D> i) const {
    for (int j = 0; j < D; ++j) i[j] = (i[j] + global_.extent(j)) % global_.extent(j);
    return static_cast<double>(linear_index(global_, i));
  }

  template <class Exchange>
  bool right_after(const Field<double, D>& field, Exchange&& exchange) const {
    std::int64_t wrong = 0;
    for (const auto& b : boxes_)
      for_each_cell(b, [&](const Index<D>& i) { field.at(i) = std::numeric_limits<double>::quiet_NaN(); });
    exchange();
    for (const auto& b : boxes_) for_each_cell(b, [&](const Index<D>& i) { wrong += field.at(i) != value(i); });
    return wrong == 0;
  }

 private:
  Box<D> global_;
  std::vector<Box<D>> boxes_;
};

template <int D>
struct Way {
  const Field<double, D>* field;
  std::function<void()> run;
};

template <int D>
ExchangeFigures measure(MPI_Comm user, const ExchangeCase<D>& c, int repeats) {
  DomainOptions<D> options;
  options.periodic.fill(true);
  const CartesianDomain<D> domain(user, c.shape, options);
  const Communicator& comm = domain.comm();
  HaloOptions<D> automatic;
  HaloPlan<D> own_choice(domain, c.stencil, c.depth, automatic);
  // The opponent and messages need no shared memory; "shared" is measured without and with it, the automatic choice
  // with what our solvers take here.
  const Field<double, D> field("u", domain.owned(), own_choice.ghost_low(), own_choice.ghost_high());
  const Field<double, D> mapped("u, shared", domain.owned(), own_choice.ghost_low(), own_choice.ghost_high(),
                                FieldMemory::shared);
  const bool shared = field_memory(Exchange::automatic, comm) == FieldMemory::shared;
  const Field<double, D>& usual = shared ? mapped : field;
  const GhostCheck<D> check(domain, c);
  for (const auto* f : {&field, &mapped})
    for_each_cell(domain.owned(), [&](const Index<D>& i) { f->at(i) = check.value(i); });

  ExchangeFigures f{c.name, shape_string<D>(c.shape), comm.size(), c.depth, {"datatypes over MPI"}, {}, {}, {}, {},
                    true};
  SubarrayExchange<D> opponent(domain, field.ref(), c.stencil, c.depth);
  std::vector<Way<D>> ways{{&field, [&] { opponent.run(); }}};
  std::vector<HaloPlan<D>> plans;
  for (const auto& name : exchange_names()) {
    HaloOptions<D> forced;
    forced.exchange = exchange_of_name(name);
    if (forced.exchange == Exchange::automatic) continue;
    f.ways.push_back(name);
    plans.emplace_back(domain, c.stencil, c.depth, forced);
  }
  for (auto& plan : plans) ways.push_back({&field, [&] { plan.exchange(field.ref()); }});
  f.ways.push_back("shared, in place");
  ways.push_back({&mapped, [&] { plans.back().exchange(mapped.ref()); }});
  f.ways.push_back("auto");
  ways.push_back({&usual, [&] { own_choice.exchange(usual.ref()); }});

  std::vector<int> counts;
  for (const auto& way : ways) {
    f.right = comm.min(check.right_after(*way.field, way.run)) == 1 && f.right;
    double once = timed(comm, way.run);
    for (int k = 0; k < 3; ++k) once = std::min(once, timed(comm, way.run));
    counts.push_back(static_cast<int>(std::clamp(0.02 / once, 1.0, 1000.0)));
  }
  f.chosen = exchange_name(own_choice.choice().used);
  f.in_place = shared;
  std::vector<std::vector<double>> times(ways.size()), ratios(ways.size());
  for (int r = 0; r < repeats; ++r)  // in turns, so that all see the same weather
    for (std::size_t w = 0; w < ways.size(); ++w) {
      times[w].push_back(timed(comm,
                               [&] {
                                 for (int k = 0; k < counts[w]; ++k) ways[w].run();
                               }) /
                         counts[w]);
      ratios[w].push_back(times[w].back() / times[0].back());
    }
  for (std::size_t w = 0; w < ways.size(); ++w) {
    f.milliseconds.push_back(median(times[w]) * 1e3);
    f.best.push_back(*std::min_element(times[w].begin(), times[w].end()) * 1e3);
    f.ratio.push_back(median(ratios[w]));
  }
  return f;
}

/// The time of the plan's own choice over that of the fastest way that was forced for such a field, by medians.
double auto_over_best(const ExchangeFigures& f) {
  return f.milliseconds.back() /
         *std::min_element(f.milliseconds.begin() + 1, f.milliseconds.end() - (f.in_place ? 1 : 2));
}

void print(const ExchangeFigures& f) {
  fmt::print("{}, {} on {} ranks, depth {}{}\n", f.name, f.shape, f.ranks, f.depth,
             f.right ? "" : ": WRONG GHOSTS");
  for (std::size_t w = 0; w < f.ways.size(); ++w)
    fmt::print(
        "  {:<20} {:>9.4f} ms (best {:>9.4f})  {:>6.3f}{}\n", f.ways[w], f.milliseconds[w], f.best[w], f.ratio[w],
        f.ways[w] == "auto" ? fmt::format("  ({}; {:.2f} of the fastest)", f.chosen, auto_over_best(f)) : "");
  std::fflush(stdout);
}

nlohmann::ordered_json json_of(const ExchangeFigures& f) {
  nlohmann::ordered_json j{{"case", f.name},
                           {"shape", f.shape},
                           {"ranks", f.ranks},
                           {"depth", f.depth},
                           {"right", f.right},
                           {"auto", f.chosen},
                           {"auto_over_best", auto_over_best(f)}};
  for (std::size_t w = 0; w < f.ways.size(); ++w)
    j["ways"].push_back(
        {{"way", f.ways[w]}, {"ms", f.milliseconds[w]}, {"best_ms", f.best[w]}, {"ratio", f.ratio[w]}});
  return j;
}

/// Cells of a grid in which each rank has `n` to the power of D.
template <int D>
Index<D> grid_of(int ranks, std::int64_t n) {
  Index<D> equal;
  equal.fill(1 << 10);
  const auto grid = choose_process_grid<D>(equal, ranks);
  Index<D> shape;
  for (int j = 0; j < D; ++j) shape[j] = grid[j] * n;
  return shape;
}

}  // namespace

ExitCode bench_exchange(MPI_Comm user, const BenchExchangeOptions& options) {
  const Communicator comm = Communicator::of(user);
  const std::int64_t n = options.size;
  bool right = true;
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  const auto run = [&](const auto& c) {
    if (!options.cases.empty() &&
        std::find(options.cases.begin(), options.cases.end(), c.name) == options.cases.end())
      return;
    const ExchangeFigures f = measure(user, c, options.repeats);
    right = right && f.right;
    if (comm.rank() == 0 && !options.json) print(f);
    all.push_back(json_of(f));
  };
  if (comm.rank() == 0 && !options.json) fmt::print("{}\n", machine_text());
  for (const int depth : {1, 2, 4}) {
    run(ExchangeCase<3>{"cube-star", {n, n, n}, StencilShape<3>::star(1), depth});
    run(ExchangeCase<3>{"cube-moore", {n, n, n}, StencilShape<3>::moore(1), depth});
    run(ExchangeCase<3>{"cube-each-star", grid_of<3>(comm.size(), n), StencilShape<3>::star(1), depth});
    run(ExchangeCase<3>{"cube-each-moore", grid_of<3>(comm.size(), n), StencilShape<3>::moore(1), depth});
  }
  // Matrices much like those of the paper's Figs. 8 and 9 (`bench neighborhood` has its experiments).
  for (const int depth : {1, 2, 10}) {
    run(ExchangeCase<2>{"matrix-5-point", grid_of<2>(comm.size(), 16 * n), StencilShape<2>::von_neumann(1), depth});
    run(ExchangeCase<2>{"matrix-9-point", grid_of<2>(comm.size(), 100), StencilShape<2>::moore(1), depth});
  }
  if (comm.rank() == 0 && options.json)
    fmt::print(
        "{}\n",
        nlohmann::ordered_json({{"benchmark", "exchange"}, {"machine", machine_text()}, {"cases", all}}).dump(2));
  return right ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
