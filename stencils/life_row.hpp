#pragma once
/// The arithmetic of kind = "life": Conway's game and its relatives, of cells that hold 0 or 1.

#include <Kokkos_Macros.hpp>
#include <algorithm>
#include <array>
#include <cstdint>

#include "framework/halo/row_kernel.hpp"
#include "stencils/vectors.hpp"

namespace isohalo {

/// At the cell whose address is `u` in rows so far apart. Bit n of `born` (`survive`) says whether a dead (living)
/// cell with n living neighbors, of the 8 around it, lives.
struct LifeAt {
  unsigned born, survive;
  std::int64_t row;
  KOKKOS_FUNCTION std::uint8_t operator()(const std::uint8_t* u) const {
    const std::uint8_t *const above = u - row, *const below = u + row;
    const int living = above[-1] + above[0] + above[1] + u[-1] + u[1] + below[-1] + below[0] + below[1];
    return static_cast<std::uint8_t>((*u ? survive : born) >> living & 1u);
  }
};

/// Rows of it, in vectors of bytes: tables say what a cell becomes by how many live of it and those around it. Four
/// rows at a time, so that what is summed along a row serves the rows above and below.
template <int Bytes = detail::kVectorBytes>
class LifeRow final : public RowKernel<std::uint8_t, 2> {
 public:
  LifeRow(unsigned born, unsigned survive, const Index<2>& stride) : at_{born, survive, stride[0]} {
    for (std::size_t k = 0; k < born_.size(); ++k) {
      const std::size_t n = k % 16;                                 // 10 to 15: never
      const unsigned alive = n == 0 ? 0 : survive >> (n - 1) & 1u;  // one of the n is the cell itself
      born_[k] = static_cast<std::uint8_t>(born >> n & 1u);
      flip_[k] = static_cast<std::uint8_t>(born_[k] ^ alive);
    }
  }

  void run(const std::uint8_t* const* in, std::int64_t at, std::uint8_t* const* out, std::int64_t to,
           const CellRows& rows, const Index<2>&) const override {
    const std::uint8_t* from = in[0] + at;
    std::uint8_t* where = out[0] + to;
    std::int64_t left = rows.count;
    for (; left >= 4; left -= 4, from += 4 * rows.apart, where += 4 * rows.apart) update<4>(from, where, rows);
    for (; left > 0; --left, from += rows.apart, where += rows.apart) update<1>(from, where, rows);
  }

 private:
  using Vector = detail::VectorOf<std::uint8_t, Bytes>;
  using V = typename Vector::Type;

  template <int Rows>
  void update(const std::uint8_t* in, std::uint8_t* out, const CellRows& rows) const {
    const std::int64_t n = rows.cells, apart = rows.apart, s = at_.row;
    if (n < Bytes) {
      for (int r = 0; r < Rows; ++r)
        for (std::int64_t x = 0; x < n; ++x) out[r * apart + x] = at_(in + r * s + x);
      return;
    }
    const V born = Vector::load(born_.data()), flip = Vector::load(flip_.data());
    for (std::int64_t x = 0; x < n; x += Bytes) {
      x = std::min(x, n - Bytes);  // some cells of the last vector are computed again
      V state[Rows + 2], living[Rows + 2];
      for (int r = 0; r < Rows + 2; ++r) {
        const std::uint8_t* const u = in + (r - 1) * s + x;
        state[r] = Vector::load(u);
        living[r] = Vector::load(u - 1) + state[r] + Vector::load(u + 1);
      }
      for (int r = 0; r < Rows; ++r) {
        const V all = living[r] + living[r + 1] + living[r + 2];
        Vector::store(out + r * apart + x,
                      Vector::looked_up(born, all) ^ (Vector::looked_up(flip, all) & state[r + 1]));
      }
    }
  }

  LifeAt at_;
  std::array<std::uint8_t, Bytes> born_, flip_;  ///< by the number of living cells, every 16 bytes again
};

}  // namespace isohalo
