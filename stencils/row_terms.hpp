#pragma once
/// Rows of terms of a sum that are more than a value that is read.

#include <cstdint>

#include "datatypes/box.hpp"
#include "datatypes/independent.hpp"

namespace isohalo {

/// The terms of a row for TreeReducer::run_band, formed by vectors before they are added: together with the sums
/// one loop would need more addresses than there are registers, and would not be vectorised.
template <int D, class Terms>
class RowTerms {
 public:
  /// terms_of(i): an object t with t(k) = the term, as double, of the cell k elements behind cell i, the first one
  /// of a row. This row begins at `i`.
  RowTerms(const Terms& terms_of, const Index<D>& i) : terms_of_(terms_of), i_(behind<D>(i, 0)) {}

  static std::int64_t piece(std::int64_t) { return 4 * kApart; }
  static bool takes_four() { return true; }
  static std::int64_t apart() { return kApart; }
  auto update(std::int64_t x, std::int64_t n) {
    form(i_, x, n, terms_);
    return terms();
  }
  auto update_four(std::int64_t x, std::int64_t n) {
    Index<D> i = behind<D>(i_, 0);
    for (int r = 0; r < 4; ++r, ++i[D > 1 ? D - 2 : 0]) form(i, x, n, terms_ + r * kApart);
    return terms();
  }

 private:
  static constexpr std::int64_t kApart = 128;

  void form(const Index<D>& i, std::int64_t x, std::int64_t n, double* terms) const {
    const auto term = terms_of_(i);
    ISOHALO_INDEPENDENT
    for (std::int64_t k = 0; k < n; ++k) terms[k] = term(x + k);
  }
  auto terms() const {
    return [all = static_cast<const double*>(terms_)](std::int64_t k) { return all[k]; };
  }

  Terms terms_of_;
  Index<D> i_;
  alignas(64) double terms_[4 * kApart];
};

}  // namespace isohalo
