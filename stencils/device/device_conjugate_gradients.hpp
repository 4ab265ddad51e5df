#pragma once
/// poisson, method = "cg", with vectors in the memory of a Kokkos execution space. Each element is the expression
/// that HostConjugateGradients takes, and sums have the order of the reduction tree, so both give the same bits.

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "stencils/conjugate_gradients.hpp"
#include "stencils/device/device_outside.hpp"
#include "stencils/device/device_sum.hpp"

namespace isohalo {

namespace detail {

/// (p, A p).
template <class T, int D>
struct ProductAt : OperatorAt<T, D> {
  KOKKOS_FUNCTION double operator()(std::int64_t k) const { return this->product(k); }
};

}  // namespace detail

template <class T, int D, class Space>
class DeviceConjugateGradients final : public ConjugateGradients<T, D> {
 public:
  /// The rules are none of one's own. Collective in order.
  DeviceConjugateGradients(const CartesianDomain<D>& domain, const PoissonEquation<D>& equation, Exchange exchange)
      : ConjugateGradients<T, D>(domain, equation, exchange, {}),
        u_(made("u")),
        r_(made("r")),
        p_(made("p")),
        here_{HostCopy<T, D>(u_), HostCopy<T, D>(r_), HostCopy<T, D>(p_)},
        owned_(domain.owned()),
        valid_(owned_.grown(index_of<D>(1), index_of<D>(1)).intersect(domain.global())),
        outside_(this->rules_.homogeneous(), domain.global(), index_of<D>(1), index_of<D>(1)),
        tree_(domain),
        sum_(tree_) {}

  void reduce_by(const ReductionOptions& options) override {
    ConjugateGradients<T, D>::reduce_by(options);
    tree_.reduce_by(options);
  }
  double advance(std::int64_t steps, bool change) override {
    host_is_behind_ = true;
    const double rr = ConjugateGradients<T, D>::advance(steps, change);
    const PhaseScope scope(system_.phases(), Phase::sweep);
    Space().fence();
    return rr;
  }

 protected:
  std::array<ArrayRef<T, D>, 3> on_host() override {
    if (std::exchange(host_is_behind_, false))
      for (std::size_t f = 0; f < here_.size(); ++f) here_[f].bring_from(*all()[f]);
    return {here_[0].ref(), here_[1].ref(), here_[2].ref()};
  }
  void take_from_host() override {
    for (std::size_t f = 0; f < here_.size(); ++f) here_[f].take_to(*all()[f]);
  }
  double curvature() override {
    {
      const PhaseScope scope(system_.phases(), Phase::exchange);
      plan_.exchange(p_.erased());
    }
    {
      const PhaseScope scope(system_.phases(), Phase::boundary);
      outside_.fill(p_.ref(), valid_, 0);
    }
    return sum(detail::ProductAt<T, D>{a_p()});
  }
  double descend(T alpha, T shift, double& sum_of_u) override {
    const double rr = sum(detail::DescentAt<T, D>{alpha, shift, a_p(), data(u_), data(r_)});
    if (system_.singular()) sum_of_u = sum(detail::ValueAt<T>{data(u_)});
    return rr;
  }
  double turn(T beta) override {
    each("isohalo::turn", detail::TurnAt<T>{beta, data(r_), data(p_)});
    return curvature();
  }
  void shift(T by) override { each("isohalo::shift", detail::ShiftAt<T>{by, data(u_)}); }

 private:
  using Vector = DeviceField<T, D, Space>;
  using ConjugateGradients<T, D>::system_;
  using ConjugateGradients<T, D>::plan_;

  /// All with the ghosts of p, so that a cell lies at the same place in each.
  Vector made(const std::string& name) const {
    return Vector(name, this->domain_.owned(), plan_.ghost_low(), plan_.ghost_high());
  }
  static T* data(const Vector& v) { return v.ref().data; }
  detail::OperatorAt<T, D> a_p() const { return {system_.laplacian(p_.ref().stride), data(p_)}; }
  std::array<const Vector*, 3> all() const { return {&u_, &r_, &p_}; }

  /// f(k) for the owned cells. Does not fence.
  template <class F>
  void each(const char* label, const F& f) {
    const PhaseScope scope(system_.phases(), Phase::sweep);
    for_each_cell_in<Space>(label, owned_, p_.ref(), f);
  }
  template <class Term>
  double sum(const Term& term) {
    const PhaseScope scope(system_.phases(), Phase::reduction);
    sum_.form(term, p_.ref());
    return tree_.combine();
  }

  Vector u_, r_, p_;
  std::array<HostCopy<T, D>, 3> here_;
  bool host_is_behind_ = false;
  Box<D> owned_, valid_;
  DeviceOutside<T, D, Space> outside_;
  CellSum<D> tree_;
  DeviceSum<D, Space> sum_;
};

}  // namespace isohalo
