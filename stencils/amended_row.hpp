#pragma once
/// Sources and masks: what rows do besides a cell function (cell_solver.hpp).

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "datatypes/independent.hpp"
#include "framework/halo/row_kernel.hpp"

namespace isohalo::detail {

/// What sources and masks need to know of a cell function of W fields.
template <class T, int D, std::size_t W>
class AmendableKernel : public RowKernel<T, D> {
 public:
  /// Of this many arrays.
  virtual std::size_t reads() const = 0;
  /// See CellPoint. Not by vectors: only cells beside masked ones need it.
  virtual std::array<double, W> mirrored(const T* const* in, const T* mask, std::int64_t at) const = 0;
  /// Of n cells from `at` on.
  virtual void source_weights(const T* const* in, std::int64_t at, std::int64_t n, double* weights) const = 0;
};

/// What masked cells do, those in which the mask is not 0.
enum class Mask {
  none,    ///< there are none
  keep,    ///< they keep their values
  mirror,  ///< the same, and who reads them reads its own value instead
};

/// What a step does besides its function.
struct Amendments {
  bool sources = false;
  Mask mask = Mask::none;
  std::vector<std::int64_t> around{};  ///< where masks mirror: elements to the cells that the function reads

  bool any() const { return sources || mask != Mask::none; }
};

/// A kernel with amendments. After what the function reads it reads the sources and the mask, if there are such.
template <class T, int D, std::size_t W>
class AmendedRow final : public RowKernel<T, D> {
 public:
  using Kernel = AmendableKernel<T, D, W>;
  AmendedRow(std::unique_ptr<const Kernel> kernel, const Amendments& amendments)
      : kernel_(std::move(kernel)),
        what_(amendments),
        sources_(kernel_->reads()),
        mask_(sources_ + (what_.sources ? W : 0)) {}

  bool reads_beside(std::size_t k) const override {
    return k < sources_ ? kernel_->reads_beside(k) : k == mask_ && what_.mask == Mask::mirror;
  }
  void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, const CellRows& rows,
           const Index<D>&) const override {
    for (std::int64_t k = 0, row = 0; k < rows.count; ++k, row += rows.apart)
      for (std::int64_t x = row, end = row + rows.cells; x < end; x += kPiece)
        piece(in, at + x, out, to + x, std::min(kPiece, end - x));
  }

 private:
  static constexpr std::int64_t kPiece = 256;
  using Piece = std::array<T, kPiece>;

  void piece(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, std::int64_t n) const {
    const T* const mask = what_.mask == Mask::none ? nullptr : in[mask_] + at;
    // First, since the fields that are written may be those a step before, which the function reads.
    Piece beside{};
    std::array<Piece, W> mirrored;
    const bool any = what_.mask == Mask::mirror && find_beside(mask, n, beside);
    for (std::int64_t x = 0; any && x < n; ++x) {
      if (beside[static_cast<std::size_t>(x)] == T(0)) continue;
      const auto values = kernel_->mirrored(in, mask + x, at + x);
      for (std::size_t f = 0; f < W; ++f) mirrored[f][static_cast<std::size_t>(x)] = static_cast<T>(values[f]);
    }
    kernel_->run(in, at, out, to, {n}, {});  // a cell function does not see where its cell is
    for (std::int64_t x = 0; any && x < n; ++x)
      for (std::size_t f = 0; f < W && beside[static_cast<std::size_t>(x)] != T(0); ++f)
        out[f][to + x] = mirrored[f][static_cast<std::size_t>(x)];
    if (what_.sources) add_sources(in, at, out, to, n);
    for (std::size_t f = 0; f < W && mask; ++f) {
      const T* const from = in[f] + at;
      T* const cells = out[f] + to;
      for (std::int64_t x = 0; x < n; ++x) cells[x] = mask[x] != T(0) ? from[x] : cells[x];
    }
  }

  /// Which of n cells read masked ones: not 0 there. Are there any?
  bool find_beside(const T* mask, std::int64_t n, Piece& beside) const {
    T* const is = beside.data();
    for (const std::int64_t away : what_.around) {
      ISOHALO_INDEPENDENT
      for (std::int64_t x = 0; x < n; ++x) is[x] = mask[x + away] != T(0) ? T(1) : is[x];
    }
    int any = 0;
    for (std::int64_t x = 0; x < n; ++x) any |= is[x] != T(0);
    return any != 0;
  }

  void add_sources(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, std::int64_t n) const {
    std::array<double, kPiece> weights;
    kernel_->source_weights(in, at, n, weights.data());
    for (std::size_t f = 0; f < W; ++f) {
      const T* const source = in[sources_ + f] + at;
      T* const cells = out[f] + to;
      ISOHALO_INDEPENDENT
      for (std::int64_t x = 0; x < n; ++x)
        cells[x] = static_cast<T>(static_cast<double>(cells[x]) +
                                  weights[static_cast<std::size_t>(x)] * static_cast<double>(source[x]));
    }
  }

  std::unique_ptr<const Kernel> kernel_;
  Amendments what_;
  std::size_t sources_, mask_;  ///< where these are among the arrays that are read
};

}  // namespace isohalo::detail
