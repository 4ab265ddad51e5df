#pragma once
/// poisson by sweeps (jacobi, red_black, chebyshev) with fields in the memory of a Kokkos execution space. Each
/// cell is the expression that the host's rows have.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "stencils/chebyshev_solver.hpp"
#include "stencils/device/device_stepper.hpp"
#include "stencils/jacobi_solver.hpp"
#include "stencils/red_black_solver.hpp"

namespace isohalo {

namespace detail {

/// At one cell, from u, for black cells that at the step's begin, and f. Colour 0 red, 1 black.
template <class T, int D, int Colour>
struct RedBlackPoint {
  Laplacian<T, D> laplacian;
  RedBlackCells<T, D> cells;
  const T* weights;
  Index<D> origin, stride;  ///< the arrays' cell with the lowest indices; of the arrays
  std::int64_t behind;      ///< elements from there to the first owned cell
  static constexpr std::size_t kReads = 2 + Colour, kWrites = 1;

  KOKKOS_FUNCTION std::array<T, 1> at(const std::array<const T*, kReads>& from, std::int64_t x) const {
    auto left = static_cast<std::uint64_t>(x + behind);
    std::int64_t parity = Colour;
    std::size_t place = 0;
    for (int j = 0; j < D; ++j) {
      const auto of_dimension = j + 1 < D ? left / static_cast<std::uint64_t>(stride[j]) : left;
      left -= of_dimension * static_cast<std::uint64_t>(stride[j]);
      const std::int64_t i = cells.wrapped(origin[j] + static_cast<std::int64_t>(of_dimension), j);
      parity += i;
      place = 4 * place + cells.sides(i, j);
    }
    const T* const u = from[0] + x;
    return {parity % 2 == 0 ? relaxed(laplacian, u, from[kReads - 1][x], weights[place]) : *u};
  }
};
/// Has its weights.
template <class T, int D, class Space, int Colour>
struct RedBlackStep {
  RedBlackPoint<T, D, Colour> point;
  Kokkos::View<T*, typename Space::memory_space> weights;
  RedBlackPoint<T, D, Colour> of_this_step() const {
    RedBlackPoint<T, D, Colour> here = point;
    here.weights = weights.data();
    return here;
  }
};

/// The square of r = f + lap(u).
template <class T, int D>
struct ResidualSquareAt {
  Laplacian<T, D> laplacian;
  const T *f, *u;
  KOKKOS_FUNCTION std::int64_t stride(int j) const { return laplacian.stride(j); }
  KOKKOS_FUNCTION double operator()(std::int64_t k) const {
    const auto r = static_cast<double>(f[k] + laplacian(u + k));
    return r * r;
  }
};

}  // namespace detail

template <class T, int D, class Space>
class DeviceRelaxation final : public DeviceStepper<T, D, Space> {
  using Base = DeviceStepper<T, D, Space>;

 public:
  /// The rules are none of one's own. Collective in order.
  DeviceRelaxation(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, int depth,
                   Exchange exchange)
      : Base(
            fields_of(equation.method), domain, StencilShape<D>::star(1), {equation.grid.boundary}, depth,
            [](const Index<D>&) { return typename Base::Kernels(); }, exchange),
        cells_(static_cast<double>(domain.global().cells())),
        system_(domain, equation, 1, exchange),
        chebyshev_(equation.method == PoissonMethod::chebyshev),
        steps_(equation.lambda_low, equation.lambda_high) {
    make_kernels(equation);
  }

  std::optional<FieldHandle<D>> source() override {
    return FieldHandle<D>{"f", "1", "auxiliary", system_.source()};
  }
  /// f is the source.
  std::vector<FieldHandle<D>> coefficients() override { return {}; }
  void reduce_by(const ReductionOptions& options) override {
    system_.reduce_by(options);
    Base::reduce_by(options);
  }
  void time_phases(PhaseClock* clock) override {
    system_.time_phases(clock);
    Base::time_phases(clock);
  }
  void set_time(std::int64_t step, double dt) override {
    if (chebyshev_) steps_.go_to(step);
    Base::set_time(step, dt);
  }
  /// The first step of chebyshev has no field before it: its own, which its factor of 0 leaves no trace of.
  void start() override {
    system_.start();
    copy(system_.source(), array_of(Base::coefficients()[0]));
    if (chebyshev_) copy(array_of(this->fields()[0]), array_of(this->fields()[1]));
    Base::start();
  }
  StopTest stop_test(double limit, double) override {
    const ArrayRef<T, D>& u = this->ready();
    return system_.stop_test(limit, this->sum_of(detail::ResidualSquareAt<T, D>{
                                        system_.laplacian(u.stride), this->coefficient(0).data, u.data}));
  }

 protected:
  double step(bool change) override {
    if (chebyshev_) factors_ = next_factors<T>(steps_);
    if (!system_.singular()) return Base::step(change);
    Base::step(false);
    const double total = this->sum_of(detail::ValueAt<T>{this->field().data});
    this->change_all("isohalo::shift", detail::ShiftAt<T>{static_cast<T>(total / cells_), this->field().data});
    return change ? this->change_of_step() : 0;
  }

 private:
  static StateFields fields_of(PoissonMethod method) {
    StateFields fields{{"u"}};
    fields.coefficients = {"f"};
    if (method == PoissonMethod::chebyshev) fields.before = {"u_previous"};
    if (method == PoissonMethod::red_black)
      fields.stages = 2, fields.stage_times = {0, 0}, fields.one_exchange = true;
    return fields;
  }
  void make_kernels(const PoissonEquation<D>& equation) {
    const Laplacian<T, D> laplacian = system_.laplacian(this->field().stride);
    typename Base::Kernels kernels;
    switch (equation.method) {
      case PoissonMethod::red_black:
        kernels.push_back(half_step<0>(equation, laplacian));
        kernels.push_back(half_step<1>(equation, laplacian));
        break;
      case PoissonMethod::chebyshev:
        kernels.push_back(Base::kernel_of(ChebyshevPoint<T, D>{laplacian, &factors_}));
        break;
      default:
        kernels.push_back(Base::kernel_of(jacobi_point<T>(laplacian, equation)));
    }
    this->compute_by(std::move(kernels));
  }
  template <int Colour>
  typename Base::KernelPointer half_step(const PoissonEquation<D>& equation, const Laplacian<T, D>& laplacian) {
    const ArrayRef<T, D>& u = this->field();
    const RedBlackCells<T, D> cells(equation);
    const Index<D> origin = u.allocated().low;
    return Base::kernel_of(detail::RedBlackStep<T, D, Space, Colour>{
        {laplacian, cells, nullptr, origin, u.stride, offset_of<D>(u.owned.low, origin, u.stride)},
        in_space<Space>("isohalo::weights", cells.weights(equation))});
  }
  static const ArrayRef<T, D>& array_of(const FieldHandle<D>& field) {
    return std::get<ArrayRef<T, D>>(field.array);
  }
  static void copy(const ArrayRef<T, D>& from, const ArrayRef<T, D>& to) {
    for_each_row(to.owned, [&](const Index<D>& i) { std::copy_n(&from.at(i), to.owned.extent(D - 1), &to.at(i)); });
  }

  double cells_;
  PoissonSystem<T, D> system_;
  bool chebyshev_;
  ChebyshevSteps steps_;
  ChebyshevFactors<T> factors_{};
};

}  // namespace isohalo
