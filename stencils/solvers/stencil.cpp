/// kind = "stencil": any weighted list of offsets.

#include <fmt/ranges.h>

#include <cmath>

#include "stencils/row_kernels.hpp"
#include "stencils/single_field_model.hpp"
#include "stencils/solvers.hpp"

namespace isohalo {

namespace {

template <int D>
class StencilModel : public SingleFieldModel<D> {
 public:
  StencilModel(const GridSettings<D>& grid, Offsets<D> offsets, std::vector<double> weights, double dt)
      : SingleFieldModel<D>(grid, StencilShape<D>::of(offsets), dt),
        offsets_(std::move(offsets)),
        weights_(std::move(weights)) {}

  std::string advice_not_finite() const override {
    double sum = 0;
    for (const double w : weights_) sum += std::abs(w);
    if (sum <= 1) return {};
    return fmt::format(
        "the absolute values of solver.weights add up to {:g}: values may grow by that factor in each step", sum);
  }
  std::unique_ptr<Solver<D>> create(const CartesianDomain<D>& domain, int depth, Exchange exchange,
                                    bool on_device) const override {
    return this->make(
        domain, depth, exchange, on_device,
        [this]<class T>(T, const Index<D>& stride) { return WeightedRow<T, D>(offsets_, weights_, stride); },
        [this]<class T>(T, const Index<D>& stride, const auto& make) {
          return with_weighted_point<T, D, DeviceSpace>(offsets_, weights_, stride, make);
        });
  }

 private:
  Offsets<D> offsets_;
  std::vector<double> weights_;
};

/// The list of offsets, each a list of D integers.
template <int D>
Offsets<D> read_offsets(Config& config) {
  const std::string path = "solver.offsets";
  const std::size_t before = config.error_count();
  const std::string expected = fmt::format("a list of offsets, each a list of {} integers (-1000 .. 1000)", D);
  const Value* v = config.node(path, {path, "list of lists of integers", "-1000 .. 1000", "required", "cells",
                                      "cells whose weighted sum is the new value, relative to the cell updated"});
  Offsets<D> offsets;
  const auto* list = v ? std::get_if<ValueList>(&v->data) : nullptr;
  if (!v) {
    config.error(path, fmt::format("required key {} is missing ({})", path, expected));
  } else if (!list || list->empty()) {
    config.error_at(*v, fmt::format("{} must be {}", path, expected));
  } else {
    for (const Value& item : *list) {
      const auto* numbers = std::get_if<ValueList>(&item.data);
      bool good = numbers && numbers->size() == D;
      Index<D> o{};
      for (int j = 0; good && j < D; ++j) {
        const auto x = as_integer((*numbers)[static_cast<std::size_t>(j)]);
        good = x && *x >= -1000 && *x <= 1000;
        if (good) o[j] = *x;
      }
      if (good)
        offsets.push_back(o);
      else
        config.error_at(item,
                        fmt::format("{} has an entry that is no list of {} integers in -1000 .. 1000", path, D));
    }
  }
  if (config.error_count() == before) config.set_effective(path, fmt::format("{}", offsets));
  return offsets;
}

template <int D>
std::unique_ptr<SolverModel<D>> make_stencil_model(Config& config, const GridSettings<D>& grid) {
  const std::size_t before = config.error_count();
  const Offsets<D> offsets = read_offsets<D>(config);
  const auto weights = config.numbers(
      "solver.weights", {0, {}, -1e300, 1e300, false, "", "one weight per offset, in the order of the offsets"});
  if (config.error_count() == before && offsets.size() != weights.size())
    config.error("solver.weights",
                 fmt::format("solver.weights has {} entries for {} offsets", weights.size(), offsets.size()));
  for (double w : weights) check_in_type(config, "solver.weights", "a weight", w, grid.type);
  const double dt = config.number(
      "solver.dt", {1.0, 0, 1e300, false, "time", "time that a step stands for; not part of the arithmetic"});
  if (config.has_errors())
    return std::make_unique<StencilModel<D>>(grid, Offsets<D>{Index<D>{}}, std::vector<double>{1}, dt);
  return std::make_unique<StencilModel<D>>(grid, offsets, weights, dt);
}

}  // namespace

void add_stencil(SolverKinds& kinds) {
  kinds.add("stencil",
            []<int D>(Config& config, const GridSettings<D>& grid) { return make_stencil_model(config, grid); });
}

}  // namespace isohalo
