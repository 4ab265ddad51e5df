/// acoustics: steps that go slab by slab through a grid larger than the cache, with change sums and without, have
/// the bits of one loop after the other over the whole grid, and the sums those of a reduction of their own.

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench/input_solver.hpp"
#include "framework/halo/faces.hpp"
#include "framework/reduce/tree_reducer.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

template <int D>
std::string input_text(const Index<D>& shape, const std::string& low, const std::string& high, int depth) {
  std::string lows, highs, text = "domain.shape = " + list_text<D>(shape) + "\ninitial.p.kind = \"random\"\n";
  for (int j = 0; j < D; ++j) {
    lows += (j ? ", " : "") + low, highs += (j ? ", " : "") + high;
    text += "initial.v" + std::to_string(j) + " = {kind = \"random\", seed = " + std::to_string(j + 1) + "}\n";
  }
  return text + "domain.boundary = {low = [" + lows + "], high = [" + highs +
         "]}\nparallel.halo_depth = " + std::to_string(depth) + "\nrun.steps = 1\n";
}

template <int D>
void expect_same(Solver<D>& a, Solver<D>& b, const std::string& where) {
  std::int64_t cells = 0, wrong = 0;
  const auto left = a.fields(), right = b.fields();
  ASSERT_EQ(left.size(), static_cast<std::size_t>(D + 1));
  for (std::size_t f = 0; f < left.size(); ++f) {
    const auto u = std::get<ArrayRef<double, D>>(left[f].array), v = std::get<ArrayRef<double, D>>(right[f].array);
    for_each_cell(u.owned, [&](const Index<D>& i) {
      ++cells;
      wrong += std::memcmp(&u.at(i), &v.at(i), sizeof(double)) != 0;
    });
  }
  EXPECT_GT(cells, 0) << where;
  EXPECT_EQ(wrong, 0) << where << ", of " << cells << " cells and faces";
}

/// A field of the whole grid, dense.
template <int D>
std::vector<double> gathered(const ArrayRef<double, D>& a, const Box<D>& global) {
  std::vector<double> all(static_cast<std::size_t>(global.cells()));  // zeros: no bits
  for_each_cell(a.owned,
                [&](const Index<D>& i) { all[static_cast<std::size_t>(linear_index(global, i))] = a.at(i); });
  MPI_Allreduce(MPI_IN_PLACE, all.data(), static_cast<int>(all.size()), MPI_UINT64_T, MPI_BOR, MPI_COMM_WORLD);
  return all;
}

/// Steps of a periodic grid of one density as docs/model.md has them: all faces, then all cells.
template <int D>
class WholeGrid {
 public:
  WholeGrid(InputSolver<D>& from, double density, double modulus, double dt) : global_(from.domain().global()) {
    for (const auto& f : from->fields())
      fields_.push_back(gathered(std::get<ArrayRef<double, D>>(f.array), global_));
    for (int j = 0; j < D; ++j) {
      a_[j] = (dt / density) / from.input().grid.spacing[j];
      b_[j] = (dt * modulus) / from.input().grid.spacing[j];
    }
  }
  void step() {
    auto& p = fields_[0];
    for_each_cell(global_, [&](const Index<D>& i) {
      for (int j = 0; j < D; ++j) v(j, i) = v(j, i) - a_[j] * (p[at(i)] - p[at(beside(i, j, -1))]);
    });
    for_each_cell(global_, [&](const Index<D>& i) {
      double sum = 0;
      for (int j = 0; j < D; ++j) {
        const double t = b_[j] * (v(j, beside(i, j, 1)) - v(j, i));
        sum = j == 0 ? t : sum + t;
      }
      p[at(i)] = p[at(i)] - sum;
    });
  }
  void expect_in(InputSolver<D>& solver) {
    for (std::size_t f = 0; const auto& field : solver->fields()) {
      const auto u = std::get<ArrayRef<double, D>>(field.array);
      std::int64_t wrong = 0;
      for_each_cell(u.owned,
                    [&](const Index<D>& i) { wrong += std::memcmp(&u.at(i), &fields_[f][at(i)], 8) != 0; });
      EXPECT_EQ(wrong, 0) << field.name << " of " << u.owned.cells();
      ++f;
    }
  }

 private:
  std::size_t at(const Index<D>& i) const { return static_cast<std::size_t>(linear_index(global_, i)); }
  double& v(int j, const Index<D>& i) { return fields_[static_cast<std::size_t>(j) + 1][at(i)]; }
  Index<D> beside(Index<D> i, int j, int way) const {
    i[j] = (i[j] + way + global_.high[j]) % global_.high[j];
    return i;
  }

  Box<D> global_;
  std::vector<std::vector<double>> fields_;
  PerDim<double, D> a_, b_;
};

/// The sum of the squared changes of a step, field by field, by reductions of their own.
template <int D>
double change_of_step(InputSolver<D>& solver, double& told) {
  std::vector<std::vector<double>> before;
  const auto fields = solver->fields();
  for (const auto& f : fields) {
    const auto u = std::get<ArrayRef<double, D>>(f.array);
    auto& old = before.emplace_back();
    for_each_cell(u.owned, [&](const Index<D>& i) { old.push_back(u.at(i)); });
  }
  told = solver->advance(1, true);
  double total = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const auto u = std::get<ArrayRef<double, D>>(fields[f].array);
    TreeReducer<double, D, Sum> sum(field_domain(solver.domain(), static_cast<int>(f) - 1));
    const double s = sum.reduce([&](const Index<D>& i) {
      const double change = u.at(i) - before[f][static_cast<std::size_t>(linear_index(u.owned, i))];
      return change * change;
    });
    total = f == 0 ? s : total + s;
  }
  return total;
}

template <int D>
void compare(const Index<D>& shape) {
  const std::string numbers = "solver = {kind = \"acoustics\", dt = 1e-6, density = 1.25, bulk_modulus = 0.75}\n",
                    fields =
                        "solver = {kind = \"acoustics\", dt = 1e-6, bulk_modulus = 0.75, "
                        "density = {kind = \"random\", low = 1.0, high = 2.0}}\n";
  for (const int depth : {1, 3})
    for (const auto& [low, high] :
         {std::pair("\"periodic\"", "\"periodic\""), std::pair("\"neumann\"", "{dirichlet = 0.25}")}) {
      const bool periodic = std::string(low) == high;
      const std::string text = input_text<D>(shape, low, high, depth) + (periodic ? numbers : fields);
      InputSolver<D> slabs(MPI_COMM_WORLD, text), changes(MPI_COMM_WORLD, text);
      slabs->advance(5, false);
      std::optional<WholeGrid<D>> grid;
      if (periodic) grid.emplace(changes, 1.25, 0.75, 1e-6);
      for (int k = 0; k < 5; ++k) {
        double told = 0;
        const double sum = change_of_step(changes, told);
        EXPECT_GT(told, 0) << text;
        EXPECT_EQ(told, sum) << text;
        if (grid) grid->step();
      }
      expect_same<D>(*slabs, *changes, text);
      if (grid) grid->expect_in(changes);
    }
}

TEST(Acoustics, SlabsOfRows) {
  compare<2>({41, 9001});
}
TEST(Acoustics, SlabsOfPlanes) {
  compare<3>({9, 61, 700});
}
TEST(Acoustics, SlabsOfALine) {
  compare<1>({150001});
}

}  // namespace
}  // namespace isohalo
