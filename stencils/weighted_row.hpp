#pragma once
/// Row kernel of a weighted list of offsets (see row_kernels.hpp).

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "framework/neighborhood/offsets.hpp"
#include "stencils/weighted_terms.hpp"

namespace isohalo {

/// acc = w_0 u(i+o_0); acc = acc + w_1 u(i+o_1); ...; out = acc (docs/model.md, kind = "stencil"). Any number of
/// offsets.
template <class T, int D, int Bytes = detail::kVectorBytes>
class WeightedRow final : public RowKernel<T, D> {
 public:
  /// `by_runs`: as WeightedTerms takes it. Rows have about stride[D-2] cells.
  WeightedRow(const Offsets<D>& offsets, const std::vector<double>& weights, const Index<D>& stride,
              std::optional<bool> by_runs = {})
      : terms_(elements(offsets, stride), weights, D > 1 ? stride[std::max(0, D - 2)] : 0, by_runs) {}

  void run(const T* const* in, std::int64_t at, T* const* out, std::int64_t to, const CellRows& rows,
           const Index<D>&) const override {
    terms_.run(in[0] + at, out[0] + to, rows);
  }
  bool streams() const override { return terms_.streams(); }
  int rows_together() const override { return terms_.rows_together(); }
  bool takes_any_value() const override { return true; }
  void stream(std::span<T* const> in, std::span<T* const> out, std::int64_t at, const CellRows& rows,
              const Index<D>&, const Streaming<T>& how) const override {
    terms_.stream(in[0], out[0], at, rows, how);
  }
  /// One row.
  void run_row(const T* in, T* out, std::int64_t n) const { terms_.run_row(in, out, n); }

 private:
  static std::vector<std::int64_t> elements(const Offsets<D>& offsets, const Index<D>& stride) {
    std::vector<std::int64_t> away;
    for (const Index<D>& o : offsets) away.push_back(offset_of<D>(o, {}, stride));
    return away;
  }

  WeightedTerms<T, Bytes> terms_;
};

}  // namespace isohalo
