#include "framework/domain/cartesian_domain.hpp"

#include <charconv>
#include <string>

#include "datatypes/error.hpp"
#include "framework/mpi/agreement.hpp"

namespace isohalo {

namespace {

template <int D>
std::string grid_string(const PerDim<int, D>& grid) {
  Index<D> extents;
  std::copy(grid.begin(), grid.end(), extents.begin());
  return shape_string<D>(extents);
}

template <int D>
std::vector<Argument> arguments_of(const Index<D>& shape, const DomainOptions<D>& options) {
  std::vector<Argument> list{{"shape", text_of_list(shape)}, {"periodic", text_of_list(options.periodic)}};
  const auto& grid = options.process_grid;
  list.push_back({"process_grid", grid ? text_of_list(*grid) : "chosen"});
  char tolerance[32];  // exactly
  const auto end = std::to_chars(tolerance, tolerance + sizeof tolerance, options.alignment_tolerance).ptr;
  list.push_back({"alignment_tolerance", std::string(tolerance, end)});
  std::string cuts = options.cuts ? "" : "chosen";
  if (options.cuts)
    for (const auto& c : *options.cuts) cuts += (cuts.empty() ? "" : " | ") + text_of_list(c);
  list.push_back({"cuts", cuts});
  return list;
}

}  // namespace

template <int D>
Decomposition<D> decompose(const Index<D>& shape, const DomainOptions<D>& options, int ranks) {
  if (options.cuts) {
    Decomposition<D> d(shape, *options.cuts);
    if (d.ranks() != ranks)
      throw UsageError("the cuts make " + std::to_string(d.ranks()) + " blocks for " + std::to_string(ranks) +
                       " ranks: give as many blocks as ranks");
    return d;
  }
  if (!options.process_grid)
    return Decomposition<D>(shape, choose_process_grid<D>(shape, ranks), options.alignment_tolerance);
  std::int64_t product = 1;
  for (const int n : *options.process_grid) {
    if (n < 1) throw UsageError("process grid: " + std::to_string(n) + " ranks in a dimension; the least is 1");
    product = product > ranks ? product : product * n;  // stays small: beyond `ranks` it is wrong anyway
  }
  if (product != ranks) {
    std::string way_out;
    try {
      way_out = ", for instance " + grid_string<D>(choose_process_grid<D>(shape, ranks));
    } catch (const UsageError&) {
    }
    throw UsageError("process grid " + grid_string<D>(*options.process_grid) + " does not multiply to the " +
                     std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") +
                     " of this run: give one that does" + way_out + ", or \"auto\"");
  }
  return Decomposition<D>(shape, *options.process_grid, options.alignment_tolerance);
}

template <int D>
CartesianDomain<D>::CartesianDomain(MPI_Comm user, const Index<D>& shape, const DomainOptions<D>& options) {
  Communicator comm = Communicator::of(user);
  Decomposition<D> decomposition;
  const auto error = error_of([&] { decomposition = decompose<D>(shape, options, comm.size()); });
  agree_same(comm, "CartesianDomain", arguments_of<D>(shape, options), error.get());
  const auto grid = decomposition.grid();
  Mesh mesh(std::vector<int>(grid.begin(), grid.end()),
            std::vector<bool>(options.periodic.begin(), options.periodic.end()));
  const auto coords = decomposition.coordinates(comm.rank());
  const auto owned = decomposition.box(coords);
  data_ = std::make_shared<const Data>(
      Data{std::move(comm), options.periodic, std::move(decomposition), std::move(mesh), coords, owned});
}

template <int D>
CartesianDomain<D>::CartesianDomain(const CartesianDomain& ranks, Decomposition<D> blocks) {
  if (blocks.grid() != ranks.decomposition().grid())
    throw UsageError("CartesianDomain: " + grid_string<D>(blocks.grid()) +
                     " blocks for ranks of the process grid " + grid_string<D>(ranks.decomposition().grid()) +
                     ": cut the grid into as many in each dimension");
  Data data = *ranks.data_;
  data.owned = blocks.box(data.coords);
  data.decomposition = std::move(blocks);
  data_ = std::make_shared<const Data>(std::move(data));
}

template <int D>
std::string CartesianDomain<D>::text() const {
  std::string text = "cuts";
  for (int j = 0; j < D; ++j) {
    text += j ? " |" : "";
    for (int c = 0; c <= decomposition().blocks(j); ++c) text += " " + std::to_string(decomposition().cut(j, c));
  }
  return text + ", periodic " + text_of_list(periodic());
}

#define ISOHALO_INSTANTIATE(D)                                                           \
  template Decomposition<D> decompose<D>(const Index<D>&, const DomainOptions<D>&, int); \
  template class CartesianDomain<D>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
