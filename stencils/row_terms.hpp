#pragma once
/// Rows of terms of a sum that are more than a value that is read.

#include <algorithm>
#include <cstdint>

#include "datatypes/box.hpp"
#include "datatypes/independent.hpp"
#include "framework/reduce/operations.hpp"
#include "framework/reduce/tile_rows.hpp"

namespace isohalo {

/// The terms of a row for TreeReducer::run_band, formed by vectors before they are added: together with the sums
/// one loop would need more addresses than there are registers, and would not be vectorised.
template <int D, class Terms>
class RowTerms {
 public:
  /// terms_of(i): an object t with t(k) = the term, as double, of the cell k elements behind cell i, the first one
  /// of a row. This row begins at `i`.
  RowTerms(const Terms& terms_of, const Index<D>& i) : terms_of_(terms_of), i_(behind<D>(i, 0)) {}

  static bool takes_four() { return true; }
  void add(double* sums, std::int64_t n, std::int64_t rows, bool first) {
    const double* const all = terms_;
    if (rows == 1) {
      in_pieces(n, 4 * kApart, [&](std::int64_t x, std::int64_t m) {
        form(i_, x, m, terms_);
        detail::add_row(
            sums + x, m, first, [all](std::int64_t k) { return all[k]; }, Sum());
      });
    } else {
      in_pieces(n, kApart, [&](std::int64_t x, std::int64_t m) {
        Index<D> i = behind<D>(i_, 0);
        for (int r = 0; r < 4; ++r, ++i[D > 1 ? D - 2 : 0]) form(i, x, m, terms_ + r * kApart);
        const auto value = [all](int r, std::int64_t k) { return all[k + r * kApart]; };
        detail::add_four(sums + x, m, first, value, Sum());
      });
    }
  }

 private:
  static constexpr std::int64_t kApart = 128;

  void form(const Index<D>& i, std::int64_t x, std::int64_t n, double* terms) const {
    const auto term = terms_of_(i);
    ISOHALO_INDEPENDENT
    for (std::int64_t k = 0; k < n; ++k) terms[k] = term(x + k);
  }
  /// f(x, m) for the m cells from the x-th on, until there were n.
  template <class F>
  static void in_pieces(std::int64_t n, std::int64_t most, const F& f) {
    for (std::int64_t x = 0; x < n; x += most) f(x, std::min(most, n - x));
  }

  Terms terms_of_;
  Index<D> i_;
  alignas(64) double terms_[4 * kApart];
};

}  // namespace isohalo
