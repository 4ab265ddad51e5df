#pragma once
/// acoustics with fields in the memory of a Kokkos execution space: what AcousticsSolver does on the host, with the
/// same bits.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stencils/device/device_kernel.hpp"
#include "stencils/device/device_outside.hpp"
#include "stencils/device/device_sum.hpp"
#include "stencils/solvers/acoustics_steps.hpp"

namespace isohalo {

namespace detail {

/// VelocityUpdate where faces at sides of the grid have given velocities.
template <class T, int D, bool Given>
struct SidedVelocityUpdate : VelocityUpdate<T, Given> {
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
    return VelocityUpdate<T, Given>::values(k);
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

template <class T, int D, class Space>
class DeviceAcoustics final : public AcousticsSteps<D> {
  using Base = AcousticsSteps<D>;

 public:
  /// The rules are none of one's own. `depth` >= 1 steps per exchange. Collective in order.
  DeviceAcoustics(const CartesianDomain<D>& domain, const AcousticsEquation<D>& equation, int depth,
                  Exchange exchange)
      : Base(domain, equation, depth, exchange, {}, true),
        outside_(equation.pressure_rules(), domain.global(), index_of<D>(1), index_of<D>(1)) {
    const auto names = acoustics_fields(D);
    fields_.reserve(names.size());
    tiles_.reserve(names.size());
    for (int f = 0; f <= D; ++f) {
      const CellSum<D>& sum = tiles_.emplace_back(*this->sums_[static_cast<std::size_t>(f)]).sum();
      // With a layer more, so that fields on faces fit arrays of the same strides.
      if (f == 0) {
        Index<D> high = this->plan_.ghost_high();
        for (std::int64_t& layers : high) ++layers;
        fields_.emplace_back(names[0], domain.owned(), this->plan_.ghost_low(), high);
      } else {
        fields_.emplace_back(names[static_cast<std::size_t>(f)], sum.domain().owned(), fields_[0]);
      }
    }
    for (const char* name : {"density", "bulk_modulus"})
      if (!equation.given.empty()) given_.emplace_back(name, domain.owned(), fields_[0]);
    for (const auto& field : fields_) host_.emplace_back(field);
    for (const auto& field : given_) host_given_.emplace_back(field);
    for (int m = 0; m <= depth; ++m) levels_.push_back(make_level(m));
    const auto sides = detail::faces_at_sides(equation, domain.global());
    for (int j = 0; j < D; ++j)
      for (std::size_t s = 0; s < 2; ++s) sides_[j][s] = {j, sides[j][s], {}, {}};
  }

  /// Copies on the host, as the fields are now. What is changed there counts from `start` or `fields_changed` on.
  std::vector<FieldHandle<D>> fields() override {
    if (std::exchange(host_is_behind_, false))
      for (std::size_t f = 0; f < host_.size(); ++f) host_[f].bring_from(fields_[f]);
    std::vector<FieldHandle<D>> all;
    const auto names = acoustics_fields(D);
    for (int f = 0; f <= D; ++f) {
      const auto k = static_cast<std::size_t>(f);
      all.push_back({names[k], "1", "state", host_[k].ref(), f - 1});
    }
    return all;
  }
  std::vector<FieldHandle<D>> coefficients() override {
    if (given_.empty()) return {};
    return {{"density", "1", "auxiliary", host_given_[0].ref()},
            {"bulk_modulus", "1", "auxiliary", host_given_[1].ref()}};
  }
  /// Brings coefficients and fields to the device. Outside the grid coefficients are mirrored.
  void start() override {
    if (!given_.empty()) {
      for (std::size_t c = 0; c < given_.size(); ++c) host_given_[c].take_to(given_[c]);
      this->plan_.exchange(given_[0].erased(), given_[1].erased());
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
  ErasedArray<D> erased(std::size_t field) const override { return fields_[field].erased(); }
  void bring_sides(const Box<D>& cells, double time) override {
    outside_.fill(pressure(), cells, time);
    for (auto& of_dimension : sides_)
      for (Side& side : of_dimension)
        if (gives(side) && side.faces.vary_in_time()) bring_given(side, cells, time);
  }
  void sweep(int further, bool change) override {
    const Level& level = levels_[static_cast<std::size_t>(further)];
    given_.empty() ? sweep_fields<false>(level, change) : sweep_fields<true>(level, change);
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
  /// The outermost faces of one side, and their velocities for all places of the arrays, if they are given.
  struct Side {
    int across = 0;  ///< the dimension
    detail::SideFaces<D> faces;
    std::vector<T> list;
    Kokkos::View<T*, typename Space::memory_space> values;
  };

  const Array& pressure() const { return fields_[0].ref(); }
  const Array& velocity(int j) const { return fields_[static_cast<std::size_t>(j) + 1].ref(); }

  Level make_level(int further) const {
    Level level;
    const auto cells = this->needed(further);
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      level.all[f] = f == 0 ? cells : detail::faces_of(cells, static_cast<int>(f) - 1);
      if (f > 0 && cells.size() == 1) {  // one kernel instead of two
        level.all[f] = cells;
        ++level.all[f][0].high[f - 1];
      }
      level.rest[f] = detail::without(level.all[f], fields_[f].ref().owned);
    }
    return level;
  }

  /// Are there faces of this rank, or that it updates for others, whose velocity is given?
  bool gives(const Side& side) const {
    return side.faces.given() && !side.faces.at(this->bounds(this->plan_.depth())).empty();
  }
  /// The velocities of this time at `cells`.
  void bring_given(Side& side, const Box<D>& cells, double time) {
    side.faces.bring(cells, time);
    const Box<D> faces = side.faces.at(cells), array = pressure().allocated();
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

  template <bool Given>
  void sweep_fields(const Level& level, bool change) const {
    for (int j = 0; j < D; ++j) {
      const auto f = static_cast<std::size_t>(j) + 1;
      const auto update = detail::velocity_update<Given>(this->equation_, j, velocity(j), pressure(),
                                                         Given ? given_[0].ref().data : nullptr);
      if (gives(sides_[j][0]) || gives(sides_[j][1]))
        sweep_field(f, level, change, sided<Given>(update, j));
      else
        sweep_field(f, level, change, update);
    }
    const auto velocities = [this](int j) { return velocity(j); };
    sweep_field(0, level, change,
                detail::pressure_update<Given>(this->equation_, velocities, pressure(),
                                               Given ? given_[1].ref().data : nullptr));
  }
  template <bool Given>
  detail::SidedVelocityUpdate<T, D, Given> sided(const detail::VelocityUpdate<T, Given>& update, int across) const {
    const Array& v = velocity(across);
    const Box<D> array = v.allocated();
    detail::SidedVelocityUpdate<T, D, Given> with{update, {}, {}, 0, across, {-1, -1}, {}};
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
  void sweep_field(std::size_t f, const Level& level, bool change, const Update& update) const {
    const Array& like = fields_[f].ref();
    if (change) {
      tiles_[f].form_whole(update, like);
      tiles_[f].form_cut(update, like);
    }
    for (const Box<D>& b : (change ? level.rest : level.all)[f])
      for_each_cell_in<Space>("isohalo::sweep", b, like, update);
  }

  DeviceOutside<T, D, Space> outside_;            ///< of the pressure; no face outside the grid is read
  std::vector<DeviceSum<D, Space>> tiles_;        ///< the tile values of the change sums
  std::vector<DeviceField<T, D, Space>> fields_;  ///< p, v0, v1, ..
  std::vector<DeviceField<T, D, Space>> given_;   ///< density and bulk modulus, or none
  std::vector<HostCopy<T, D>> host_, host_given_;
  bool host_is_behind_ = false;
  PerDim<std::array<Side, 2>, D> sides_;
  std::vector<Level> levels_;
};

}  // namespace isohalo
