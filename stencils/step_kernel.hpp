#pragma once
/// The arithmetic of a step, or of one stage of it, as a stepper sees it: sweeps over regions. What lies behind is
/// a row kernel (row_kernels.hpp, cell_row.hpp).

#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "stencils/sweep.hpp"

namespace isohalo {

/// All arrays have the same owned box and strides and hold all cells that the kernel reads. Local.
template <class T, int D>
class StepKernel {
 public:
  using Arrays = std::span<const ArrayRef<T, D>>;
  virtual ~StepKernel() = default;
  /// writes = kernel(reads) on one of so many parts of the region. Fences.
  virtual void sweep(const SweepRegion<D>& region, Arrays reads, Arrays writes, const Fetch& how,
                     std::int64_t part = 0, std::int64_t parts = 1) const = 0;
  /// The same on one box, which is in cache (see isohalo::sweep_box). Fences.
  virtual void sweep_box(const Box<D>& box, Arrays reads, Arrays writes) const = 0;
  /// The same over the owned cells, and forms the tile values of the squared changes writes - before; of a cell
  /// the sum over the arrays in their order. Fences.
  virtual void sweep_with_change(CellSum<D>& sum, std::vector<double>& scratch, Arrays reads, Arrays writes,
                                 Arrays before, const Fetch& how) const = 0;
  /// Only these tile values, in one box (see isohalo::change_in_box). Fences.
  virtual void change_in_box(CellSum<D>& sum, std::vector<double>& scratch, const Box<D>& box, Arrays writes,
                             Arrays before) const = 0;
};

namespace detail {

/// How many arrays a row kernel reads and writes: one each, unless it says otherwise.
template <class Row>
constexpr std::size_t reads_of() {
  if constexpr (requires { Row::kReads; })
    return Row::kReads;
  else
    return 1;
}
template <class Row>
constexpr std::size_t writes_of() {
  if constexpr (requires { Row::kWrites; })
    return Row::kWrites;
  else
    return 1;
}

/// The first stands for those that are not there, which the kernel then does not read.
template <std::size_t N, class T, int D>
std::array<ArrayRef<T, D>, N> leading(std::span<const ArrayRef<T, D>> arrays) {
  std::array<ArrayRef<T, D>, N> all;
  for (std::size_t f = 0; f < N; ++f) all[f] = arrays[f < arrays.size() ? f : 0];
  return all;
}

template <class T, int D, class Row>
class RowStepKernel final : public StepKernel<T, D> {
 public:
  using typename StepKernel<T, D>::Arrays;
  explicit RowStepKernel(Row row) : row_(std::move(row)) {}

  void sweep(const SweepRegion<D>& region, Arrays reads, Arrays writes, const Fetch& how, std::int64_t part,
             std::int64_t parts) const override {
    if constexpr (kOne)
      isohalo::sweep(region, reads[0], writes[0], row_, how, part, parts);
    else
      isohalo::sweep(region, leading<kReads>(reads), leading<kWrites>(writes), row_, how, part, parts);
  }
  void sweep_box(const Box<D>& box, Arrays reads, Arrays writes) const override {
    if constexpr (kOne)
      isohalo::sweep_box(box, reads[0], writes[0], row_);
    else
      isohalo::sweep_box(box, leading<kReads>(reads), leading<kWrites>(writes), row_);
  }
  void sweep_with_change(CellSum<D>& sum, std::vector<double>& scratch, Arrays reads, Arrays writes, Arrays before,
                         const Fetch& how) const override {
    if constexpr (kOne)
      isohalo::sweep_with_change(sum, scratch, reads[0], writes[0], before[0], row_, how);
    else
      isohalo::sweep_with_change(sum, scratch, leading<kReads>(reads), leading<kWrites>(writes),
                                 leading<kWrites>(before), row_, how);
  }
  void change_in_box(CellSum<D>& sum, std::vector<double>& scratch, const Box<D>& box, Arrays writes,
                     Arrays before) const override {
    if constexpr (kOne)
      isohalo::change_in_box(sum, scratch, box, writes[0], before[0]);
    else
      isohalo::change_in_box(sum, scratch, box, leading<kWrites>(writes), leading<kWrites>(before));
  }

 private:
  static constexpr std::size_t kReads = reads_of<Row>(), kWrites = writes_of<Row>();
  static constexpr bool kOne = kReads == 1 && kWrites == 1;
  Row row_;
};

}  // namespace detail

template <class T, int D>
using KernelPointer = std::unique_ptr<const StepKernel<T, D>>;

template <class T, int D, class Row>
KernelPointer<T, D> step_kernel(Row row) {
  return std::make_unique<detail::RowStepKernel<T, D, Row>>(std::move(row));
}

}  // namespace isohalo
