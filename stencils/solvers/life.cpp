/// kind = "life": Conway's game of life and its relatives on a 2-D grid of bytes.

#include <fmt/format.h>

#include "framework/run/cell_text.hpp"
#include "stencils/device/device_path.hpp"
#include "stencils/life_row.hpp"
#include "stencils/single_field_model.hpp"
#include "stencils/solvers.hpp"

namespace isohalo {

namespace {

struct LifeRule {
  unsigned born = 1u << 3, survive = 1u << 2 | 1u << 3;  ///< bit n: with n living neighbors
};

/// "B3/S23": digits 0 to 8, each at most once. False for anything else.
bool parse_rule(const std::string& text, LifeRule& rule) {
  const auto slash = text.find('/');
  if (slash == std::string::npos || text[0] != 'B' || slash + 1 >= text.size() || text[slash + 1] != 'S')
    return false;
  LifeRule found{0, 0};
  for (std::size_t k = 1; k < text.size(); ++k) {
    if (k == slash || k == slash + 1) continue;
    if (text[k] < '0' || text[k] > '8') return false;
    unsigned& counts = k < slash ? found.born : found.survive;
    const unsigned bit = 1u << (text[k] - '0');
    if (counts & bit) return false;
    counts |= bit;
  }
  rule = found;
  return true;
}

/// The same with its digits in order.
std::string rule_text(const LifeRule& rule) {
  const auto digits = [](unsigned counts) {
    std::string text;
    for (unsigned n = 0; n <= 8; ++n)
      if (counts >> n & 1u) text += static_cast<char>('0' + n);
    return text;
  };
  return "B" + digits(rule.born) + "/S" + digits(rule.survive);
}

/// Collective. Throws UsageError, the same on all ranks, for other values than 0 and 1.
void check_states(const CartesianDomain<2>& domain, const ArrayRef<std::uint8_t, 2>& u) {
  const std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::int64_t bad = none;
  for_each_cell(domain.owned(), [&](const Index<2>& i) {
    if (u.at(i) > 1) bad = std::min(bad, linear_index(domain.global(), i));
  });
  bad = domain.comm().min(bad);
  if (bad != none)
    throw UsageError(
        fmt::format("the initial field \"u\" has another value than 0 and 1, first at {}: a cell of life is "
                    "dead or alive",
                    cell_text(domain.global(), bad)));
}

struct LifePoint {
  LifeAt cell;
  static constexpr std::size_t kReads = 1, kWrites = 1;
  KOKKOS_FUNCTION std::int64_t stride(int) const { return cell.row; }
  KOKKOS_FUNCTION std::array<std::uint8_t, 1> at(const std::array<const std::uint8_t*, 1>& from,
                                                 std::int64_t x) const {
    return {cell(from[0] + x)};
  }
};

/// On the host or on a device, as Stepper computes.
template <class Stepper>
class LifeSolver final : public Stepper {
 public:
  /// `make_kernel(stride)`. Collective in order.
  template <class MakeKernel>
  LifeSolver(const CartesianDomain<2>& domain, const BoundaryRules<2>& rules, int depth, Exchange exchange,
             const MakeKernel& make_kernel)
      : Stepper(
            StateFields{{"u"}}, domain, StencilShape<2>::moore(1), {rules}, depth,
            [&](const Index<2>& stride) {
              typename Stepper::Kernels kernels;
              kernels.push_back(make_kernel(stride));
              return kernels;
            },
            exchange),
        domain_(domain) {}

  void start() override {
    check_states(domain_, std::get<ArrayRef<std::uint8_t, 2>>(this->fields()[0].array));
    Stepper::start();
  }

 private:
  CartesianDomain<2> domain_;
};

class LifeModel : public SingleFieldModel<2> {
 public:
  LifeModel(const GridSettings<2>& grid, const LifeRule& rule)
      : SingleFieldModel<2>(grid, StencilShape<2>::moore(1), 0), rule_(rule) {}

  std::unique_ptr<Solver<2>> create(const CartesianDomain<2>& domain, int depth, Exchange exchange,
                                    [[maybe_unused]] bool on_device) const override {
    if constexpr (kDevicePath > 0)
      if (on_device)
        return std::make_unique<LifeSolver<DeviceStepper<std::uint8_t, 2, DeviceSpace>>>(
            domain, this->grid().boundary, depth, exchange, [this](const Index<2>& stride) {
              return device_kernel<std::uint8_t, 2, DeviceSpace>(LifePoint{{rule_.born, rule_.survive, stride[0]}});
            });
    return std::make_unique<LifeSolver<StateStepper<std::uint8_t, 2>>>(
        domain, this->grid().boundary, depth, exchange, [this](const Index<2>& stride) {
          return row_kernel<std::uint8_t, 2>(LifeRow<>(rule_.born, rule_.survive, stride));
        });
  }

 private:
  LifeRule rule_;
};

/// Outside cells are dead, alive or copies: a value at the face has no meaning for states.
void check_side(Config& config, const std::string& path, const BoundaryRule& rule) {
  if (rule.kind == Boundary::dirichlet)
    config.error(path, path +
                           ": life has no {dirichlet = VALUE}: use {fixed = 0}, {fixed = 1}, \"neumann\" or "
                           "\"periodic\"");
  if (rule.kind == Boundary::fixed && rule.value != 0 && rule.value != 1)
    config.error(path,
                 fmt::format("{}: {{fixed = {:g}}} is no state of life: 0 (dead) or 1 (alive)", path, rule.value));
}

std::unique_ptr<SolverModel<2>> make_life_model(Config& config, const GridSettings<2>& grid) {
  LifeRule rule;
  const std::string text = config.text(
      "solver.rule",
      {"B3/S23",
       {},
       "with how many living neighbors, of 8, a cell comes alive (digits after B) or stays alive (after S)"});
  if (!parse_rule(text, rule))
    config.error(
        "solver.rule",
        fmt::format("solver.rule = {} is no rule: write B, digits 0 to 8, /S, digits 0 to 8, such as \"B3/S23\"",
                    Config::canonical(text)));
  else
    config.set_effective("solver.rule", Config::canonical(rule_text(rule)));
  for (int j = 0; j < 2; ++j) {
    check_side(config, "domain.boundary.low", grid.boundary.low[j]);
    check_side(config, "domain.boundary.high", grid.boundary.high[j]);
  }
  return std::make_unique<LifeModel>(grid, rule);
}

}  // namespace

void add_life(SolverKinds& kinds) {
  kinds.add("life", make_life_model);
  kinds.types["life"] = {"uint8"};
}

}  // namespace isohalo
