#pragma once
/// The rows of cells that a pass adds up.

#include <cstdint>
#include <type_traits>
#include <utility>

#include "datatypes/box.hpp"
#include "datatypes/independent.hpp"
#include "framework/reduce/operations.hpp"

namespace isohalo::detail {

/// Adds n values to sums[0] and on, or with `first` puts them there. Not inlined: in a loop over pieces GCC would
/// keep values on the stack, and store there in every pass. By reference: a copy of the value, by vectors, would
/// wait for stores.
template <class V, class Value, class Op>
[[gnu::noinline]] void add_row(V* sums, std::int64_t n, bool first, const Value& value, const Op& op) {
  if (first) {
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) sums[x] = static_cast<V>(value(x));
  } else {
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) sums[x] = combined(op, sums[x], static_cast<V>(value(x)));
  }
}

/// The same for four rows: value(r, x) of the r-th of them.
template <class V, class Value, class Op>
[[gnu::noinline]] void add_four(V* sums, std::int64_t n, bool first, const Value& value, Op op) {
  const auto and_one = [&](const V& sum, int r, std::int64_t x) {
    return combined(op, sum, static_cast<V>(value(r, x)));
  };
  const auto and_three = [&](const V& sum, std::int64_t x) {
    return and_one(and_one(and_one(sum, 1, x), 2, x), 3, x);
  };
  if (first) {
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) sums[x] = and_three(static_cast<V>(value(0, x)), x);
  } else {
    ISOHALO_INDEPENDENT
    for (std::int64_t x = 0; x < n; ++x) sums[x] = and_three(and_one(sums[x], 0, x), x);
  }
}

/// Of four rows: value(r, x) of the r-th of them.
template <class Values>
struct ValuesOfFour {
  Values v0, v1, v2, v3;
  auto operator()(int r, std::int64_t x) const { return r == 0 ? v0(x) : r == 1 ? v1(x) : r == 2 ? v2(x) : v3(x); }
};

/// What a pass adds up, whatever its rows are: so passes are compiled once.
template <class V, int D>
class RowsToAdd {
 public:
  /// Adds the values of the n cells from cell i on to sums[0] and on, or, which it may with `four`, those of four
  /// rows of dimension D - 2 from there on, row after row; `first`: those of the first row replace what is there.
  /// `later`: where about the row begins that comes some thousand cells later, up to three rows behind the last.
  /// Were they four?
  virtual bool add(const Index<D>& i, std::int64_t n, bool four, const Index<D>& later, V* sums,
                   bool first) const = 0;

 protected:
  ~RowsToAdd() = default;
};

/// Those that row(i, n) or row(i, n, later) gives, as TreeReducer::run_band has them; they are moved.
template <class V, int D, class Op, class Row>
class RowsBy final : public RowsToAdd<V, D> {
 public:
  RowsBy(Row& row, const Op& op) : row_(row), op_(op) {}

  bool add(const Index<D>& i, std::int64_t n, bool four, const Index<D>& later, V* sums,
           bool first) const override {
    auto values = values_from(i, n, later);
    if constexpr (requires { values.add(sums, n, n, first); }) {
      const bool together = four && values.takes_four();
      values.add(sums, n, together ? 4 : 1, first);
      return together;
    } else {
      if (!four) return add_row(sums, n, first, values, op_), false;
      constexpr int along = D > 1 ? D - 2 : 0;
      Index<D> k = behind<D>(i, 0), l = behind<D>(later, 0);
      const auto next = [&] { return ++k[along], ++l[along], values_from(std::as_const(k), n, std::as_const(l)); };
      const ValuesOfFour<decltype(values)> four_of{std::move(values), next(), next(), next()};
      return add_four(sums, n, first, four_of, op_), true;
    }
  }

 private:
  auto values_from(const Index<D>& i, std::int64_t n, const Index<D>& later) const {
    if constexpr (std::is_invocable_v<Row&, const Index<D>&, std::int64_t, const Index<D>&>)
      return row_(i, n, later);
    else
      return row_(i, n);
  }

  Row& row_;
  Op op_;
};

}  // namespace isohalo::detail
