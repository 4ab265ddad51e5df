#pragma once
/// Sources and masks: what rows do besides a cell function (cell_solver.hpp).

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "datatypes/independent.hpp"
#include "framework/halo/row_kernel.hpp"
#include "stencils/streamed_rows.hpp"

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
        mask_(sources_ + (what_.sources ? W : 0)) {
    std::vector<std::int64_t> around = what_.around;
    std::sort(around.begin(), around.end());
    for (const std::int64_t away : around)
      if (!reach_.empty() && away - reach_.back().last <= kTogether)
        reach_.back().last = away;
      else
        reach_.push_back({away, away});
  }

  bool reads_beside(std::size_t k) const override {
    return k < sources_ ? kernel_->reads_beside(k) : k == mask_ && what_.mask == Mask::mirror;
  }
  void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, const CellRows& rows,
           const Index<D>&) const override {
    const std::int64_t most = what_.mask == Mask::none ? kPiece : kMasked;
    for (std::int64_t k = 0, row = 0; k < rows.count; ++k, row += rows.apart) {
      if (is_plain(in, at + row, rows.cells)) {
        run_plain(in, at + row, out, to + row, rows.cells);
        continue;
      }
      for (std::int64_t x = row, end = row + rows.cells; x < end; x += most)
        piece(in, at + x, out, to + x, std::min(most, end - x));
    }
  }
  /// Rows that read nothing masked go as they would without a mask.
  bool streams() const override { return !what_.sources && kernel_->streams(); }
  void stream(std::span<T* const> in, std::span<T* const> out, std::int64_t at, const CellRows& rows,
              const Index<D>& i, const Streaming<T>& how) const override {
    Streaming<T> part = how;
    for (std::int64_t k = 0; k < rows.count; k += how.rows, at += how.rows * rows.apart, part.first = false) {
      const CellRows some{rows.cells, std::min(how.rows, rows.count - k), rows.apart};
      bool plain = true;
      for (std::int64_t r = 0; plain && r < some.count; ++r)
        plain = is_plain(in.data(), at + r * rows.apart, rows.cells);
      if (plain) {
        kernel_->stream(in, out, at, some, i, part);
        continue;
      }
      run(in.data(), at, out.data(), at, some, i);
      if (how.sums) add_changes(out, at, some, part);
    }
  }

 private:
  /// Cells that are amended at a time; of rows that read masked ones fewer, so that most are far from these.
  static constexpr std::int64_t kPiece = 256, kMasked = 64;
  static constexpr std::int64_t kTogether = 16;
  using Piece = std::array<T, kPiece>;
  struct Range {
    std::int64_t first, last;
  };

  void run_plain(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, std::int64_t n) const {
    kernel_->run(in, at, out, to, {n}, {});  // a cell function does not see where its cell is
  }
  void piece(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, std::int64_t n) const {
    const T* const mask = what_.mask == Mask::none ? nullptr : in[mask_] + at;
    if (what_.mask == Mask::mirror && any_near(mask, n))
      run_mirrored(in, mask, at, out, to, n);
    else
      run_plain(in, at, out, to, n);
    if (what_.sources) add_sources(in, at, out, to, n);
    if (!mask || !any(mask, n)) return;
    for (std::size_t f = 0; f < W; ++f) {
      const T* const from = in[f] + at;
      T* const cells = out[f] + to;
      for (std::int64_t x = 0; x < n; ++x) cells[x] = mask[x] != T(0) ? from[x] : cells[x];
    }
  }

  /// Has a row nothing to be amended?
  bool is_plain(const T* const* in, std::int64_t at, std::int64_t n) const {
    if (what_.sources) return false;
    const T* const mask = in[mask_] + at;
    return !any(mask, n) && !(what_.mask == Mask::mirror && any_near(mask, n));
  }
  /// Is any of n values not 0?
  static bool any(const T* values, std::int64_t n) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    Bits bits = 0;
    for (std::int64_t x = 0; x < n; ++x) bits |= std::bit_cast<Bits>(values[x]);
    return static_cast<Bits>(bits << 1) != 0;  // without signs
  }
  /// May any of n cells read a masked one? By rows: most pieces of most grids are far from obstacles.
  bool any_near(const T* mask, std::int64_t n) const {
    return std::any_of(reach_.begin(), reach_.end(),
                       [&](const Range& r) { return any(mask + r.first, n + r.last - r.first); });
  }
  /// A piece in which cells may read masked ones: those by themselves.
  void run_mirrored(const T* const* in, const T* mask, std::int64_t at, T* const* out, std::int64_t to,
                    std::int64_t n) const {
    // First, since the fields that are written may be those a step before, which the function reads.
    Piece beside{};
    std::array<Piece, W> mirrored;
    T* const is = beside.data();
    for (const std::int64_t away : what_.around) {
      ISOHALO_INDEPENDENT
      for (std::int64_t x = 0; x < n; ++x) is[x] = mask[x + away] != T(0) ? T(1) : is[x];
    }
    for (std::int64_t x = 0; x < n; ++x) is[x] = mask[x] != T(0) ? T(0) : is[x];  // it keeps its value
    for (std::int64_t x = 0; x < n; ++x) {
      if (is[x] == T(0)) continue;
      const auto values = kernel_->mirrored(in, mask + x, at + x);
      for (std::size_t f = 0; f < W; ++f) mirrored[f][static_cast<std::size_t>(x)] = static_cast<T>(values[f]);
    }
    run_plain(in, at, out, to, n);
    for (std::size_t f = 0; f < W; ++f)
      for (std::int64_t x = 0; x < n; ++x)
        if (is[x] != T(0)) out[f][to + x] = mirrored[f][static_cast<std::size_t>(x)];
  }

  /// Of rows that were updated, to Streaming::sums.
  static void add_changes(std::span<T* const> out, std::int64_t at, const CellRows& rows, const Streaming<T>& how) {
    for (std::int64_t r = 0; r < rows.count; ++r, at += rows.apart) {
      const bool first = how.first && r == 0;
      ISOHALO_INDEPENDENT
      for (std::int64_t x = 0; x < rows.cells; ++x) {
        double change = squared_change(out[0][at + x], how.before[0][at + x]);
        for (std::size_t f = 1; f < W; ++f) change = change + squared_change(out[f][at + x], how.before[f][at + x]);
        how.sums[x] = first ? change : how.sums[x] + change;
      }
    }
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
  std::vector<Range> reach_;    ///< where masks mirror: elements to what a row's cells read, in a few ranges
};

// Those of one and two fields are compiled once.
#define ISOHALO_DECLARE(T, D)                \
  extern template class AmendedRow<T, D, 1>; \
  extern template class AmendedRow<T, D, 2>;
ISOHALO_FOR_EACH_FLOAT_FIELD(ISOHALO_DECLARE)
#undef ISOHALO_DECLARE

}  // namespace isohalo::detail
