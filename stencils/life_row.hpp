#pragma once
/// The arithmetic of kind = "life": Conway's game and its relatives, of cells that hold 0 or 1.

#include <Kokkos_Macros.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "framework/halo/row_kernel.hpp"
#include "stencils/vectors.hpp"

#if defined(__SSSE3__) && !defined(__CUDACC__)
#define ISOHALO_SHUFFLES_BYTES
#include <immintrin.h>
#endif

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

namespace detail {

/// Can bytes be looked up in a table, a vector of them at a time?
#if defined(ISOHALO_SHUFFLES_BYTES)
inline constexpr bool kLooksUp = true;

/// For each byte the entry of this number, of 0 to 15, in a table that is there again every 16 bytes. (No operator
/// of the extension does this in both compilers.)
template <class V>
[[gnu::always_inline]] inline V looked_up(const V& table, const V& number) {
  if constexpr (sizeof(V) == 64)
    return reinterpret_cast<V>(
        _mm512_shuffle_epi8(reinterpret_cast<__m512i>(table), reinterpret_cast<__m512i>(number)));
  else if constexpr (sizeof(V) == 32)
    return reinterpret_cast<V>(
        _mm256_shuffle_epi8(reinterpret_cast<__m256i>(table), reinterpret_cast<__m256i>(number)));
  else
    return reinterpret_cast<V>(
        _mm_shuffle_epi8(reinterpret_cast<__m128i>(table), reinterpret_cast<__m128i>(number)));
}
#else
inline constexpr bool kLooksUp = false;
template <class V>
V looked_up(const V& table, const V& number);  // not there
#endif

}  // namespace detail

/// Rows of it, in vectors of bytes: by how many live of a cell and those around it tables, or comparisons with the
/// numbers that matter, say what it becomes. Four rows at a time, so that what is summed along a row serves the
/// rows above and below.
template <int Bytes = detail::kVectorBytes, bool Tables = detail::kLooksUp>
class LifeRow final : public RowKernel<std::uint8_t, 2> {
 public:
  LifeRow(unsigned born, unsigned survive, const Index<2>& stride) : at_{born, survive, stride[0]} {
    for (unsigned n = 0; n <= 9; ++n) {
      const unsigned dead = born >> n & 1u, alive = n == 0 ? 0 : survive >> (n - 1) & 1u;  // it is one of the n
      if (!(dead | alive)) continue;
      counts_[used_++] = static_cast<std::uint8_t>(n);
      for (std::size_t k = n; k < Bytes; k += 16) {
        born_[k] = static_cast<std::uint8_t>(dead);
        flip_[k] = static_cast<std::uint8_t>(dead ^ alive);
      }
    }
  }

  bool takes_any_value() const override { return true; }
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
    if constexpr (Tables) {
      const V born = Vector::load(born_.data()), flip = Vector::load(flip_.data());
      sweep<Rows>(in, out, n, apart, [&](const V& living, const V& state) ISOHALO_INLINED {
        return detail::looked_up(born, living) ^ (detail::looked_up(flip, living) & state);
      });
    } else {
      [&]<std::size_t... N>(std::index_sequence<N...>) {
        (void)((used_ == N ? (by_counts<Rows, N>(in, out, n, apart), true) : false) || ...);
      }
      (std::make_index_sequence<11>());
    }
  }
  template <int Rows, std::size_t N>
  void by_counts(const std::uint8_t* in, std::uint8_t* out, std::int64_t n, std::int64_t apart) const {
    std::array<std::uint8_t, N> counts, born, flip;
    for (std::size_t k = 0; k < N; ++k)
      counts[k] = counts_[k], born[k] = born_[counts[k]], flip[k] = flip_[counts[k]];
    sweep<Rows>(in, out, n, apart, [&](const V& living, const V& state) ISOHALO_INLINED {
      V next = Vector::filled(0);
      for (std::size_t k = 0; k < N; ++k)
        next |= reinterpret_cast<V>(living == counts[k]) & (born[k] ^ (flip[k] & state));
      return next;
    });
  }
  /// `next(living, state)`: of a vector of cells.
  template <int Rows, class Next>
  [[gnu::always_inline]] void sweep(const std::uint8_t* in, std::uint8_t* out, std::int64_t n, std::int64_t apart,
                                    const Next& next) const {
    const std::int64_t s = at_.row;
    for (std::int64_t x = 0; x < n; x += Bytes) {
      x = std::min(x, n - Bytes);  // some cells of the last vector are computed again
      V state[Rows + 2], living[Rows + 2];
      for (int r = 0; r < Rows + 2; ++r) {
        const std::uint8_t* const u = in + (r - 1) * s + x;
        state[r] = Vector::load(u);
        living[r] = Vector::load(u - 1) + state[r] + Vector::load(u + 1);
      }
      for (int r = 0; r < Rows; ++r)
        Vector::store(out + r * apart + x, next(living[r] + living[r + 1] + living[r + 2], state[r + 1]));
    }
  }

  LifeAt at_;
  std::array<std::uint8_t, 10> counts_{};  ///< of living cells with which a cell lives, and how many
  std::size_t used_ = 0;
  std::array<std::uint8_t, Bytes> born_{}, flip_{};  ///< by that number, every 16 bytes again
};

}  // namespace isohalo
