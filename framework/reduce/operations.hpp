#pragma once
/// The usual operations of a reduction.

namespace isohalo {

/// The smaller (larger) of two; a NaN on either side wins, so that it cannot hide.
struct Min {
  template <class V>
  V operator()(const V& a, const V& b) const {
    return b < a || b != b ? b : a;
  }
};
struct Max {
  template <class V>
  V operator()(const V& a, const V& b) const {
    return a < b || b != b ? b : a;
  }
};
struct Sum {
  template <class V>
  V operator()(const V& a, const V& b) const {
    return a + b;
  }
};

/// op(a, b) as a value of the sum's type, whatever the operation returns: so values are rounded alike everywhere.
template <class V, class Op>
V combined(const Op& op, const V& a, const V& b) {
  return static_cast<V>(op(a, b));
}

}  // namespace isohalo
