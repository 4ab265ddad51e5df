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

}  // namespace isohalo
