#pragma once
/// A solver as an input file asks for it, with its fields in place, without a run around it.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/neighborhood/offsets.hpp"
#include "framework/run/input.hpp"
#include "stencils/solvers.hpp"

namespace isohalo {

template <int D>
class InputSolver {
 public:
  /// `text`: that of an input file of D dimensions. Collective in order. Throws as a run does, but that errors are
  /// not agreed on: texts come from the program.
  InputSolver(MPI_Comm user, const std::string& text, const SolverKinds& kinds = shipped_solvers())
      : config_(text, "input", {}),
        kinds_(kinds),
        in_(checked_input<D>(config_, kinds_, "input", Communicator::of(user).size())),
        domain_(user, in_.grid.shape, in_.domain_options()),
        solver_(in_.solver(domain_)) {
    const auto fields = solver_->fields();
    for (std::size_t k = 0; k < in_.initial.size(); ++k) in_.initial[k].fill(domain_, fields[k], config_);
    if (in_.source) in_.source->fill(domain_, *solver_->source(), config_);
    const auto given = solver_->coefficients();
    for (std::size_t k = 0; k < given.size(); ++k) in_.model->coefficients()[k]->fill(domain_, given[k], config_);
    solver_->reduce_by(in_.parallel.reduction);
    solver_->set_time(0, in_.model->dt());
    solver_->start();
  }

  const CartesianDomain<D>& domain() const { return domain_; }
  const Input<D>& input() const { return in_; }
  Solver<D>& operator*() { return *solver_; }
  Solver<D>* operator->() { return solver_.get(); }

 private:
  Config config_;
  SolverKinds kinds_;
  Input<D> in_;
  CartesianDomain<D> domain_;
  std::unique_ptr<Solver<D>> solver_;
};

/// `D` numbers as a list of TOML, such as "[1, 2]".
template <int D, class List>
std::string list_text(const List& list) {
  std::string text = "[";
  for (int j = 0; j < D; ++j) text += (j ? ", " : "") + Config::canonical(list[j]);
  return text + "]";
}

/// [domain], [parallel] and [run] of a grid in slabs. Dimension j of a cell is 1 + j `stretch` long.
template <int D>
std::string grid_text(MPI_Comm comm, const Index<D>& shape, const std::string& side, const std::string& depth = "1",
                      double stretch = 0.1) {
  PerDim<double, D> length;
  PerDim<std::int64_t, D> slabs;
  std::string sides;
  int ranks = 1;
  MPI_Comm_size(comm, &ranks);
  for (int j = 0; j < D; ++j) {
    length[j] = static_cast<double>(shape[j]) * (1 + stretch * j);
    slabs[j] = j == 0 ? ranks : 1;
    sides += (j ? ", " : "") + side;
  }
  return fmt::format(
      "domain.shape = {}\ndomain.length = {}\ndomain.boundary = {{low = [{}], high = [{}]}}\n"
      "parallel.process_grid = {}\nparallel.halo_depth = {}\nrun.steps = 1\n",
      list_text<D>(shape), list_text<D>(length), sides, sides, list_text<D>(slabs), depth);
}
inline constexpr const char* kPeriodicSide = "\"periodic\"";
inline constexpr const char* kLife = "domain.type = \"uint8\"\nsolver.kind = \"life\"\n";
inline constexpr const char* kZeroSide = "{fixed = 0.0}";
inline constexpr const char* kHeat = "solver = {kind = \"heat\", kappa = 1.0, dt = 0.1}\n";

/// [initial] of one field, or of several of these names.
inline constexpr const char* kRandomField = "initial.kind = \"random\"\n";
inline std::string random_text(const std::vector<std::string>& fields) {
  std::string text;
  for (std::size_t k = 0; k < fields.size(); ++k)
    text += fmt::format("initial.{} = {{kind = \"random\", seed = {}}}\n", fields[k], k);
  return text;
}

/// Near 1 over their number.
inline std::vector<double> stencil_weights(std::size_t n) {
  std::vector<double> weights;
  for (std::size_t k = 0; k < n; ++k)
    weights.push_back(1 / static_cast<double>(n) + 0.0001 * static_cast<double>(k));
  return weights;
}
/// kind = "stencil" with these weights.
template <int D>
std::string stencil_text(const Offsets<D>& offsets) {
  std::string list;
  for (const Index<D>& o : offsets) list += (list.empty() ? "" : ", ") + list_text<D>(o);
  return fmt::format("solver = {{kind = \"stencil\", offsets = [{}], weights = {}}}\n", list,
                     Config::canonical(stencil_weights(offsets.size())));
}

}  // namespace isohalo
