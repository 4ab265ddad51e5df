#pragma once
/// The kinds of steps that `bench sweep` and `bench temporal` measure.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/bench/hand_rows.hpp"
#include "stencils/cell_solver.hpp"
#include "stencils/deep_stepper.hpp"
#include "stencils/row_kernels.hpp"
#include "stencils/solvers/gray_scott.hpp"
#include "stencils/solvers/wave.hpp"

namespace isohalo {

/// A periodic grid in slabs, since the hand-written code cuts these. Collective.
template <int D>
CartesianDomain<D> periodic_slabs(MPI_Comm user, const Index<D>& shape) {
  DomainOptions<D> options;
  options.periodic.fill(true);
  PerDim<int, D> slabs;
  slabs.fill(1);
  MPI_Comm_size(user, &slabs[0]);
  options.process_grid = slabs;
  return CartesianDomain<D>(user, shape, options);
}

/// One kind of step on one grid: our solver, and the same expression written by hand.
template <int D, class HandRow, std::size_t N = 1>
struct Case {
  std::string name;
  Index<D> shape;
  std::function<std::unique_ptr<StateStepper<double, D>>(const CartesianDomain<D>&, int depth, Overlap)> make;
  std::function<HandRow(const Index<D>&)> make_hand;
};

/// Ours is this row kernel of one field.
template <int D, class HandRow, class MakeRow>
auto row_case(const std::string& name, const Index<D>& shape, const StencilShape<D>& stencil,
              const MakeRow& make_row, const std::function<HandRow(const Index<D>&)>& make_hand) {
  const auto make = [=](const CartesianDomain<D>& domain, int depth, Overlap overlap) {
    return std::unique_ptr<StateStepper<double, D>>(std::make_unique<DeepStepper<double, D>>(
        "u", domain, stencil, BoundaryRules<D>{}, depth, make_row, Exchange::automatic, overlap));
  };
  return Case<D, HandRow>{name, shape, make, make_hand};
}

/// Ours runs the loop that is written by hand.
template <int D>
auto loop_case(const std::string& name, const Index<D>& shape) {
  const auto make = [](const Index<D>& s) {
    HandHeatRow<D> row{{}, s};
    row.c.fill(0.1);
    return row;
  };
  return row_case<D, HandHeatRow<D>>(name, shape, StencilShape<D>::star(1), make, make);
}

template <int D>
auto heat_case(const std::string& name, const Index<D>& shape) {
  PerDim<double, D> k;
  for (int j = 0; j < D; ++j) k[j] = 0.1 + 0.01 * j;
  return row_case<D, HandHeatRow<D>>(
      name, shape, StencilShape<D>::star(1), [k](const Index<D>& s) { return HeatRow<double, D>(k, s); },
      [k](const Index<D>& s) {
        return HandHeatRow<D>{k, s};
      });
}

template <int D>
auto box_case(const std::string& name, const Index<D>& shape) {
  constexpr int n = D == 2 ? 9 : 27;
  const Offsets<D> offsets = moore<D>(1, Self::include);
  std::vector<double> weights;
  for (int k = 0; k < n; ++k) weights.push_back(1.0 / n + 0.0001 * k);
  return row_case<D, HandBoxRow<D>>(
      name, shape, StencilShape<D>::moore(1),
      [=](const Index<D>& s) { return WeightedRow<double>::of<D>(offsets, weights, s); },
      [=](const Index<D>& s) { return HandBoxRow<D>(weights, s); });
}

/// Weighted neighbors as an input file lists them, N of them and at most `Layers` away.
template <int D, std::size_t N, int Layers>
auto list_case(const std::string& name, const Index<D>& shape, const Offsets<D>& offsets) {
  std::vector<double> weights;
  for (std::size_t k = 0; k < N; ++k) weights.push_back(1.0 / N + 0.0001 * static_cast<double>(k));
  return row_case<D, HandListRow<D, N, Layers>>(
      name, shape, StencilShape<D>::of(offsets),
      [=](const Index<D>& s) { return WeightedRow<double>::of<D>(offsets, weights, s); },
      [=](const Index<D>& s) { return HandListRow<D, N, Layers>(offsets, weights, s); });
}
template <int D, int Radius>
auto star_case(const std::string& name, const Index<D>& shape) {
  return list_case<D, 2 * D * Radius + 1, Radius>(name, shape, star<D>(Radius, Self::include));
}

/// Ours is a function of a cell, on cells of unit width but for their stretch.
template <class S, int D, class HandRow, std::size_t N = 1>
auto cell_case(const std::string& name, const Index<D>& shape, double dt,
               const std::array<double, detail::kCoefficients<S, D>>& numbers,
               const std::function<HandRow(const PerDim<double, D>& inverse_square, const Index<D>&)>& make_hand) {
  detail::CellSettings<S, D> settings;
  settings.dt = dt;
  settings.numbers = numbers;
  PerDim<double, D> inverse_square;
  for (int j = 0; j < D; ++j) {
    settings.grid.spacing[j] = 1 + 0.1 * j;
    inverse_square[j] = 1 / (settings.grid.spacing[j] * settings.grid.spacing[j]);
  }
  const auto make = [=](const CartesianDomain<D>& domain, int depth, Overlap overlap) {
    return std::unique_ptr<StateStepper<double, D>>(
        std::make_unique<detail::CellSolver<S, double, D>>(settings, domain, depth, Exchange::automatic, overlap));
  };
  return Case<D, HandRow, N>{name, shape, make, [=](const Index<D>& s) { return make_hand(inverse_square, s); }};
}

/// Heat again.
struct Diffusion {
  static constexpr auto fields = names("u");
  template <int D>
  StencilShape<D> shape() const {
    return StencilShape<D>::star(1);
  }
  template <class Cell>
  double operator()(const Cell& u, double) const {
    return u() + laplace(u);
  }
};

template <int D>
auto diffusion_case(const std::string& name, const Index<D>& shape) {
  return cell_case<Diffusion, D, HandHeatRow<D>>(name, shape, 0.0, {},
                                                 [](const PerDim<double, D>& r, const Index<D>& s) {
                                                   return HandHeatRow<D>{r, s};
                                                 });
}

template <int D>
auto wave_case(const std::string& name, const Index<D>& shape) {
  return cell_case<Wave, D, HandWaveRow<D>>(name, shape, 0.5, {0.9, 0.1},
                                            [](const PerDim<double, D>& r, const Index<D>& s) {
                                              return HandWaveRow<D>{r, 0.9, 0.1, 0.5, s};
                                            });
}

inline auto gray_scott_case(const std::string& name, const Index<2>& shape) {
  return cell_case<GrayScott, 2, HandGrayScottRow, 2>(name, shape, 0.1, {},
                                                      [](const PerDim<double, 2>& r, const Index<2>& s) {
                                                        const GrayScott g;
                                                        return HandGrayScottRow{r, g.Du, g.Dv, g.F, g.k, 0.1, s};
                                                      });
}

}  // namespace isohalo
