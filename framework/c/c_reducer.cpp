/// The C interface of reductions of double numbers, that ranks hold in ranges or one per cell of a grid.

#include <array>
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

class AnyReducer {
 public:
  explicit AnyReducer(const Communicator& comm) : comm_(comm) {}
  AnyReducer(const AnyReducer&) = delete;
  AnyReducer& operator=(const AnyReducer&) = delete;
  virtual ~AnyReducer() = default;
  virtual void start(const double* numbers) = 0;
  virtual double wait() = 0;
  /// Whether this rank holds a number at all.
  virtual bool holds() const = 0;
  MPI_Comm user() const { return comm_.user(); }
  bool in_flight = false;

 private:
  Communicator comm_;
};

isohalo::ReductionOptions options_of(isohalo_reduction op) {
  isohalo::ReductionOptions options;
  if (op == ISOHALO_EXACT_SUM) options.method = isohalo::ReductionMethod::exact_over_terms;
  return options;
}

template <class Op>
class RangeReducer final : public AnyReducer {
 public:
  RangeReducer(MPI_Comm user, std::int64_t count, isohalo_reduction kind, Op op)
      : AnyReducer(Communicator::of(user)), count_(count), reducer_(user, count, op, options_of(kind)) {}
  void start(const double* numbers) override { reducer_.start(numbers); }
  double wait() override { return reducer_.wait(); }
  bool holds() const override { return count_ > 0; }

 private:
  std::int64_t count_;
  isohalo::ArrayReducer<double, Op> reducer_;
};

template <int D, class Op>
class CellReducer final : public AnyReducer {
 public:
  CellReducer(const isohalo::CartesianDomain<D>& domain, std::int64_t width, Op op)
      : AnyReducer(domain.comm()), owned_(domain.owned()), width_(width), reducer_(domain, op) {}
  void start(const double* numbers) override {
    const auto cells = isohalo::adopt(numbers, owned_, width_);
    reducer_.run_all(
        [&](const Index<D>& i, std::int64_t) { return [row = &cells.at(i)](std::int64_t x) { return row[x]; }; });
    reducer_.start();
  }
  double wait() override { return reducer_.wait(); }
  bool holds() const override { return true; }

 private:
  isohalo::Box<D> owned_;
  std::int64_t width_;
  isohalo::TreeReducer<double, D, Op> reducer_;
};

/// The order of terms does not matter to an exact sum, so those of a block are a range.
template <int D>
class ExactCells final : public AnyReducer {
 public:
  ExactCells(MPI_Comm cart, const isohalo::CartesianDomain<D>& domain, std::int64_t width)
      : AnyReducer(domain.comm()),
        owned_(domain.owned()),
        width_(width),
        reducer_(cart, owned_.cells(), {}, options_of(ISOHALO_EXACT_SUM)) {
    isohalo::agreed(domain.comm(), [&] { terms_.reserve(static_cast<std::size_t>(owned_.cells())); });
  }
  void start(const double* numbers) override {
    terms_.clear();
    const auto cells = isohalo::adopt(numbers, owned_, width_);
    isohalo::Box<D> rows = owned_;
    rows.high[D - 1] = rows.low[D - 1] + 1;
    isohalo::for_each_cell(rows, [&](const Index<D>& i) {
      const double* const row = &cells.at(i);
      terms_.insert(terms_.end(), row, row + owned_.extent(D - 1));
    });
    reducer_.start(terms_.data());
  }
  double wait() override { return reducer_.wait(); }
  bool holds() const override { return true; }

 private:
  isohalo::Box<D> owned_;
  std::int64_t width_;
  isohalo::ArrayReducer<double> reducer_;
  std::vector<double> terms_;
};

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
  if (op == ISOHALO_EXACT_SUM) return std::make_unique<ExactCells<D>>(cart, domain, width);
  if (!is_extreme(op)) return std::make_unique<CellReducer<D, Sum>>(domain, width, Sum());
  return std::make_unique<CellReducer<D, Extreme>>(domain, width, Extreme{op == ISOHALO_MAX});
}

}  // namespace

int isohalo_reducer_create(MPI_Comm comm, long long count, isohalo_reduction op, isohalo_reducer* reducer) {
  return guarded(comm, [&] {
    require(comm != MPI_COMM_NULL, MPI_ERR_COMM, "reducer: the communicator is MPI_COMM_NULL");
    isohalo::detail::agree_arguments(Communicator::of(comm), "isohalo_reducer_create", [&] {
      check(op, reducer);
      return std::vector<isohalo::Argument>{{"operation", name_of(op)}};
    });
    std::unique_ptr<AnyReducer> made;
    if (is_extreme(op))
      made = std::make_unique<RangeReducer<Extreme>>(comm, count, op, Extreme{op == ISOHALO_MAX});
    else
      made = std::make_unique<RangeReducer<Sum>>(comm, count, op, Sum());
    *reducer = reducers().add(std::move(made));
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
  return guarded(reducers(), reducer, [&](AnyReducer& r) {
    require(!r.in_flight, MPI_ERR_REQUEST, "reducer: start while a reduction is in flight: wait for it first");
    require(numbers || !r.holds(), MPI_ERR_BUFFER, "reducer: the array of numbers is NULL");
    r.start(numbers);
    r.in_flight = true;
  });
}

int isohalo_reducer_wait(isohalo_reducer reducer, double* result) {
  return guarded(reducers(), reducer, [&](AnyReducer& r) {
    require(r.in_flight, MPI_ERR_REQUEST, "reducer: wait without start");
    require(result, MPI_ERR_ARG, "reducer: the place for the result is NULL");
    r.in_flight = false;
    *result = r.wait();
  });
}

int isohalo_reducer_reduce(isohalo_reducer reducer, const double* numbers, double* result) {
  const int rc = isohalo_reducer_start(reducer, numbers);
  return rc == MPI_SUCCESS ? isohalo_reducer_wait(reducer, result) : rc;
}

int isohalo_reducer_free(isohalo_reducer* reducer) {
  return freed(reducers(), reducer, [](AnyReducer& last) {
    if (last.in_flight) last.wait();
  });
}
