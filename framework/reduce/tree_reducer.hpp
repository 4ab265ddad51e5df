#pragma once
/// Global reductions whose bits depend on the global grid only: not on ranks, cuts, threads or time.

#include <mpi.h>

#include <limits>
#include <map>
#include <type_traits>
#include <vector>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/domain/cartesian_domain.hpp"
#include "framework/reduce/tile_exchange.hpp"
#include "framework/reduce/tiles.hpp"
#include "framework/reduce/tree.hpp"

namespace isohalo {

/// The smaller (larger) of two; a NaN on either side wins, so that it cannot hide.
struct Min {
  template <class V>
  V operator()(const V& a, const V& b) const {
    return b < a || b != b ? b : a;
  }
};
struct Max {
  template <class V>
  V operator()(const V& a, const V& b) const {
    return a < b || b != b ? b : a;
  }
};
struct Sum {
  template <class V>
  V operator()(const V& a, const V& b) const {
    return a + b;
  }
};

/// Reduces one value of type V per cell of the grid with the tree of version 1 (see `Tiling`, `split_of`).
///
/// V is any trivially copyable type (a number, a struct of several sums), Op any function of two values,
/// associative or not. Use: either `reduce(f)`, or in parts, fused into a sweep: `run_band()` for every band (in
/// any order, from any thread), then `combine()`.
template <class V, int D, class Op>
class TreeReducer {
  static_assert(std::is_trivially_copyable_v<V>, "values travel as bytes");

 public:
  /// Collective in order, no communication. Throws UsageError, the same on all ranks, for a bad tile.
  explicit TreeReducer(const CartesianDomain<D>& domain, Op op = {}, const Index<D>& tile = default_tile<D>())
      : domain_(domain),
        op_(op),
        tiling_(domain.decomposition(), tile),
        frontier_(tiling_),
        exchange_(tiling_, domain.coordinates()),
        tiles_(tiling_.owned_by(domain.coordinates())),
        local_tiles_(tiling_.touching(domain.owned())),
        first_tag_(domain.comm().take_tags(2)) {
    compile();
  }

  TreeReducer(const TreeReducer&) = delete;
  TreeReducer& operator=(const TreeReducer&) = delete;

  const Index<D>& tile() const { return tiling_.tile(); }
  const CartesianDomain<D>& domain() const { return domain_; }

  /// Bands of this rank: runs of neighboring tiles that share all but the fastest coordinate, a few hundred cells
  /// long at most, so that all their rows stay in the first-level cache.
  std::int64_t bands() const { return bands_; }
  /// The cells of a band in this block. Its rows are visited in index order.
  Box<D> band_cells(std::int64_t band) const {
    const Box<D> t = band_tiles(band);
    return tiling_.cells_of(t).intersect(domain_.owned());
  }
  /// Scratch values that one caller of run_band needs.
  std::int64_t scratch_size() const { return 2 * run_length_ * tiling_.tile()[D - 1]; }

  /// Forms the tile values of one band. `row(i, n)` is called for each row in index order (i: its first cell, n:
  /// its cells); it returns an object v with v(x) = the value of the row's x-th cell, x = 0 .. n-1. Different bands
  /// may run at the same time with different scratch. Local.
  template <class RowValues>
  void run_band(std::int64_t band, V* scratch, RowValues&& row) {
    const Box<D> cells = band_cells(band);
    const std::int64_t n = cells.extent(D - 1);
    V* const acc = scratch;
    if (!cut_bands_.empty() && cut_bands_[static_cast<std::size_t>(band)].last > 0) {
      run_cut_band(band, cells, acc, scratch + n, row);
    } else {
      bool first = true;
      for_each_row(cells, [&](const Index<D>& i) {
        const auto value = row(i, n);
        if (first)
          for (std::int64_t x = 0; x < n; ++x) acc[x] = value(x);
        else
          for (std::int64_t x = 0; x < n; ++x) acc[x] = op_(acc[x], value(x));
        first = false;
      });
    }
    fold_band(cells, acc);
  }

  /// Combines the tile values of all ranks; the result has the same bits on all of them. Collective.
  V combine() {
    gather_cut_tiles();
    for (const Combine& c : local_combines_)
      values_[static_cast<std::size_t>(c.into)] =
          op_(values_[static_cast<std::size_t>(c.into)], values_[static_cast<std::size_t>(c.from)]);
    for (const auto& [leaf, at] : leaf_places_)
      nodes_[static_cast<std::size_t>(leaf)] = values_[static_cast<std::size_t>(at)];
    for (const ReduceStage& stage : stages_) run_stage(stage);
    return nodes_[0];
  }

  /// Reduces value(i) over all cells, i the global index. Collective.
  template <class Value>
  V reduce(Value&& value) {
    scratch_.resize(static_cast<std::size_t>(scratch_size()));
    for (std::int64_t b = 0; b < bands_; ++b)
      run_band(b, scratch_.data(), [&](const Index<D>& i, std::int64_t) {
        return [&value, i](std::int64_t x) {
          Index<D> cell = i;
          cell[D - 1] += x;
          return value(static_cast<const Index<D>&>(cell));
        };
      });
    return combine();
  }

  /// Values this rank contributes to a reduction, and stages of the allreduce.
  std::int64_t frontier_size() const { return static_cast<std::int64_t>(leaf_places_.size()); }
  int stages() const { return static_cast<int>(stages_.size()); }

 private:
  static constexpr std::int64_t kRun = D == 2 ? 128 : 512;  // cells; measured, see sweep_with_change

  struct CutRange {
    std::size_t first = 0, last = 0;  // of cut_parts_, empty when last == 0
  };

  Box<D> band_tiles(std::int64_t band) const {
    const Index<D> run = index_of_linear(runs_, band);
    Box<D> t;
    for (int j = 0; j < D - 1; ++j) t.low[j] = run[j], t.high[j] = run[j] + 1;
    t.low[D - 1] = local_tiles_.low[D - 1] + run[D - 1] * run_length_;
    t.high[D - 1] = std::min(t.low[D - 1] + run_length_, local_tiles_.high[D - 1]);
    return t;
  }

  void compile() {
    run_length_ = std::max<std::int64_t>(1, kRun / tiling_.tile()[D - 1]);
    runs_ = local_tiles_;  // one cell per band
    runs_.low[D - 1] = 0;
    runs_.high[D - 1] = (local_tiles_.extent(D - 1) + run_length_ - 1) / run_length_;
    bands_ = runs_.cells();
    if (tiles_.cells() > std::numeric_limits<std::int32_t>::max())
      throw UsageError("a rank owns more than 2^31 reduction tiles: use more ranks");
    values_.resize(static_cast<std::size_t>(tiles_.empty() ? 0 : tiles_.cells()));
    nodes_.resize(frontier_.nodes().size());
    for (std::int32_t leaf : frontier_.leaves_of(domain_.rank())) {
      const Box<D>& node = frontier_.tiles(leaf);
      append_combines(tiling_, tiles_, node, local_combines_);
      leaf_places_.emplace_back(leaf, linear_index(tiles_, node.low));
    }
    stages_ = dissemination_stages(frontier_.nodes(), domain_.rank(), domain_.size());
    for (const auto& s : stages_) {
      send_.resize(std::max(send_.size(), s.send.size()));
      receive_.resize(std::max(receive_.size(), s.receive.size()));
    }
    compile_cut_tiles();
  }

  void compile_cut_tiles() {
    outgoing_.resize(static_cast<std::size_t>(exchange_.outgoing_cells));
    incoming_.resize(static_cast<std::size_t>(exchange_.incoming_cells));
    if (exchange_.local.empty()) return;
    std::vector<std::vector<std::size_t>> by_band(static_cast<std::size_t>(bands_));
    for (std::size_t p = 0; p < exchange_.local.size(); ++p) {
      Index<D> run = exchange_.local[p].tile;
      run[D - 1] = (run[D - 1] - local_tiles_.low[D - 1]) / run_length_;
      by_band[static_cast<std::size_t>(linear_index(runs_, run))].push_back(p);
    }
    cut_bands_.resize(by_band.size());
    for (std::size_t b = 0; b < by_band.size(); ++b) {
      if (by_band[b].empty()) continue;
      cut_bands_[b].first = cut_parts_.size();
      cut_parts_.insert(cut_parts_.end(), by_band[b].begin(), by_band[b].end());
      cut_bands_[b].last = cut_parts_.size();
    }
  }

  /// As the plain band, and keeps the bare values of cut tiles.
  template <class RowValues>
  void run_cut_band(std::int64_t band, const Box<D>& cells, V* acc, V* line, RowValues&& row) {
    const std::int64_t n = cells.extent(D - 1);
    const CutRange range = cut_bands_[static_cast<std::size_t>(band)];
    bool first = true;
    for_each_row(cells, [&](const Index<D>& i) {
      const auto value = row(i, n);
      for (std::int64_t x = 0; x < n; ++x) line[x] = value(x);
      for (std::int64_t x = 0; x < n; ++x) acc[x] = first ? line[x] : op_(acc[x], line[x]);
      first = false;
      for (std::size_t k = range.first; k < range.last; ++k) {
        const TilePart<D>& part = exchange_.local[cut_parts_[k]];
        Index<D> start = i;
        start[D - 1] = part.cells.low[D - 1];
        V* to = outgoing_.data() + part.offset + linear_index(part.cells, start);
        const V* from = line + (start[D - 1] - cells.low[D - 1]);
        for (std::int64_t x = 0; x < part.cells.extent(D - 1); ++x) to[x] = from[x];
      }
    });
  }

  /// Folds the lanes of the band's whole tiles. Cut tiles are overwritten later, by `gather_cut_tiles`.
  void fold_band(const Box<D>& cells, V* acc) {
    Index<D> t;
    for (int j = 0; j < D; ++j) t[j] = cells.low[j] / tiling_.tile()[j];
    const std::int64_t width = tiling_.tile()[D - 1];
    for (; t[D - 1] * width < cells.high[D - 1]; ++t[D - 1]) {
      if (!tiles_.contains(t)) continue;
      const std::int64_t low = std::max(t[D - 1] * width, cells.low[D - 1]);
      const std::int64_t high = std::min((t[D - 1] + 1) * width, cells.high[D - 1]);
      values_[static_cast<std::size_t>(linear_index(tiles_, t))] =
          fold_lanes(acc + (low - cells.low[D - 1]), high - low, width, op_);
    }
  }

  void gather_cut_tiles() {
    if (exchange_.local.empty()) return;
    const MPI_Comm comm = domain_.comm().get();
    requests_.clear();
    for (const auto& m : exchange_.receive) {
      requests_.push_back(MPI_REQUEST_NULL);
      mpi_check(MPI_Irecv_c(incoming_.data() + m.offset, m.cells * MPI_Count{sizeof(V)}, MPI_BYTE, m.peer,
                            first_tag_, comm, &requests_.back()),
                "MPI_Irecv of cut tiles", comm);
    }
    for (const auto& m : exchange_.send) {
      requests_.push_back(MPI_REQUEST_NULL);
      mpi_check(MPI_Isend_c(outgoing_.data() + m.offset, m.cells * MPI_Count{sizeof(V)}, MPI_BYTE, m.peer,
                            first_tag_, comm, &requests_.back()),
                "MPI_Isend of cut tiles", comm);
    }
    domain_.comm().wait(requests_, "gather of cut tiles");
    if (exchange_.owned_cut.empty()) return;
    std::int64_t volume = 1;
    for (int j = 0; j < D; ++j) volume *= tiling_.tile()[j];
    tile_cells_.resize(static_cast<std::size_t>(volume + tiling_.tile()[D - 1]));
    if (cut_sources_.empty()) index_sources();
    for (std::size_t k = 0; k < exchange_.owned_cut.size(); ++k) {
      const Box<D> cells = tiling_.cells_of_tile(exchange_.owned_cut[k]);
      for (const auto& [part, buffer] : cut_sources_[k]) scatter(*part, *buffer, cells);
      Index<D> extents;
      for (int j = 0; j < D; ++j) extents[j] = cells.extent(j);
      values_[static_cast<std::size_t>(linear_index(tiles_, exchange_.owned_cut[k]))] =
          tile_value<V, D>(tile_cells_.data(), extents, tiling_.tile()[D - 1], tile_cells_.data() + volume, op_);
    }
  }

  void index_sources() {
    cut_sources_.resize(exchange_.owned_cut.size());
    std::map<Index<D>, std::size_t> place;
    for (std::size_t k = 0; k < exchange_.owned_cut.size(); ++k) place[exchange_.owned_cut[k]] = k;
    auto add = [&](const std::vector<TilePart<D>>& parts, const std::vector<V>& buffer) {
      for (const auto& part : parts)
        if (const auto k = place.find(part.tile); k != place.end())
          cut_sources_[k->second].emplace_back(&part, &buffer);
    };
    add(exchange_.local, outgoing_);
    add(exchange_.arriving, incoming_);
  }

  void scatter(const TilePart<D>& part, const std::vector<V>& buffer, const Box<D>& cells) {
    std::int64_t from = part.offset;
    for_each_row(part.cells, [&](const Index<D>& i) {
      const std::int64_t to = linear_index(cells, i);
      for (std::int64_t x = 0; x < part.cells.extent(D - 1); ++x)
        tile_cells_[static_cast<std::size_t>(to + x)] = buffer[static_cast<std::size_t>(from++)];
    });
  }

  void run_stage(const ReduceStage& stage) {
    const MPI_Comm comm = domain_.comm().get();
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (!stage.receive.empty())
      mpi_check(MPI_Irecv_c(receive_.data(), MPI_Count(stage.receive.size() * sizeof(V)), MPI_BYTE, stage.from,
                            first_tag_ + 1, comm, &requests[0]),
                "MPI_Irecv in a reduction", comm);
    if (!stage.send.empty()) {
      for (std::size_t k = 0; k < stage.send.size(); ++k)
        send_[k] = nodes_[static_cast<std::size_t>(stage.send[k])];
      mpi_check(MPI_Isend_c(send_.data(), MPI_Count(stage.send.size() * sizeof(V)), MPI_BYTE, stage.to,
                            first_tag_ + 1, comm, &requests[1]),
                "MPI_Isend in a reduction", comm);
    }
    domain_.comm().wait(requests, "reduction");
    for (std::size_t k = 0; k < stage.receive.size(); ++k)
      nodes_[static_cast<std::size_t>(stage.receive[k])] = receive_[k];
    for (std::int32_t n : stage.combine) {
      const FrontierNode& node = frontier_.nodes()[static_cast<std::size_t>(n)];
      nodes_[static_cast<std::size_t>(n)] =
          op_(nodes_[static_cast<std::size_t>(node.left)], nodes_[static_cast<std::size_t>(node.right)]);
    }
  }

  CartesianDomain<D> domain_;
  Op op_;
  Tiling<D> tiling_;
  FrontierTree<D> frontier_;
  TileExchange<D> exchange_;
  Box<D> tiles_;        // owned, in tile coordinates
  Box<D> local_tiles_;  // with a cell in this block
  int first_tag_;
  std::int64_t run_length_ = 1;  // tiles in a band
  Box<D> runs_;                  // tile coordinates, with runs instead of tiles in the fastest dimension
  std::int64_t bands_ = 1;
  std::vector<V> values_;  // of the owned tiles; row-major
  std::vector<V> nodes_;   // of the frontier tree
  std::vector<Combine> local_combines_;
  std::vector<std::pair<std::int32_t, std::int64_t>> leaf_places_;  // leaf, place in values_
  std::vector<ReduceStage> stages_;
  std::vector<V> send_, receive_;
  std::vector<CutRange> cut_bands_;
  std::vector<std::size_t> cut_parts_;
  std::vector<V> outgoing_, incoming_, tile_cells_, scratch_;
  std::vector<std::vector<std::pair<const TilePart<D>*, const std::vector<V>*>>> cut_sources_;
  std::vector<MPI_Request> requests_;
};

}  // namespace isohalo
