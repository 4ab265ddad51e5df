#pragma once
/// The arithmetic of a step, or of one stage of it, as sweeps see it: a function of rows of cells, called by its
/// address, so that sweeps are compiled once and not for each solver.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
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
  /// Does it read what was in the cells that it writes, by the address of these? Then they must be those.
  virtual bool reads_what_it_writes() const { return false; }
  /// Where cell i lies in an array of its own that it reads in the cells that it updates, if it has one: to fetch
  /// memory from there. Local.
  virtual const T* source_at(const Index<D>&) const { return nullptr; }
};

template <class T, int D>
using KernelPointer = std::unique_ptr<const RowKernel<T, D>>;

namespace detail {

/// A function of the rows that it reads and writes: row(in, out, n), or row(in, out, n, i), with an address for a
/// single array and an array of addresses for several. If it reads `out` as it was it has a constant kReadsOut that
/// says so. `Row` may be a reference.
template <class T, int D, std::size_t In, std::size_t Out, class Row>
class FunctionKernel final : public RowKernel<T, D> {
  using Function = std::remove_cvref_t<Row>;

 public:
  explicit FunctionKernel(Row row) : row_(std::forward<Row>(row)) {}
  void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, const CellRows& rows,
           const Index<D>& i) const override {
    // A copy, where that costs nothing: the compiler knows that no store changes it.
    const std::conditional_t<std::is_trivially_copyable_v<Function>, Function, const Function&> row = row_;
    Index<D> first = behind<D>(i, 0);
    for (std::int64_t k = 0; k < rows.count; ++k) {
      if constexpr (std::is_invocable_v<const Function&, Addresses<const T, In>, Addresses<T, Out>, std::int64_t,
                                        const Index<D>&>)
        row(addresses<In>(in, at), addresses<Out>(out, to), rows.cells, std::as_const(first));
      else
        row(addresses<In>(in, at), addresses<Out>(out, to), rows.cells);
      at += rows.apart;
      to += rows.apart;
      if constexpr (D > 1) ++first[D - 2];
    }
  }
  bool reads_what_it_writes() const override {
    return requires {
      Function::kReadsOut;
    };
  }
  const T* source_at([[maybe_unused]] const Index<D>& i) const override {
    if constexpr (requires { row_.source(); })
      return &row_.source().at(i);
    else
      return nullptr;
  }

 private:
  template <class U, std::size_t N>
  using Addresses = std::conditional_t<N == 1, U*, std::array<U*, N>>;
  template <std::size_t N, class U>
  static Addresses<U, N> addresses(U* const* list, std::int64_t at) {
    if constexpr (N == 1) {
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
