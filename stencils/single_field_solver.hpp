#pragma once
/// A solver with one field `u` that a row kernel advances.

#include <memory>

#include "framework/run/solver.hpp"
#include "stencils/deep_stepper.hpp"

namespace isohalo {

template <class T, int D, class Row>
class SingleFieldSolver : public Solver<D> {
 public:
  template <class MakeRow>
  SingleFieldSolver(const CartesianDomain<D>& domain, const StencilShape<D>& shape, const BoundaryRules<D>& rules,
                    int depth, Exchange exchange, MakeRow&& make_row)
      : stepper_("u", domain, shape, rules, depth, make_row, exchange) {}

  std::vector<FieldHandle<D>> fields() override { return {{"u", "1", "state", stepper_.field()}}; }
  void fields_changed() override { stepper_.invalidate_ghosts(); }
  double advance(std::int64_t steps, bool change) override { return stepper_.advance(steps, change); }
  ExchangeChoice exchange() const override { return stepper_.plan().choice(); }
  Index<D> tile() const override { return stepper_.tile(); }
  void time_phases(PhaseClock* clock) override { stepper_.time_phases(clock); }
  void reduce_by(const ReductionOptions& options) override { stepper_.reduce_by(options); }

 private:
  DeepStepper<T, D, Row> stepper_;
};

/// Bytes of one field of this type and of these extents and ghost layers.
template <int D>
double field_bytes(ElementType type, const Index<D>& extents, const Index<D>& ghost_low,
                   const Index<D>& ghost_high) {
  switch (type) {
    case ElementType::float32:
      return Field<float, D>::bytes_needed(extents, ghost_low, ghost_high);
    case ElementType::uint8:
      return Field<std::uint8_t, D>::bytes_needed(extents, ghost_low, ghost_high);
    default:
      return Field<double, D>::bytes_needed(extents, ghost_low, ghost_high);
  }
}

/// Bytes of the two fields such a solver holds, and of the cell sets that plan the halos of a list without a name.
template <int D>
double two_field_memory(const GridSettings<D>& grid, const StencilShape<D>& shape, const Index<D>& extents,
                        int depth) {
  const auto ghosts = shape.ghost_widths(depth, boundary_topology_of(grid.boundary, box_of_shape<D>(grid.shape)));
  double sets = 0;
  if (shape.kind() == StencilShape<D>::Kind::custom) {
    sets = 2;
    for (int j = 0; j < D; ++j)
      sets *= static_cast<double>(std::min(extents[j], 2 * (ghosts[0][j] + ghosts[1][j]) + 1) + ghosts[0][j] +
                                  ghosts[1][j]);
  }
  return sets + 2 * field_bytes<D>(grid.type, extents, ghosts[0], ghosts[1]);
}

}  // namespace isohalo
