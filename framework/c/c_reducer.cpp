/// The C interface of reductions of double numbers, that ranks hold in ranges or one per cell of a grid.

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/c/blocks.hpp"
#include "framework/c/handles.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/isohalo.h"
#include "framework/neighborhood/iso_comm.hpp"
#include "framework/reduce/array_reducer.hpp"
#include "framework/reduce/tree_reducer.hpp"

using isohalo::Communicator;
using isohalo::Index;
using isohalo::Max;
using isohalo::Min;
using isohalo::Sum;
using isohalo::detail::freed;
using isohalo::detail::guarded;
using isohalo::detail::HandleTable;
using isohalo::detail::require;

namespace {

/// Minimum or maximum: one type for both.
struct Extreme {
  bool largest;
  double operator()(double a, double b) const { return largest ? Max()(a, b) : Min()(a, b); }
};

/// Of any operation, of a range or of cells in any dimension.
struct AnyReducer {
  Communicator comm;
  bool holds;  ///< a number at all, on this rank
  std::function<void(const double*)> start;
  std::function<double()> wait;
  bool in_flight = false;

  MPI_Comm user() const { return comm.user(); }
};

template <class Reducer, class Start>
std::unique_ptr<AnyReducer> any_reducer(const Communicator& comm, bool holds,
                                        const std::shared_ptr<Reducer>& reducer, Start start) {
  return std::make_unique<AnyReducer>(
      AnyReducer{comm, holds, std::move(start), [reducer] { return reducer->wait(); }});
}

isohalo::ReductionOptions options_of(isohalo_reduction op) {
  isohalo::ReductionOptions options;
  if (op == ISOHALO_EXACT_SUM) options.method = isohalo::ReductionMethod::exact_over_terms;
  return options;
}

template <class Op>
std::unique_ptr<AnyReducer> of_range(MPI_Comm user, std::int64_t count, isohalo_reduction kind, Op op) {
  const Communicator comm = Communicator::of(user);
  const auto r = std::make_shared<isohalo::ArrayReducer<double, Op>>(user, count, op, options_of(kind));
  return any_reducer(comm, count > 0, r, [r](const double* numbers) { r->start(numbers); });
}

template <int D, class Op>
std::unique_ptr<AnyReducer> of_cells(const isohalo::CartesianDomain<D>& domain, std::int64_t width, Op op) {
  const auto r = std::make_shared<isohalo::TreeReducer<double, D, Op>>(domain, op);
  return any_reducer(domain.comm(), true, r, [r, width, owned = domain.owned()](const double* numbers) {
    const auto cells = isohalo::adopt(numbers, owned, width);
    r->run_all(
        [&](const Index<D>& i, std::int64_t) { return [row = &cells.at(i)](std::int64_t x) { return row[x]; }; });
    r->start();
  });
}

/// The order of terms does not matter to an exact sum, so those of a block are a range.
template <int D>
std::unique_ptr<AnyReducer> exact_of_cells(MPI_Comm cart, const isohalo::CartesianDomain<D>& domain,
                                           std::int64_t width) {
  const isohalo::Box<D> owned = domain.owned();
  const auto r =
      std::make_shared<isohalo::ArrayReducer<double>>(cart, owned.cells(), Sum(), options_of(ISOHALO_EXACT_SUM));
  const auto terms = std::make_shared<std::vector<double>>();
  isohalo::agreed(domain.comm(), [&] { terms->reserve(static_cast<std::size_t>(owned.cells())); });
  return any_reducer(domain.comm(), true, r, [r, terms, width, owned](const double* numbers) {
    terms->clear();
    const auto cells = isohalo::adopt(numbers, owned, width);
    isohalo::Box<D> rows = owned;
    rows.high[D - 1] = rows.low[D - 1] + 1;
    isohalo::for_each_cell(rows, [&](const Index<D>& i) {
      const double* const row = &cells.at(i);
      terms->insert(terms->end(), row, row + owned.extent(D - 1));
    });
    r->start(terms->data());
  });
}

HandleTable<AnyReducer, isohalo_reducer>& reducers() {
  static HandleTable<AnyReducer, isohalo_reducer> table(MPI_ERR_ARG, "this is no reducer, or one that was freed");
  return table;
}

void check(isohalo_reduction op, const isohalo_reducer* reducer) {
  require(reducer, MPI_ERR_ARG, "the place for the reducer is NULL");
  require(op >= ISOHALO_SUM && op <= ISOHALO_EXACT_SUM, MPI_ERR_ARG,
          "reducer: unknown operation: there are ISOHALO_SUM, _MIN, _MAX and _EXACT_SUM");
}

const char* name_of(isohalo_reduction op) {
  constexpr std::array names{"ISOHALO_SUM", "ISOHALO_MIN", "ISOHALO_MAX", "ISOHALO_EXACT_SUM"};
  return names[static_cast<std::size_t>(op)];
}

bool is_extreme(isohalo_reduction op) {
  return op == ISOHALO_MIN || op == ISOHALO_MAX;
}

template <int D>
std::unique_ptr<AnyReducer> make(MPI_Comm cart, const Communicator& comm, const isohalo::Mesh& mesh,
                                 const long long owned[], int width, isohalo_reduction op) {
  const auto domain = isohalo::detail::domain_of_blocks<D>(cart, comm, mesh, owned, "reducer");
  if (op == ISOHALO_EXACT_SUM) return exact_of_cells(cart, domain, width);
  if (!is_extreme(op)) return of_cells(domain, width, Sum());
  return of_cells(domain, width, Extreme{op == ISOHALO_MAX});
}

void check_result(const double* result) {
  require(result, MPI_ERR_ARG, "reducer: the place for the result is NULL");
}

void start(AnyReducer& r, const double* numbers) {
  require(!r.in_flight, MPI_ERR_REQUEST, "reducer: start while a reduction is in flight: wait for it first");
  require(numbers || !r.holds, MPI_ERR_BUFFER, "reducer: the array of numbers is NULL");
  r.start(numbers);
  r.in_flight = true;
}

void wait(AnyReducer& r, double* result) {
  require(r.in_flight, MPI_ERR_REQUEST, "reducer: wait without start");
  check_result(result);
  r.in_flight = false;
  *result = r.wait();
}

}  // namespace

int isohalo_reducer_create(MPI_Comm comm, long long count, isohalo_reduction op, isohalo_reducer* reducer) {
  return guarded(comm, [&] {
    require(comm != MPI_COMM_NULL, MPI_ERR_COMM, "reducer: the communicator is MPI_COMM_NULL");
    isohalo::detail::agree_arguments(Communicator::of(comm), "isohalo_reducer_create", [&] {
      check(op, reducer);
      return std::vector<isohalo::Argument>{{"operation", name_of(op)}};
    });
    *reducer = reducers().add(is_extreme(op) ? of_range(comm, count, op, Extreme{op == ISOHALO_MAX})
                                             : of_range(comm, count, op, Sum()));
  });
}

int isohalo_reducer_create_cells(MPI_Comm cart, const long long owned[], int width, isohalo_reduction op,
                                 isohalo_reducer* reducer) {
  return guarded(cart, [&] {
    const auto mesh = isohalo::mesh_of(cart);
    const Communicator comm = Communicator::of(cart);
    const int d = mesh->dimensions();
    isohalo::detail::agree_arguments(comm, "isohalo_reducer_create_cells", [&] {
      check(op, reducer);
      require(d >= 1 && d <= 4, MPI_ERR_DIMS, "reducer: the communicator must have 1 to 4 dimensions");
      require(owned, MPI_ERR_ARG, "reducer: the array of owned extents is NULL");
      require(width >= 0, MPI_ERR_ARG, "reducer: the number of ghost layers is negative");
      return std::vector<isohalo::Argument>{{"operation", name_of(op)}, {"width", std::to_string(width)}};
    });
    constexpr std::array makers{make<1>, make<2>, make<3>, make<4>};
    *reducer = reducers().add(makers[static_cast<std::size_t>(d) - 1](cart, comm, *mesh, owned, width, op));
  });
}

int isohalo_reducer_start(isohalo_reducer reducer, const double* numbers) {
  return guarded(reducers(), reducer, [&](AnyReducer& r) { start(r, numbers); });
}

int isohalo_reducer_wait(isohalo_reducer reducer, double* result) {
  return guarded(reducers(), reducer, [&](AnyReducer& r) { wait(r, result); });
}

int isohalo_reducer_reduce(isohalo_reducer reducer, const double* numbers, double* result) {
  return guarded(reducers(), reducer, [&](AnyReducer& r) {
    check_result(result);  // before something is in flight
    start(r, numbers);
    wait(r, result);
  });
}

int isohalo_reducer_free(isohalo_reducer* reducer) {
  return freed(reducers(), reducer, [](AnyReducer& last) {
    if (last.in_flight) last.wait();
  });
}
