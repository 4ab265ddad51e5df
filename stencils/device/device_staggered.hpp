#pragma once
/// A solver with fields on faces whose fields are in the memory of a Kokkos execution space: what StaggeredSolver
/// does on the host, with the same bits.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stencils/device/device_kernel.hpp"
#include "stencils/device/device_outside.hpp"
#include "stencils/device/device_sum.hpp"
#include "stencils/staggered_functions.hpp"
#include "stencils/staggered_steps.hpp"

namespace isohalo {

namespace detail {

/// A FaceUpdate where faces at sides of the grid have given values.
template <class T, int D, class Update>
struct SidedFaceUpdate : Update {
  std::int64_t stride[D], extent[D];  ///< of the array
  std::int64_t behind;                ///< elements from its first cell to the first owned one
  int across;                         ///< the dimension
  std::int64_t face[2];               ///< of the array, in that dimension; -1: not given
  const T* given[2];                  ///< for all places of the array in the others

  KOKKOS_FUNCTION T values(const std::int64_t k) const {
    const std::int64_t above = across > 0 ? stride[across - 1] : 0;
    const std::int64_t layer = (above > 0 ? (k + behind) % above : k + behind) / stride[across];
    for (int s = 0; s < 2; ++s)
      if (layer == face[s]) return given[s][place(k + behind)];
    return Update::values(k);
  }

 private:
  /// Of the array's cell `left`, among those of its layer.
  KOKKOS_FUNCTION std::int64_t place(std::int64_t left) const {
    std::int64_t n = 0;
    for (int j = 0; j < D; ++j) {
      const std::int64_t i = left / stride[j];
      left -= i * stride[j];
      if (j != across) n = n * extent[j] + i;
    }
    return n;
  }
};

}  // namespace detail

template <class S, class T, int D, class Space>
class DeviceStaggered final : public StaggeredSteps<D> {
  using Base = StaggeredSteps<D>;

 public:
  /// The rules are none of one's own. `depth` >= 1 steps per exchange. Collective in order.
  DeviceStaggered(const detail::CellSettings<S, D>& in, const CartesianDomain<D>& domain, int depth,
                  Exchange exchange)
      : Base(domain, in.staggered(), depth, exchange, {}, true), in_(in) {
    for (const auto& rules : this->names_.rules_of_cells())
      outside_.emplace_back(rules, domain.global(), index_of<D>(1), index_of<D>(1));
    fields_.reserve(names().state.size());
    tiles_.reserve(D + 1);
    for (const auto& sum : this->sums_) tiles_.emplace_back(*sum);
    // With a layer more, so that fields on faces fit arrays of the same strides.
    const Index<D> high = shifted<D>(this->plan_.ghost_high(), index_of<D>(1));
    fields_.emplace_back(names().state[0], domain.owned(), this->plan_.ghost_low(), high);
    for (std::size_t f = 1; f < names().state.size(); ++f)
      fields_.emplace_back(names().state[f], field_domain(domain, names().face_of(f)).owned(), fields_[0]);
    for (const std::string& name : names().coefficients) given_.emplace_back(name, domain.owned(), fields_[0]);
    for (const auto& field : fields_) host_.emplace_back(field);
    for (const auto& field : given_) host_given_.emplace_back(field);
    for (int m = 0; m <= depth; ++m) levels_.push_back(make_level(m));
    in.for_each_source_in_time([this](std::size_t c, const auto& values) { this->change_in_time(c, values); });
    const auto sides = detail::faces_at_sides(names().rules_of_faces(), domain.global());
    for (int j = 0; j < D; ++j)
      for (std::size_t s = 0; s < 2; ++s) sides_[j][s] = {j, sides[j][s], {}, {}};
  }

  /// Copies on the host, as the fields are now. What is changed there counts from `start` or `fields_changed` on.
  std::vector<FieldHandle<D>> fields() override {
    if (std::exchange(host_is_behind_, false))
      for (std::size_t f = 0; f < host_.size(); ++f) host_[f].bring_from(fields_[f]);
    return Base::fields();
  }
  /// Brings coefficients and fields to the device. Outside the grid coefficients are mirrored.
  void start() override {
    if (!given_.empty()) {
      std::vector<ErasedArray<D>> erased;
      for (std::size_t c = 0; c < given_.size(); ++c) {
        host_given_[c].take_to(given_[c]);
        erased.push_back(given_[c].erased());
      }
      this->plan_.exchange(erased);
      DeviceOutside<T, D, Space> mirrored(detail::mirrored_rules(this->around_), this->domain_.global(),
                                          index_of<D>(1), index_of<D>(1));
      for (const auto& c : given_) mirrored.fill(c.ref(), this->bounds(this->plan_.depth()), 0);
    }
    for (auto& of_dimension : sides_)
      for (Side& side : of_dimension)
        if (gives(side)) bring_given(side, this->bounds(this->plan_.depth()), 0);
    fields_changed();
  }
  void fields_changed() override {
    for (std::size_t f = 0; f < host_.size(); ++f) host_[f].take_to(fields_[f]);
    Base::fields_changed();
  }
  double advance(std::int64_t steps, bool change) override {
    const double sum = Base::advance(steps, change);
    host_is_behind_ = true;
    const PhaseScope scope(this->phases_, Phase::sweep);
    Space().fence();
    return sum;
  }

 protected:
  AnyArray<D> host_array(std::size_t f) const override {
    return f < host_.size() ? host_[f].ref() : host_given_[f - host_.size()].ref();
  }
  ErasedArray<D> erased(std::size_t f) const override { return fields_[f].erased(); }
  void sweep(int steps, int further, bool change) override {
    for (int q = 0; q < steps; ++q) {
      const int m = further + steps - 1 - q;
      {
        const PhaseScope scope(this->phases_, Phase::boundary);
        bring_sides(this->bounds(m + 1), this->time(q));
      }
      const PhaseScope scope(this->phases_, Phase::sweep);
      const Level& level = levels_[static_cast<std::size_t>(m)];
      for (const auto& c : this->in_time_)
        host_given_[c.index()].give(c, level.all[0], this->time_of_sources(q), given_[c.index()]);
      in_.fields_given ? sweep_parts<Given::fields>(level, change) : sweep_parts<Given::numbers>(level, change);
    }
  }
  void take_tiles() override {
    for (auto& tiles : tiles_) tiles.take();
  }

 private:
  using Array = ArrayRef<T, D>;

  /// What a step updates after which so many may follow without an exchange: the block and what these read.
  struct Level {
    std::array<std::vector<Box<D>>, D + 1> all, rest;  ///< of cells and faces; without those of this rank
  };
  /// The outermost faces of one side, and their values for all places of the arrays, if they are given.
  struct Side {
    int across = 0;  ///< the dimension
    detail::SideFaces<D> faces;
    std::vector<T> list;
    Kokkos::View<T*, typename Space::memory_space> values;
  };

  const StaggeredFields<D>& names() const { return this->names_; }
  /// Field f of the state, or a coefficient behind them.
  const Array& array(std::size_t f) const {
    return f < fields_.size() ? fields_[f].ref() : given_[f - fields_.size()].ref();
  }
  /// An array of this part of a step: the cells, and the faces of each dimension.
  const Array& array_of(std::size_t part) const { return array(part == 0 ? 0 : names().cells() + part - 1); }

  Level make_level(int further) const {
    Level level;
    const auto cells = this->needed(further);
    for (std::size_t f = 0; f <= D; ++f) {
      level.all[f] = f == 0 ? cells : detail::faces_of(cells, static_cast<int>(f) - 1);
      if (f > 0 && cells.size() == 1) {  // one kernel instead of two
        level.all[f] = cells;
        ++level.all[f][0].high[f - 1];
      }
      level.rest[f] = detail::without(level.all[f], array_of(f).owned);
    }
    return level;
  }

  /// Are there faces of this rank, or that it updates for others, whose values are given?
  bool gives(const Side& side) const {
    return side.faces.given() && !side.faces.at(this->bounds(this->plan_.depth())).empty();
  }
  /// The fields in cells outside the grid, and the values that faces are given, around and at these cells.
  void bring_sides(const Box<D>& cells, double time) {
    for (std::size_t f = 0; f < outside_.size(); ++f) outside_[f].fill(fields_[f].ref(), cells, time);
    for (auto& of_dimension : sides_)
      for (Side& side : of_dimension)
        if (gives(side) && side.faces.vary_in_time()) bring_given(side, cells, time);
  }
  /// The values of this time at `cells`.
  void bring_given(Side& side, const Box<D>& cells, double time) {
    side.faces.bring(cells, time);
    const Box<D> faces = side.faces.at(cells), array = array_of(0).allocated();
    std::int64_t places = 1;
    for (int j = 0; j < D; ++j) places *= j == side.across ? 1 : array.extent(j);
    side.list.resize(static_cast<std::size_t>(places));
    for_each_cell(faces, [&](const Index<D>& i) {
      std::int64_t place = 0;
      for (int j = 0; j < D; ++j)
        if (j != side.across) place = place * array.extent(j) + (i[j] - array.low[j]);
      side.list[static_cast<std::size_t>(place)] = static_cast<T>(side.faces.value(i));
    });
    copy_to_space<Space>("isohalo::given", side.list, side.values);
  }

  template <Given kGiven>
  void sweep_parts(const Level& level, bool change) const {
    const auto of = [this](std::size_t f) -> const Array& { return array(f); };
    for (int j = 0; j < D; ++j) {
      const auto part = static_cast<std::size_t>(j) + 1;
      detail::with_masked<T>(in_, detail::face_update<kGiven, T>(in_, j, of), of, [&](const auto& update) {
        if (gives(sides_[j][0]) || gives(sides_[j][1]))
          sweep_part(part, level, change, sided(update, j));
        else
          sweep_part(part, level, change, update);
      });
    }
    detail::with_amended<T>(in_, detail::cell_update<kGiven, T>(in_, of), of,
                            [&](const auto& update) { sweep_part(0, level, change, update); });
  }
  template <class Update>
  detail::SidedFaceUpdate<T, D, Update> sided(const Update& update, int across) const {
    const Array& v = array_of(static_cast<std::size_t>(across) + 1);
    const Box<D> array = v.allocated();
    detail::SidedFaceUpdate<T, D, Update> with{update, {}, {}, 0, across, {-1, -1}, {}};
    for (int j = 0; j < D; ++j) with.stride[j] = v.stride[j], with.extent[j] = array.extent(j);
    with.behind = offset_of<D>(v.owned.low, array.low, v.stride);
    for (std::size_t s = 0; s < 2; ++s) {
      const Side& side = sides_[across][s];
      if (!gives(side)) continue;
      with.face[s] = side.faces.face() - array.low[across];
      with.given[s] = side.values.data();
    }
    return with;
  }
  /// With the tile values of the squared changes, if they are wanted. Nothing reads a field while it is updated, so
  /// that its cells may be updated in any order.
  template <class Update>
  void sweep_part(std::size_t f, const Level& level, bool change, const Update& update) const {
    const Array& like = array_of(f);
    if (change) {
      tiles_[f].form_whole(update, like);
      tiles_[f].form_cut(update, like);
    }
    for (const Box<D>& b : (change ? level.rest : level.all)[f])
      for_each_cell_in<Space>("isohalo::sweep", b, like, update);
  }

  detail::CellSettings<S, D> in_;
  std::vector<DeviceOutside<T, D, Space>> outside_;  ///< of the fields in cells; no face outside the grid is read
  std::vector<DeviceSum<D, Space>> tiles_;           ///< the tile values of the change sums, of each part
  std::vector<DeviceField<T, D, Space>> fields_;     ///< the state
  std::vector<DeviceField<T, D, Space>> given_;      ///< what is given as fields
  std::vector<HostCopy<T, D>> host_, host_given_;
  bool host_is_behind_ = false;
  PerDim<std::array<Side, 2>, D> sides_;
  std::vector<Level> levels_;
};

}  // namespace isohalo
