/// `isohalo bench exchange`: every transport of ours against what a careful programmer writes first: a subarray
/// type per neighbor, MPI_Isend and MPI_Irecv to all of them, this rank included where it is its own neighbor,
/// MPI_Waitall.

#include <cstring>
#include <limits>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/report.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/halo/field.hpp"
#include "framework/halo/halo_plan.hpp"

namespace isohalo {

namespace {

/// The opponent. A periodic grid; ghost boxes as wide as the reach of `depth` steps towards every neighbor of which
/// a step sequence that long reads a cell. The array must stay where it is.
template <int D>
class SubarrayExchange {
 public:
  SubarrayExchange(const CartesianDomain<D>& domain, const ArrayRef<double, D>& a, const StencilShape<D>& shape,
                   int depth)
      : comm_(domain.comm().get()), base_(&a.at(a.allocated().low)) {
    for (const auto& direction : moore<D>(1, Self::leave_out)) {
      int distance = 0;
      std::array<int, D> relative{};
      for (int j = 0; j < D; ++j) {
        relative[static_cast<std::size_t>(j)] = static_cast<int>(direction[j]);
        distance += direction[j] != 0;
      }
      if (shape.kind() != StencilShape<D>::Kind::moore && distance > depth) continue;
      const int tag = static_cast<int>(neighbors_.size());
      Box<D> inner = a.owned, outer = a.owned;
      for (int j = 0; j < D; ++j) {
        const std::int64_t width = shape.radius() * depth;
        if (direction[j] > 0) inner.low[j] = a.owned.high[j] - width, outer.high[j] = a.owned.low[j];
        if (direction[j] > 0) outer.low[j] = a.owned.low[j] - width;
        if (direction[j] < 0) inner.high[j] = a.owned.low[j] + width, outer.low[j] = a.owned.high[j];
        if (direction[j] < 0) outer.high[j] = a.owned.high[j] + width;
      }
      // What goes in a direction comes from the opposite one.
      std::array<int, D> opposite = relative;
      for (int& r : opposite) r = -r;
      neighbors_.push_back({domain.mesh().relative_rank(domain.rank(), relative),
                            domain.mesh().relative_rank(domain.rank(), opposite), tag, type(a, inner),
                            type(a, outer)});
    }
    requests_.resize(2 * neighbors_.size());
  }

  void run() {
    std::size_t r = 0;
    for (const auto& n : neighbors_)
      mpi_check(MPI_Irecv(base_, 1, n.ghosts.get(), n.source, n.tag, comm_, &requests_[r++]), "MPI_Irecv", comm_);
    for (const auto& n : neighbors_)
      mpi_check(MPI_Isend(base_, 1, n.cells.get(), n.target, n.tag, comm_, &requests_[r++]), "MPI_Isend", comm_);
    mpi_check(MPI_Waitall(static_cast<int>(r), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall", comm_);
  }

 private:
  struct Neighbor {
    int target, source, tag;
    Datatype cells, ghosts;
  };

  static Datatype type(const ArrayRef<double, D>& a, const Box<D>& box) {
    std::array<int, D> sizes, extents, starts;
    const Box<D> all = a.allocated();
    for (int j = 0; j < D; ++j) {
      const auto k = static_cast<std::size_t>(j);
      sizes[k] = static_cast<int>(j == 0 ? all.extent(0) : a.stride[j - 1] / a.stride[j]);
      extents[k] = static_cast<int>(box.extent(j));
      starts[k] = static_cast<int>(box.low[j] - all.low[j]);
    }
    MPI_Datatype t = MPI_DATATYPE_NULL;
    mpi_check(MPI_Type_create_subarray(D, sizes.data(), extents.data(), starts.data(), MPI_ORDER_C, MPI_DOUBLE, &t),
              "MPI_Type_create_subarray");
    return Datatype::adopt(t);
  }

  MPI_Comm comm_;
  double* base_;
  std::vector<Neighbor> neighbors_;
  std::vector<MPI_Request> requests_;
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
  std::string name;
  const Field<double, D>* field;
  std::function<void()> run;
};

template <int D>
Json measure(MPI_Comm user, const ExchangeCase<D>& c, int repeats) {
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

  SubarrayExchange<D> opponent(domain, field.ref(), c.stencil, c.depth);
  std::vector<Way<D>> ways{{"datatypes over MPI", &field, [&] { opponent.run(); }}};
  std::vector<HaloPlan<D>> plans;
  for (const auto& name : exchange_names()) {
    HaloOptions<D> forced;
    forced.exchange = exchange_of_name(name);
    if (forced.exchange == Exchange::automatic) continue;
    ways.push_back({name, &field, [&, k = plans.size()] { plans[k].exchange(field.ref()); }});
    plans.emplace_back(domain, c.stencil, c.depth, forced);
  }
  ways.push_back({"shared, in place", &mapped, [&] { plans.back().exchange(mapped.ref()); }});
  ways.push_back({"auto", &usual, [&] { own_choice.exchange(usual.ref()); }});

  bool right = true;
  std::vector<std::function<double()>> timings;
  for (const auto& way : ways) {
    right = comm.min(check.right_after(*way.field, way.run)) == 1 && right;
    double once = timed(comm, way.run);
    for (int k = 0; k < 3; ++k) once = std::min(once, timed(comm, way.run));
    const auto count = static_cast<std::int64_t>(std::clamp(0.02 / once, 1.0, 1000.0));
    timings.push_back([&, count] { return timed_calls(comm, count, way.run) * 1e3; });
  }
  const Turns turns(repeats, timings);
  // Of the ways that were forced for such a field as the plan's own choice has.
  double fastest = turns.middle(1);
  for (std::size_t w = 2; w < ways.size() - (shared ? 1 : 2); ++w) fastest = std::min(fastest, turns.middle(w));
  Json j{{"case", c.name},
         {"shape", shape_string<D>(c.shape)},
         {"ranks", comm.size()},
         {"depth", c.depth},
         {"right", right},
         {"auto", exchange_name(own_choice.choice().used)},
         {"auto_over_best", turns.middle(ways.size() - 1) / fastest}};
  for (std::size_t w = 0; w < ways.size(); ++w) {
    const auto all = turns.of(w);
    j["ways"].push_back({{"way", ways[w].name},
                         {"ms", turns.middle(w)},
                         {"best_ms", *std::min_element(all.begin(), all.end())},  // for busy machines
                         {"ratio", turns.ratio(w, 0)}});
  }
  return j;
}

/// Cells of a grid in which each rank has `n` to the power of D.
template <int D>
Index<D> grid_of(int ranks, std::int64_t n) {
  const auto grid = choose_process_grid<D>(index_of<D>(1 << 10), ranks);
  Index<D> shape;
  for (int j = 0; j < D; ++j) shape[j] = grid[j] * n;
  return shape;
}

}  // namespace

ExitCode bench_exchange(MPI_Comm user, const BenchExchangeOptions& options) {
  const Communicator comm = Communicator::of(user);
  const std::int64_t n = options.size;
  Json report = report_of("exchange");
  report["cases"] = Json::array();
  Cases cases(options.cases);
  const auto run = [&](const auto& c) {
    cases.add(c.name, [&, c] { report["cases"].push_back(measure(user, c, options.repeats)); });
  };
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
  cases.measure("bench exchange");
  return print_report(user, options.json, report, all_true(report["cases"], "right"));
}

}  // namespace isohalo
