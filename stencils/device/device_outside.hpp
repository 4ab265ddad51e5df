#pragma once
/// Filling the cells outside the grid by kernels (docs/model.md, "Outside cells").

#include <string>
#include <vector>

#include "datatypes/error.hpp"
#include "framework/halo/outside_cells.hpp"
#include "stencils/boundary_values.hpp"
#include "stencils/device/device_field.hpp"
#include "stencils/device/device_loops.hpp"

namespace isohalo {

namespace detail {

/// How an outside cell follows from the mirrored one, m, and from a number w that is prepared on the host.
enum class OutsideForm {
  mirrored,    ///< m
  given,       ///< w
  plus,        ///< m + w
  difference,  ///< w - c m
};

/// w and c. The roundings are those of with_rule.
template <class T>
struct OutsideTerms {
  OutsideForm form;
  T w, c;
};

template <class T>
OutsideTerms<T> outside_terms(const BoundaryRule& rule, double distance, double v) {
  switch (rule.kind) {
    case Boundary::fixed:
      return {OutsideForm::given, static_cast<T>(v), T(0)};
    case Boundary::dirichlet:
      return {OutsideForm::difference, static_cast<T>(T(2) * static_cast<T>(v)), T(1)};
    case Boundary::robin: {
      const double a = 0.5 * rule.parameters[0], b = rule.parameters[1] / distance, sum = a + b;
      return {OutsideForm::difference, static_cast<T>(v / sum), static_cast<T>((a - b) / sum)};
    }
    default:
      if (!rule.has_gradient()) return {OutsideForm::mirrored, T(0), T(0)};
      return {OutsideForm::plus, static_cast<T>(distance * v), T(0)};
  }
}

/// Outside cell n of all layers of a side.
template <class T, int D>
struct OutsideKernel {
  OutsideForm form;
  int side;            ///< the dimension
  std::int64_t first;  ///< from the first owned cell to the first outside one
  Divisor extent[D];   ///< in dimension `side`: of the layers, outwards
  std::int64_t stride[D], value_stride[D] = {};
  T* u;
  const T *w, *c;  ///< of each value; of each layer

  KOKKOS_FUNCTION void operator()(const std::int64_t n) const {
    auto left = static_cast<std::uint32_t>(n);
    std::int64_t at = first, value = 0, layer = 0;
    for (int j = D - 1; j >= 0; --j) {
      std::uint32_t i = left;
      left = extent[j].take_from(i);
      at += i * stride[j];
      value += i * value_stride[j];
      if (j == side) layer = i;
    }
    const T m = form == OutsideForm::given ? T(0) : u[at - (2 * layer + 1) * stride[side]];
    u[at] = form == OutsideForm::mirrored ? m
            : form == OutsideForm::given  ? w[value]
            : form == OutsideForm::plus   ? static_cast<T>(m + w[value])
                                          : static_cast<T>(w[value] - c[layer] * m);
  }
};

}  // namespace detail

/// The cells outside the grid of one field in the memory of Space, filled at one time after the other: OutsideCells
/// by kernels. Rules of one's own, which are host code, are not for it. Expressions are evaluated on the host.
template <class T, int D, class Space>
class DeviceOutside {
 public:
  DeviceOutside(const BoundaryRules<D>& rules, const Box<D>& global, const Index<D>& layers_low,
                const Index<D>& layers_high)
      : rules_(rules), global_(global), layers_low_(layers_low), layers_high_(layers_high) {}

  /// Fills the ghost cells of `u` outside the grid where `valid` touches a side that is not periodic, by the rules'
  /// values at `time`. Local. Does not fence.
  void fill(const ArrayRef<T, D>& u, const Box<D>& valid, double time);

 private:
  using Numbers = Kokkos::View<T*, typename Space::memory_space>;

  /// What the outside cells of one side are made of; of rules with expressions for all places asked for so far.
  struct Values {
    BoundaryValues<D> exact;
    std::vector<T> all, factors;  ///< on the host: layer by layer, row-major; of each layer
    Numbers w, c;
    detail::OutsideForm form{};
    Box<D> span{};  ///< of each layer, but for the side's dimension
    std::int64_t layers = 0;
    double time = 0;

    void bring(const BoundaryRules<D>& rules, const Box<D>& global, const detail::OutsideSide<D>& s,
               double its_time) {
      const bool varies = s.rule.expression != nullptr;
      const bool now = !varies || !s.rule.expression->uses_time() || time == its_time;
      if (now && layers >= s.layers && (!varies || covers(s))) return;
      Box<D> places = s.places, values = s.span;
      for (int k = 0; k < D && layers > 0; ++k) {
        if (k == s.j) continue;
        values.low[k] = places.low[k] = std::min(values.low[k], span.low[k]);
        values.high[k] = places.high[k] = std::max(values.high[k], span.high[k]);
      }
      span = values, layers = std::max(layers, s.layers), time = its_time;
      if (s.rule.kind == Boundary::fixed) {
        places.low[s.j] = std::min(s.outside(0), s.outside(layers - 1));
        places.high[s.j] = places.low[s.j] + layers;
      }
      if (varies) exact.bring(rules, global, s.j, s.outward, places, its_time);
      all.clear();
      factors.clear();
      for (std::int64_t k = 0; k < layers; ++k) {
        Box<D> layer = span;
        layer.low[s.j] = s.outside(k), layer.high[s.j] = layer.low[s.j] + 1;
        const auto add = [&](double v) {
          const auto terms = detail::outside_terms<T>(s.rule, s.distance(k), v);
          form = terms.form;
          all.push_back(terms.w);
          return terms.c;
        };
        T factor{};
        if (varies)
          for_each_cell(layer, [&](const Index<D>& i) { factor = add(*exact.at(i)); });
        else
          factor = add(s.rule.value);
        factors.push_back(factor);
      }
      copy_to_space<Space>("isohalo::outside_values", all, w);
      copy_to_space<Space>("isohalo::outside_factors", factors, c);
    }

   private:
    bool covers(const detail::OutsideSide<D>& s) const {
      for (int k = 0; k < D; ++k)
        if (k != s.j && (s.span.low[k] < span.low[k] || s.span.high[k] > span.high[k])) return false;
      return true;
    }
  };

  void launch(const ArrayRef<T, D>& u, const detail::OutsideSide<D>& s, const Values& values) const {
    detail::OutsideKernel<T, D> kernel{values.form, s.j, 0, {}, {}, {}, u.data, values.w.data(), values.c.data()};
    Index<D> begin = s.span.low;
    begin[s.j] = s.outside(0);
    kernel.first = offset_of<D>(begin, u.owned.low, u.stride);
    std::int64_t cells = 1, of_layer = 1;
    for (int j = D - 1; j >= 0; --j) {
      const std::int64_t extent = j == s.j ? s.layers : s.span.extent(j);
      kernel.extent[j] = detail::Divisor(extent);
      kernel.stride[j] = j == s.j ? s.outward * u.stride[j] : u.stride[j];
      cells *= extent;
      if (j == s.j || !s.rule.expression) continue;
      kernel.value_stride[j] = of_layer;
      kernel.w += (s.span.low[j] - values.span.low[j]) * of_layer;
      of_layer *= values.span.extent(j);
    }
    kernel.value_stride[s.j] = of_layer;
    if (cells >> 31)
      throw UsageError("a side of " + std::to_string(cells) +
                       " outside cells: kernels fill fewer than 2^31 at a time; use more ranks");
    detail::for_each_number_in<Space>("isohalo::sides", cells, kernel);
  }

  BoundaryRules<D> rules_;
  Box<D> global_;
  Index<D> layers_low_, layers_high_;
  PerDim<Values, D> low_{}, high_{};
};

// Compiled once, in device_stepper.cpp.
template <class T, int D, class Space>
void DeviceOutside<T, D, Space>::fill(const ArrayRef<T, D>& u, const Box<D>& valid, double time) {
  detail::for_each_side_around(u.allocated(), rules_, global_, valid, layers_low_, layers_high_,
                               [&](const detail::OutsideSide<D>& s) {
                                 Values& values = (s.outward < 0 ? low_ : high_)[s.j];
                                 values.bring(rules_, global_, s, time);
                                 launch(u, s, values);
                               });
}

#define ISOHALO_DECLARE(T, D) extern template class DeviceOutside<T, D, DeviceSpace>;
ISOHALO_FOR_EACH_FIELD(ISOHALO_DECLARE)
#undef ISOHALO_DECLARE

}  // namespace isohalo
