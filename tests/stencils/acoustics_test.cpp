/// acoustics: steps that go slab by slab through a grid larger than the cache, with change sums and without, have
/// the bits of the kernels for devices, which have the same expressions in one loop after the other over the block,
/// and the sums those of a reduction of their own. (What the expressions are is checked against NumPy.)

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "apps/bench/input_solver.hpp"
#include "framework/halo/faces.hpp"
#include "framework/reduce/tree_reducer.hpp"
#include "stencils/device/device_path.hpp"
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
         {std::pair("\"periodic\"", "\"periodic\""),
          std::pair(depth == 1 ? "{dirichlet = -0.5}" : "\"neumann\"", "{dirichlet = 0.25}")}) {
      const std::string& solver = std::string(low) == high ? numbers : fields;
      const std::string text = input_text<D>(shape, low, high, depth) + solver;
      InputSolver<D> slabs(MPI_COMM_WORLD, text), changes(MPI_COMM_WORLD, text);
      // On the device where there are kernels for it (device_path.hpp).
      const std::string space = kOnDevice<double, D> ? "parallel.space = \"device\"\n" : "";
      InputSolver<D> kernels(MPI_COMM_WORLD, input_text<D>(shape, low, high, 1) + solver + space);
      slabs->advance(5, false);
      kernels->advance(5, false);
      for (int k = 0; k < 5; ++k) {
        double told = 0;
        const double sum = change_of_step(changes, told);
        EXPECT_GT(told, 0) << text;
        EXPECT_EQ(told, sum) << text;
      }
      expect_same<D>(*slabs, *kernels, text);
      expect_same<D>(*changes, *kernels, text);
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
