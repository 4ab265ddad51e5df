#pragma once
/// The arithmetic of a step, or of one stage of it, as sweeps see it: a function of a row of cells, called by its
/// address, so that sweeps are compiled once and not for each solver. A call a row, or a piece of one, costs
/// nothing beside its cells.

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "datatypes/box.hpp"

namespace isohalo {

/// All arrays have the same owned box and strides and hold all cells that are read.
template <class T, int D>
class RowKernel {
 public:
  virtual ~RowKernel() = default;
  /// Updates the n cells from cell i on. `in`, `out`: addresses in the arrays that it reads and writes; cell i lies
  /// `at` elements behind those that it reads and `to` behind those that it writes. Local; several threads call it.
  virtual void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, std::int64_t n,
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

/// A function of one array each that it reads and writes: row(in, out, n), or row(in, out, n, i). If it reads `out`
/// as it was it has a constant kReadsOut that says so.
template <class T, int D, class Row>
class OneFieldKernel final : public RowKernel<T, D> {
 public:
  explicit OneFieldKernel(Row row) : row_(std::move(row)) {}
  void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, std::int64_t n,
           [[maybe_unused]] const Index<D>& i) const override {
    if constexpr (std::is_invocable_v<const Row&, const T*, T*, std::int64_t, const Index<D>&>)
      row_(in[0] + at, out[0] + to, n, i);
    else
      row_(in[0] + at, out[0] + to, n);
  }
  bool reads_what_it_writes() const override {
    return requires {
      Row::kReadsOut;
    };
  }
  const T* source_at([[maybe_unused]] const Index<D>& i) const override {
    if constexpr (requires { row_.source(); })
      return &row_.source().at(i);
    else
      return nullptr;
  }

 private:
  Row row_;
};

}  // namespace detail

/// The kernel that this row is, or is a function of.
template <class T, int D, class Row>
KernelPointer<T, D> row_kernel(Row row) {
  if constexpr (std::is_base_of_v<RowKernel<T, D>, Row>)
    return std::make_unique<Row>(std::move(row));
  else
    return std::make_unique<detail::OneFieldKernel<T, D, Row>>(std::move(row));
}

}  // namespace isohalo
