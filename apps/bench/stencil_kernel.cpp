/// The stencil kernels of `bench neighborhood`.

#include <fmt/format.h>

#include <memory>

#include "apps/bench/experiment.hpp"
#include "apps/bench/owned_comm.hpp"
#include "datatypes/datatype.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/neighborhood/offsets.hpp"
#include "framework/shm/shared_memory.hpp"

namespace isohalo {

namespace {

/// The matrix of one rank with `depth` ghost layers all round; each byte tells its rank and place.
struct GhostedMatrix {
  static constexpr std::uint8_t kUntouched = 0xee;

  GhostedMatrix(int n_, int depth_, bool moore_, int rank)
      : n(n_), depth(depth_), moore(moore_), cells(size(), kUntouched) {
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) cells[at(i, j)] = value(rank, i, j);
  }
  std::size_t width() const { return static_cast<std::size_t>(n + 2 * depth); }
  std::size_t size() const { return width() * width(); }
  std::size_t at(int i, int j) const {
    return static_cast<std::size_t>(i + depth) * width() + static_cast<std::size_t>(j + depth);
  }
  static std::uint8_t value(int rank, int i, int j) {
    return static_cast<std::uint8_t>((rank * 37 + i * 11 + j * 7 + 1) & 0x7f);
  }
  /// Steps away from the block in one dimension.
  int outside(int i) const { return i < 0 ? -i : i >= n ? i - n + 1 : 0; }
  bool needed(int i, int j) const {
    const int a = outside(i), b = outside(j);
    return moore ? std::max(a, b) <= depth : a + b <= depth;
  }
  template <class F>
  void for_each_ghost(F&& f) {
    for (int i = -depth; i < n + depth; ++i)
      for (int j = -depth; j < n + depth; j = outside(i) == 0 && j == -1 ? n : j + 1) f(i, j, cells[at(i, j)]);
  }

  int n, depth;
  bool moore;
  std::vector<std::uint8_t, SharedAllocator<std::uint8_t>> cells;
};

/// The ranks of one experiment as a mesh, and all that exchanges the halo of a matrix on it.
class StencilKernel {
 public:
  StencilKernel(MPI_Comm user, int ranks, std::shared_ptr<GhostedMatrix> matrix) : matrix_(std::move(matrix)) {
    const OwnedComm part = first_ranks(user, ranks);
    if (part.comm == MPI_COMM_NULL) return;
    cart_ = cart_of(part.comm, 2, false);
    int wrap[2];
    mpi_check(MPI_Cart_get(cart_.comm, 2, dims_, wrap, coords_), "MPI_Cart_get");
    make_types();
    graph_ = adjacent_graph(cart_.comm, iso_->neighbors());
    make_plan();
  }
  StencilKernel(const StencilKernel&) = delete;
  StencilKernel& operator=(const StencilKernel&) = delete;

  bool taking_part() const { return cart_.comm != MPI_COMM_NULL; }
  struct Method {
    const char* name;
    std::function<void()> run;  ///< where taking part
  };
  /// Good as long as this is.
  std::vector<Method> methods() {
    return {
        {"isohalo alltoallw, set-up", [this] { ours_on(IsoComm(cart_.comm, list_)); }},
        {"MPI_Neighbor_alltoallw, set-up", [this] { mpi_on(adjacent_graph(cart_.comm, iso_->neighbors()).comm); }},
        {"isohalo alltoallw", [this] { ours_on(*iso_); }},
        {"MPI_Neighbor_alltoallw", [this] { mpi_on(graph_.comm); }},
        {"isohalo halo exchange", [this] { plan_->exchange(array_); }}};
  }

  template <class Run>
  bool right(Run&& run) {
    matrix_->for_each_ghost([](int, int, std::uint8_t& cell) { cell = GhostedMatrix::kUntouched; });
    run();
    std::int64_t wrong = 0;
    matrix_->for_each_ghost([&](int i, int j, std::uint8_t cell) { wrong += cell != expected(i, j); });
    return wrong == 0;
  }

 private:
  std::uint8_t expected(int i, int j) const {
    const int n = matrix_->n;
    const auto side = [&](int x) { return x < 0 ? -1 : x >= n ? 1 : 0; };
    const int r = coords_[0] + side(i), c = coords_[1] + side(j);
    const bool exists = taking_part() && r >= 0 && r < dims_[0] && c >= 0 && c < dims_[1];
    if (!exists || !matrix_->needed(i, j)) return GhostedMatrix::kUntouched;
    return GhostedMatrix::value(r * dims_[1] + c, i - side(i) * n, j - side(j) * n);
  }

  /// The block of offset C comes from the opposite side; the same cells, C blocks further, go to that side.
  void make_types() {
    const std::int64_t n = matrix_->n, k = matrix_->depth;
    const Index<2> stride{static_cast<std::int64_t>(matrix_->width()), 1};
    for (const auto& c : moore<2>(1, Self::leave_out)) {
      Region<2> ghosts;
      for (int j = 0; j < 2; ++j) {
        ghosts.box.low[j] = c[j] == 0 ? 0 : c[j] > 0 ? -k : n;
        ghosts.box.high[j] = c[j] == 0 ? n : c[j] > 0 ? 0 : n + k;
        ghosts.side[j] = static_cast<std::int8_t>(-c[j]);
        ghosts.edge[j] = c[j] > 0 ? 0 : n;
      }
      if (!matrix_->moore) ghosts.budget = k;
      if (ghosts.empty()) continue;
      receive_.push_back(region_type<2>(ghosts, {0, 0}, stride, MPI_BYTE));
      send_.push_back(region_type<2>(ghosts.shifted({c[0] * n, c[1] * n}), {0, 0}, stride, MPI_BYTE));
      for (int j = 0; j < 2; ++j) list_.push_back(static_cast<int>(c[j]));
    }
    iso_ = std::make_unique<IsoComm>(cart_.comm, list_);
    const IsomorphicNeighborhood& neighbors = iso_->neighbors();
    for (std::size_t i = 0; i < send_.size(); ++i) {
      all_send_.push_back(send_[i].get()), all_receive_.push_back(receive_[i].get());
      if (neighbors.targets()[i] != Mesh::no_rank) present_send_.push_back(send_[i].get());
      if (neighbors.sources()[i] != Mesh::no_rank) present_receive_.push_back(receive_[i].get());
    }
    ones_.assign(send_.size() + 1, 1), zeros_.assign(send_.size() + 1, 0);
  }

  void make_plan() {
    DomainOptions<2> options;
    const std::int64_t n = matrix_->n;
    PerDim<std::vector<std::int64_t>, 2> cuts;  // equal blocks, whatever suits the reduction's tiles
    for (int j = 0; j < 2; ++j)
      for (int c = 0; c <= dims_[j]; ++c) cuts[j].push_back(c * n);
    options.cuts = cuts;
    const CartesianDomain<2> domain(cart_.comm, {n * dims_[0], n * dims_[1]}, options);
    const auto shape = matrix_->moore ? StencilShape<2>::moore(1) : StencilShape<2>::von_neumann(1);
    plan_ = std::make_unique<HaloPlan<2>>(domain, shape, matrix_->depth);
    array_ = adopt(matrix_->cells.data(), domain.owned(), matrix_->depth);
  }

  void ours_on(const IsoComm& iso) {
    std::uint8_t* const first = &matrix_->cells[matrix_->at(0, 0)];
    const std::size_t s = send_.size();
    const NeighborCall::Counts ones(ones_.data(), s);
    const NeighborCall::Displacements zeros(zeros_.data(), s);
    iso.execute(
        NeighborCall::alltoallw(iso.neighbors(), first, ones, zeros, all_send_, first, ones, zeros, all_receive_));
  }
  void mpi_on(MPI_Comm graph) {
    std::uint8_t* const first = &matrix_->cells[matrix_->at(0, 0)];
    mpi_check(MPI_Neighbor_alltoallw(first, ones_.data(), zeros_.data(), present_send_.data(), first, ones_.data(),
                                     zeros_.data(), present_receive_.data(), graph),
              "MPI_Neighbor_alltoallw");
  }

  std::shared_ptr<GhostedMatrix> matrix_;
  OwnedComm cart_, graph_;  ///< outlive what is made on them
  int dims_[2] = {0, 0}, coords_[2] = {0, 0};
  std::vector<int> list_, ones_;
  std::vector<MPI_Aint> zeros_;
  std::vector<Datatype> send_, receive_;
  std::vector<MPI_Datatype> all_send_, all_receive_, present_send_, present_receive_;
  std::unique_ptr<IsoComm> iso_;
  std::unique_ptr<HaloPlan<2>> plan_;
  ArrayRef<std::uint8_t, 2> array_;
};

/// 1, 2, 3, 4 and then twice as many each time, and all.
std::vector<int> rank_counts(int all) {
  std::vector<int> counts;
  for (int q = 1; q < all; q = q < 4 ? q + 1 : 2 * q) counts.push_back(q);
  counts.push_back(all);
  return counts;
}

void add_figure(MPI_Comm user, const std::string& figure, const std::shared_ptr<GhostedMatrix>& matrix,
                std::vector<Experiment>& experiments) {
  int all = 1;
  MPI_Comm_size(user, &all);
  for (const int ranks : rank_counts(all)) {
    if (ranks == 1 && all > 1) continue;  // nobody to exchange with
    const auto kernel = std::make_shared<StencilKernel>(user, ranks, matrix);
    for (const auto& method : kernel->methods()) {
      Experiment e{figure, method.name, "ranks", ranks};
      e.run = [kernel, run = method.run] {
        if (kernel->taking_part()) run();
      };
      e.right = [kernel, run = e.run] { return kernel->right(run); };
      experiments.push_back(std::move(e));
    }
  }
}

}  // namespace

void add_stencil_kernels(MPI_Comm user, int order, std::vector<Experiment>& experiments) {
  int rank = 0;
  MPI_Comm_rank(user, &rank);
  add_figure(user, fmt::format("fig8 5-point stencil, depth 10, {0} x {0} bytes per rank", order),
             std::make_shared<GhostedMatrix>(order, 10, false, rank), experiments);
  add_figure(user, "fig9 9-point stencil, depth 2, 100 x 100 bytes per rank",
             std::make_shared<GhostedMatrix>(100, 2, true, rank), experiments);
}

}  // namespace isohalo
