#pragma once
/// The arithmetic of a step, or of one stage of it, as sweeps see it: a function of rows of cells, called by its
/// address, so that sweeps are compiled once and not for each solver.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "datatypes/box.hpp"

namespace isohalo {

/// What a kernel updates at a call: rows of so many cells, each the next in dimension D - 2. Where rows are short
/// the begin of a call takes as long as the cells of a row, so one call gets several.
struct CellRows {
  std::int64_t cells;      ///< of each row
  std::int64_t count = 1;  ///< of rows
  std::int64_t apart = 0;  ///< elements from a row to the next one, in all arrays
  bool in_cache = false;   ///< does all that is swept stay in a cache near by, from one sweep to the next?

  /// f(k, i) for each of them: it lies k elements behind the first one, and begins with cell i. `first`: the cell
  /// that the first one begins with.
  template <int D, class F>
  void for_each(const Index<D>& first, const F& f) const {
    Index<D> i = behind<D>(first, 0);
    for (std::int64_t row = 0; row < count; ++row) {
      f(row * apart, static_cast<const Index<D>&>(i));
      if constexpr (D > 1) ++i[D - 2];
    }
  }
};

/// How rows that come from memory are updated, line by line.
template <class T>
struct Streaming {
  std::int64_t later;        ///< elements from a cell to the one for which memory is fetched meanwhile
  std::int64_t lead = 0;     ///< and from that one to the last one that its update reads, where it reads neighbors
  bool past_caches = false;  ///< do new values go past the caches? Only rows that begin alike in all arrays
  std::int64_t rows = 1;     ///< so many together
  std::int64_t lines = 4;    ///< cache lines of each of them at a time
  /// If squared changes, or terms of a kernel in place, are wanted: addresses in arrays of the old values, alike,
  /// and where they are added, the cells of one row after the other; `first`: those of the first row take the place
  /// of what is there.
  const T* const* before = nullptr;
  double* sums = nullptr;
  bool first = false;
};

/// All arrays have the same owned box and strides and hold all cells that are read.
template <class T, int D>
class RowKernel {
 public:
  virtual ~RowKernel() = default;
  /// Updates these rows, the first of which begins with cell i. `in`, `out`: addresses in the arrays that it reads
  /// and writes; cell i lies `at` elements behind those that it reads and `to` behind those that it writes. Local;
  /// several threads call it.
  virtual void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, const CellRows& rows,
                   const Index<D>& i) const = 0;
  /// Can it also do so line by line (`stream`)?
  virtual bool streams() const { return false; }
  /// As `run`, where cell i lies `at` elements behind the addresses in all arrays. Whole cache lines: the rows
  /// begin with one in the first array that is written, and end with one.
  virtual void stream(std::span<T* const> /*in*/, std::span<T* const> /*out*/, std::int64_t /*at*/,
                      const CellRows& /*rows*/, const Index<D>& /*i*/, const Streaming<T>& /*how*/) const {}
  /// So many rows of dimension D - 2 that are in cache it updates together, faster than fewer.
  virtual int rows_together() const { return 1; }
  /// Does it read others than the cell itself in the k-th array of `in`? Memory is fetched so much further ahead.
  virtual bool reads_beside(std::size_t /*k*/) const { return true; }
  /// Does it read what was in the cells that it writes, by the address of these? Then they must be those.
  virtual bool reads_what_it_writes() const { return false; }
  /// May steps in tiles also call it for cells beside those whose new values are needed, in the same cache lines,
  /// where it reads anything, such as values of other steps, and what is given by fields is 0? Not a function that
  /// looks something up by values or goes on until they are near enough, nor one that reads what it writes.
  virtual bool takes_any_value() const { return false; }
  /// Where cell i lies in an array of its own that it reads in the cells that it updates, if it has one: to fetch
  /// memory from there. Local.
  virtual const T* source_at(const Index<D>&) const { return nullptr; }
};

template <class T, int D>
using KernelPointer = std::unique_ptr<const RowKernel<T, D>>;

namespace detail {

/// A function of the rows that it reads and writes: row(in, out, n), or row(in, out, n, i), with two addresses
/// where one array is read and one written, else with arrays of addresses. `Row` may be a reference.
template <class T, int D, std::size_t In, std::size_t Out, class Row>
class FunctionKernel final : public RowKernel<T, D> {
  using Function = std::decay_t<Row>;
  static constexpr bool kTwo = In == 1 && Out == 1;
  template <class U, std::size_t N>
  using Addresses = std::conditional_t<kTwo, U*, std::array<U*, N>>;
  template <class... Rest>
  static constexpr bool kTakes = std::is_invocable_v<const Function&, const Addresses<const T, In>&,
                                                     const Addresses<T, Out>&, const std::int64_t&, Rest...>;
  static_assert(kTakes<> || kTakes<const Index<D>&>,
                "a row is called as row(in, out, n) or row(in, out, n, i), where it is const: `in` and `out` are a "
                "const T* and a T* where one array is read and one written, else std::array of these");

 public:
  explicit FunctionKernel(Row row) : row_(std::forward<Row>(row)) {}
  void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, const CellRows& rows,
           const Index<D>& i) const override {
    // A copy, where that costs nothing: the compiler knows that no store changes it.
    constexpr bool small = std::is_trivially_copy_constructible_v<Function> && sizeof(Function) <= 256;
    const std::conditional_t<small, Function, const Function&> row = row_;
    rows.for_each<D>(i, [&](std::int64_t k, const Index<D>& first) {
      const Addresses<const T, In> from = addresses<In>(in, at + k);
      const Addresses<T, Out> where = addresses<Out>(out, to + k);
      if constexpr (kTakes<const Index<D>&>)
        row(from, where, rows.cells, first);
      else
        row(from, where, rows.cells);
    });
  }

 private:
  template <std::size_t N, class U>
  static Addresses<U, N> addresses(U* const* list, std::int64_t at) {
    if constexpr (kTwo) {
      return list[0] + at;
    } else {
      std::array<U*, N> all;
      for (std::size_t k = 0; k < N; ++k) all[k] = list[k] + at;
      return all;
    }
  }

  Row row_;
};

}  // namespace detail

/// The kernel that this row is, or is a function of.
template <class T, int D, class Row>
KernelPointer<T, D> row_kernel(Row row) {
  if constexpr (std::is_base_of_v<RowKernel<T, D>, Row>)
    return std::make_unique<Row>(std::move(row));
  else
    return std::make_unique<detail::FunctionKernel<T, D, 1, 1, Row>>(std::move(row));
}

}  // namespace isohalo
