/// Dense matrix times vector, the matrix in columns: scatter, broadcast, and a reduce of the result in each
/// iteration.
///
/// Source: Li, Hoefler, Snir 2013, section 3.7 and Fig. 26. The matrix there is square, of 49,152 rows.

#include <algorithm>
#include <limits>

#include "apps/bench/timing.hpp"
#include "apps/bench/workloads.hpp"
#include "datatypes/mix.hpp"
#include "framework/mpi/agreement.hpp"

namespace isohalo {

namespace {

/// Whole numbers of -8 to 7: all sums are exact, so every order of them gives the same result.
double small_number(std::size_t index) {
  return static_cast<double>(static_cast<int>(mix64((index + 1) * kGolden) >> 60) - 8);
}

/// y = A x, of columns that follow each other. The part of y that is worked on stays in the first cache, and four
/// columns at once make its loads and stores few.
void multiply(const double* a, const double* x, double* y, std::size_t rows, std::size_t columns) {
  constexpr std::size_t kBlock = 2048, kColumns = 4;
  for (std::size_t at = 0; at < rows; at += kBlock) {
    const std::size_t n = std::min(kBlock, rows - at);
    double* const out = y + at;
    std::fill_n(out, n, 0.0);
    std::size_t j = 0;
    for (; j + kColumns <= columns; j += kColumns) {
      const double *const c0 = a + j * rows + at, *const c1 = c0 + rows, *const c2 = c1 + rows,
                          *const c3 = c2 + rows;
      const double x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
      for (std::size_t i = 0; i < n; ++i) out[i] += (c0[i] * x0 + c1[i] * x1) + (c2[i] * x2 + c3[i] * x3);
    }
    for (; j < columns; ++j)
      for (std::size_t i = 0; i < n; ++i) out[i] += a[j * rows + at + i] * x[j];
  }
}

class Matvec {
 public:
  Matvec(const Communicator& comm, const BenchWorkloadsOptions& options)
      : comm_(comm),
        p_(static_cast<std::size_t>(comm.size())),
        rows_(options.rows),
        columns_(options.columns),
        mine_((columns_ + p_ - 1) / p_),
        panel_columns_(std::clamp<std::size_t>(kPanel / rows_ / p_, 1, mine_)),
        iterations_(options.iterations) {
    agreed(comm, [&] {  // one rank alone may lack the memory
      matrix_.resize(rows_ * mine_);
      x_.resize(p_ * mine_);
      y_.resize(rows_);
      sum_.resize(rows_);
      total_.resize(rows_);
      if (comm_.rank() == 0) panel_.resize(rows_ * panel_columns_ * p_);
    });
  }

  std::vector<double> run(WorkloadCollectives& side) {
    const double scatter = scatter_matrix(side);
    if (comm_.rank() == 0)
      for (std::size_t j = 0; j < x_.size(); ++j) x_[j] = entry_of_x(j);
    else
      std::fill(x_.begin(), x_.end(), std::numeric_limits<double>::quiet_NaN());
    const double broadcast = timed(comm_, [&] { side.broadcast(x_.data(), x_.size()); });
    std::fill(total_.begin(), total_.end(), 0.0);
    Stopwatch reduce;
    const double iterations = timed(comm_, [&] {
      for (int k = 0; k < iterations_; ++k) iterate(side, reduce);
    });
    check_total();
    const double alone = timed(comm_, [&] {
      for (int k = 0; k < iterations_; ++k) side.reduce(y_.data(), sum_.data(), rows_);
    });
    return {scatter, broadcast, iterations, reduce.slowest(comm_), alone};
  }

  /// On all ranks, so far. Collective.
  bool right() const { return comm_.min(right_) == 1; }
  std::size_t panels() const { return (mine_ + panel_columns_ - 1) / panel_columns_; }

 private:
  /// Numbers that the root scatters at once: more room than that beside the matrix is not needed.
  static constexpr std::size_t kPanel = std::size_t{8} << 20;

  /// Columns that fill up the last rank's part are zero.
  double entry(std::size_t i, std::size_t j) const { return j < columns_ ? small_number(j * rows_ + i) : 0.0; }
  double entry_of_x(std::size_t j) const { return small_number(~j); }

  /// The root makes the matrix, which takes no part in the time, and scatters it.
  double scatter_matrix(WorkloadCollectives& side) {
    double seconds = 0;
    std::fill(matrix_.begin(), matrix_.end(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t first = 0; first < mine_; first += panel_columns_) {
      const std::size_t n = std::min(panel_columns_, mine_ - first);
      for (std::size_t r = 0; comm_.rank() == 0 && r < p_; ++r)
        for (std::size_t j = 0; j < n; ++j)
          for (std::size_t i = 0; i < rows_; ++i)
            panel_[((r * n) + j) * rows_ + i] = entry(i, r * mine_ + first + j);
      seconds += timed(comm_, [&] { side.scatter(panel_.data(), n * rows_, matrix_.data() + first * rows_); });
    }
    const std::size_t begin = static_cast<std::size_t>(comm_.rank()) * mine_;
    for (std::size_t j = 0; j < mine_; ++j) {
      bool same = true;
      for (std::size_t i = 0; i < rows_; ++i) same &= matrix_[j * rows_ + i] == entry(i, begin + j);
      right_ = right_ && same;
    }
    return seconds;
  }

  /// The vector changes, so that what was left from an earlier iteration is no right result.
  void iterate(WorkloadCollectives& side, Stopwatch& reduce) {
    double* const x = x_.data() + static_cast<std::size_t>(comm_.rank()) * mine_;
    multiply(matrix_.data(), x, y_.data(), rows_, mine_);
    reduce([&] { side.reduce(y_.data(), sum_.data(), rows_); });
    if (comm_.rank() == 0)
      for (std::size_t i = 0; i < rows_; ++i) total_[i] += sum_[i];
    for (std::size_t j = 0; j < mine_; ++j) x[j] += 1;
  }

  /// Some rows of all iterations by their definition, and every row against the other runs.
  void check_total() {
    if (comm_.rank() != 0) return;
    const double k = iterations_;
    for (std::size_t i = 0; i < rows_; i += std::max<std::size_t>(1, rows_ / 64)) {
      double truth = 0;
      for (std::size_t j = 0; j < columns_; ++j) truth += entry(i, j) * (k * entry_of_x(j) + k * (k - 1) / 2);
      right_ = right_ && total_[i] == truth;
    }
    if (first_total_.empty()) first_total_ = total_;
    right_ = right_ && total_ == first_total_;
  }

  const Communicator& comm_;
  std::size_t p_, rows_, columns_, mine_, panel_columns_;
  int iterations_;
  std::vector<double> matrix_, panel_, x_, y_, sum_, total_, first_total_;
  bool right_ = true;
};

}  // namespace

Json run_matvec(WorkloadSides& sides, const BenchWorkloadsOptions& options) {
  Matvec matvec(sides.comm, options);
  Json report{{"rows", options.rows},
              {"columns", options.columns},
              {"iterations", options.iterations},
              {"panels", matvec.panels()}};
  report["phases"] = compare_sides(
      sides, {"scatter", "broadcast", "iterations", "reduce in iterations", "reduce without products"},
      [&](WorkloadCollectives& side) { return matvec.run(side); });
  report["right"] = matvec.right();
  return report;
}

}  // namespace isohalo
