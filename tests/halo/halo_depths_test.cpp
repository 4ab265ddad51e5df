/// Halos many times deeper than the blocks and the grid, in 3-D and 4-D: every periodicity, shape, depth and
/// transport.

#include <gtest/gtest.h>

#include "tests/halo/halo_fields.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

using test::Memory;

/// The cells that `steps` steps read, as `needed_by_definition` has them, but marked in an array.
template <int D>
class MarkedCells {
 public:
  MarkedCells(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int steps)
      : global_(domain.global()), periodic_(domain.periodic()) {
    Index<D> below, above;
    for (int j = 0; j < D; ++j) below[j] = steps * shape.reach_low()[j], above[j] = steps * shape.reach_high()[j];
    frame_ = domain.owned().grown(below, above);
    std::vector<char> now(static_cast<std::size_t>(frame_.cells()));
    for_each_cell(domain.owned(), [&](const Index<D>& i) { now[at(i)] = 1; });
    for (int s = 0; s < steps; ++s) {
      std::vector<char> next = now;
      for_each_cell(frame_, [&](const Index<D>& i) {
        if (!now[at(i)]) return;
        for (const auto& o : shape.offsets()) {
          Index<D> x;
          for (int j = 0; j < D; ++j) x[j] = i[j] + o[j];
          if (exists(x)) next[at(x)] = 1;
        }
      });
      now = std::move(next);
    }
    marked_ = std::move(now);
  }
  bool operator()(const Index<D>& i) const { return frame_.contains(i) && marked_[at(i)]; }

 private:
  std::size_t at(const Index<D>& i) const { return static_cast<std::size_t>(linear_index(frame_, i)); }
  bool exists(const Index<D>& i) const {
    for (int j = 0; j < D; ++j)
      if (!periodic_[j] && (i[j] < 0 || i[j] >= global_.high[j])) return false;
    return true;
  }

  Box<D> global_, frame_;
  PerDim<bool, D> periodic_;
  std::vector<char> marked_;
};

template <int D>
void check_depths(const Index<D>& extents, int first, int last) {
  int turn = 0;
  for (const auto& periodic : test::periodicities<D>()) {
    DomainOptions<D> o;
    o.periodic = periodic;
    const auto grids = all_process_grids<D>(extents, test::ranks());
    for (const auto& [name, shape] : test::shapes<D>())
      for (int depth = first; depth <= last; ++depth) {
        o.process_grid = grids[static_cast<std::size_t>(turn) % grids.size()];
        const CartesianDomain<D> domain(MPI_COMM_WORLD, extents, o);
        const MarkedCells<D> needed(domain, shape, depth);
        for (const Exchange e : test::exchanges(shape)) {
          HaloOptions<D> options;
          options.exchange = e;
          HaloPlan<D> plan(domain, shape, depth, options);
          const test::TestField<float, D> field(domain, plan, 0, static_cast<Memory>(turn++ % test::kMemories));
          plan.exchange(field.ref());
          std::int64_t wrong = 0;
          field.for_each_wrong(needed, [&](const Index<D>&, float, float) { ++wrong; });
          EXPECT_EQ(wrong, 0) << exchange_name(e) << ": " << name << " depth " << depth << " on "
                              << shape_string<D>(extents);
        }
      }
  }
}

TEST(HaloDepths, In3D) {
  check_depths<3>({5, 4, 7}, 0, 5);
}
TEST(HaloDepths, In4D) {
  check_depths<4>({2, 3, 2, 3}, 0, 5);
}

}  // namespace
}  // namespace isohalo
