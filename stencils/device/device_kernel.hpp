#pragma once
/// The arithmetic of a step, or of one stage of it, as kernels of a Kokkos execution space. What lies behind is a
/// point kernel: a cell function (CellPoint), or one of those here. Each cell is the expression that the host's
/// row kernel has, so both give the same bits.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/neighborhood/offsets.hpp"
#include "stencils/cell_row.hpp"
#include "stencils/device/device_sum.hpp"
#include "stencils/row_kernels.hpp"

// A loop whose indices must be constants, for a device to keep what it indexes in registers.
#if defined(__CUDA_ARCH__)
#define ISOHALO_UNROLL _Pragma("unroll")
#else
#define ISOHALO_UNROLL
#endif

namespace isohalo {

/// Arrays are given by the addresses of their first owned cells. All lie in the same space's memory, have the owned
/// box and the strides of `like`, and hold all cells that the kernel reads. Local.
template <class T, int D, class Space>
class DeviceKernel {
 public:
  using Arrays = std::span<T* const>;
  using Images = detail::Images<D>;
  virtual ~DeviceKernel() = default;
  /// writes = kernel(reads) in one box, with images where that is the owned one. Does not fence.
  virtual void sweep(const Box<D>& box, const ArrayRef<T, D>& like, Arrays reads, Arrays writes,
                     const Images& images) const = 0;
  /// The same in sum.cells(), and sum.form_whole of the squared changes from `before`. Does not fence.
  virtual void sweep_with_change(const DeviceSum<D, Space>& sum, const ArrayRef<T, D>& like, Arrays reads,
                                 Arrays writes, Arrays before, const Images& images) const = 0;
};

template <class T, int D, class Space>
using DeviceKernelPointer = std::unique_ptr<const DeviceKernel<T, D, Space>>;

/// WeightedRow at one cell, of N terms: offsets in elements, and weights. What is known when compiled is loaded at
/// once, whatever the number of cells.
template <class T, std::size_t N>
struct WeightedPoint {
  std::int64_t away[N];
  T weight[N];
  static constexpr std::size_t kReads = 1, kWrites = 1;
  static constexpr bool kFormsChange = N <= 9;  // (H200, 27 points with a change: 3.6 times a step; apart 1.7)

  KOKKOS_FUNCTION std::array<T, 1> at(const std::array<const T*, 1>& from, std::int64_t x) const {
    return {sum(from[0] + x, std::make_index_sequence<N>())};
  }

 private:
  template <std::size_t... K>
  KOKKOS_FUNCTION T sum(const T* in, std::index_sequence<K...>) const {
    T sum = -T(0);  // -0 + a is a, whatever a is
    ((sum = sum + weight[K] * in[away[K]]), ...);
    return sum;
  }
};

/// The same of the box of radius 1, in the order of its offsets: what lies in one layer of dimension 0 is loaded
/// once for all cells of a thread that it is around.
template <class T, int D>
struct BoxPoint {
  static constexpr int kLayer = D == 2 ? 3 : 9, kTerms = 3 * kLayer;
  T weight[kTerms];
  Index<D> strides;
  static constexpr std::size_t kReads = 1, kWrites = 1;
  static constexpr bool kFormsChange = kTerms <= 9;

  KOKKOS_FUNCTION std::int64_t stride(int j) const { return strides[j]; }
  KOKKOS_FUNCTION std::array<T, 1> at(const std::array<const T*, 1>& from, std::int64_t x) const {
    std::array<T, 1> to[1];
    several<0>(from, x, strides[0], to);
    return to[0];
  }
  template <int along, int Cells>
  KOKKOS_FUNCTION void several(const std::array<const T*, 1>& from, std::int64_t x, std::int64_t step,
                               std::array<T, 1> (&to)[Cells]) const requires(along == 0) {
    const T* const in = from[0] + x;
    ISOHALO_UNROLL
    for (int e = 0; e < Cells; ++e) to[e][0] = -T(0);  // -0 + a is a, whatever a is
    ISOHALO_UNROLL
    for (int layer = -1; layer <= Cells; ++layer) {
      T value[kLayer];
      ISOHALO_UNROLL
      for (int m = 0; m < kLayer; ++m)
        value[m] = in[layer * step + (D == 3 ? (m / 3 - 1) * strides[1] : 0) + m % 3 - 1];
      ISOHALO_UNROLL
      for (int a = -1; a <= 1; ++a) {
        const int e = layer - a;
        if (e < 0 || e >= Cells) continue;
        ISOHALO_UNROLL
        for (int m = 0; m < kLayer; ++m) to[e][0] = to[e][0] + weight[(a + 1) * kLayer + m] * value[m];
      }
    }
  }
};

/// The same of any list.
template <class T>
struct WeightedListPoint {
  const std::int64_t* away;
  const T* weight;
  std::size_t terms;
  static constexpr std::size_t kReads = 1, kWrites = 1;
  static constexpr bool kFormsChange = false;

  KOKKOS_FUNCTION std::array<T, 1> at(const std::array<const T*, 1>& from, std::int64_t x) const {
    const T* const in = from[0] + x;
    T sum = weight[0] * in[away[0]];
    for (std::size_t k = 1; k < terms; ++k) sum = sum + weight[k] * in[away[k]];
    return {sum};
  }
  /// Each term for all of them.
  template <int along, int Cells>
  KOKKOS_FUNCTION void several(const std::array<const T*, 1>& from, std::int64_t x, std::int64_t step,
                               std::array<T, 1> (&to)[Cells]) const {
    const T* const in = from[0] + x;
    for (int e = 0; e < Cells; ++e) to[e][0] = weight[0] * in[away[0] + e * step];
    for (std::size_t k = 1; k < terms; ++k) {
      const T w = weight[k];
      const T* const at = in + away[k];
      for (int e = 0; e < Cells; ++e) to[e][0] = to[e][0] + w * at[e * step];
    }
  }
};

/// Has that list in the memory of Space.
template <class T, class Space>
struct WeightedList {
  Kokkos::View<std::int64_t*, typename Space::memory_space> away;
  Kokkos::View<T*, typename Space::memory_space> weight;
  WeightedListPoint<T> of_this_step() const { return {away.data(), weight.data(), away.extent(0)}; }
};

/// make(point) of a list of offsets and its weights.
template <class T, int D, class Space, class Make>
auto with_weighted_point(const Offsets<D>& offsets, const std::vector<double>& weights, const Index<D>& stride,
                         const Make& make) {
  std::vector<std::int64_t> away;
  for (const Index<D>& o : offsets) away.push_back(offset_of<D>(o, {}, stride));
  const std::vector<T> w(weights.begin(), weights.end());
  const auto of_known = [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
    WeightedPoint<T, N> point{};
    std::copy_n(away.begin(), N, point.away);
    std::copy_n(w.begin(), N, point.weight);
    return make(point);
  };
  // Stars and boxes, as most lists are.
  if constexpr (D == 2 || D == 3)
    if (offsets == moore<D>(1, Self::include)) {
      BoxPoint<T, D> point{{}, stride};
      std::copy(w.begin(), w.end(), point.weight);
      return make(point);
    }
  constexpr std::size_t star = 2 * D + 1, wide_star = 4 * D + 1, widest = D == 3 ? 25 : star;
  if (away.size() == star) return of_known(std::integral_constant<std::size_t, star>());
  if (away.size() == wide_star) return of_known(std::integral_constant<std::size_t, wide_star>());
  if (away.size() == widest) return of_known(std::integral_constant<std::size_t, widest>());
  return make(
      WeightedList<T, Space>{in_space<Space>("isohalo::offsets", away), in_space<Space>("isohalo::weights", w)});
}

namespace detail {

/// A point kernel at one cell.
template <class Point, class T>
struct PointUpdate {
  static constexpr std::size_t kReads = Point::kReads, kWrites = Point::kWrites;

  Point point;
  std::array<const T*, kReads> in;
  std::array<T*, kWrites> out;

  using Values = std::array<T, kWrites>;
  KOKKOS_FUNCTION std::int64_t stride(int j) const requires requires { point.stride(j); }
  { return point.stride(j); }
  /// All values are formed before one is stored, since the fields that are written may be those a step before,
  /// which the function reads.
  KOKKOS_FUNCTION Values values(const std::int64_t x) const {
    const auto values = point.at(in, x);
    Values to{};
    for (std::size_t f = 0; f < kWrites; ++f) to[f] = static_cast<T>(values[f]);
    return to;
  }
  /// Of N cells, `step` elements from each other, where the point forms them at once.
  template <int along, int N>
  KOKKOS_FUNCTION void several(const std::int64_t x, const std::int64_t step,
                               Values (&to)[N]) const requires requires {
    point.template several<along>(in, x, step, to);
  }
  { point.template several<along>(in, x, step, to); }
  KOKKOS_FUNCTION void store(const std::int64_t x, const Values& to) const {
    for (std::size_t f = 0; f < kWrites; ++f) out[f][x] = to[f];
  }
};

/// Can it be amended?
template <class Point, class T>
concept Amendable = requires(const Point& p, const std::array<const T*, Point::kReads>& from) {
  p.mirrored(from, from[0], std::int64_t{});
  p.source_weight(from, std::int64_t{});
};

/// A point kernel and its amendments (cell_row.hpp) at one cell. Apart, since branches keep a device from loading
/// what several cells read at once.
template <class Point, class T>
struct AmendedUpdate : PointUpdate<Point, T> {
  using Base = PointUpdate<Point, T>;
  using typename Base::Values;
  bool sources;
  Mask mask;
  std::array<const T*, Base::kWrites + 1> amending;  ///< the sources, if there are any, and the mask
  template <int along, int N>
  void several(std::int64_t, std::int64_t, Values (&)[N]) const = delete;  // not without amendments

  KOKKOS_FUNCTION Values values(const std::int64_t x) const {
    const auto& from = this->in;
    const T* const masked = mask == Mask::none ? nullptr : amending[sources ? Base::kWrites : 0];
    const auto values = mask == Mask::mirror ? this->point.mirrored(from, masked, x) : this->point.at(from, x);
    Values to{};
    for (std::size_t f = 0; f < Base::kWrites; ++f) {
      double value = values[f];
      if (sources)
        value = rounded<T>(value) + this->point.source_weight(from, x) * static_cast<double>(amending[f][x]);
      to[f] = static_cast<T>(value);
    }
    for (std::size_t f = 0; f < Base::kWrites && masked; ++f)
      if (masked[x] != T(0)) to[f] = from[f][x];
    return to;
  }
};

/// A point kernel with the squared change of a cell; of several fields the sum in their order (as SquaredChanges on
/// the host).
template <class Point, class T>
struct PointUpdateWithChange : PointUpdate<Point, T> {
  using typename PointUpdate<Point, T>::Values;
  std::array<const T*, Point::kWrites> before;

  KOKKOS_FUNCTION double term(const std::int64_t x, const Values& to) const {
    double all = squared_change(to[0], before[0][x]);
    for (std::size_t f = 1; f < Point::kWrites; ++f) all = all + squared_change(to[f], before[f][x]);
    return all;
  }
};

/// Most state fields that a kernel is told of.
inline constexpr int kMostFields = 8;

/// As PointUpdateWithChange, when the new values are there.
template <class T>
struct ChangeAt {
  int fields;
  const T *now[kMostFields], *before[kMostFields];

  static ChangeAt of(std::span<T* const> now, std::span<T* const> before) {
    ChangeAt squares{static_cast<int>(now.size()), {}, {}};
    std::copy(now.begin(), now.end(), squares.now);
    std::copy(before.begin(), before.end(), squares.before);
    return squares;
  }

  KOKKOS_FUNCTION double operator()(std::int64_t k) const {
    double all = squared_change(now[0][k], before[0][k]);
    for (int f = 1; f < fields; ++f) all = all + squared_change(now[f][k], before[f][k]);
    return all;
  }
};

/// Is the change of cells formed by the kernel that computes them, unless these are amended? Where they read many
/// others, threads with the rows of a tile fall behind.
template <class Point>
constexpr bool forms_change() {
  if constexpr (requires { Point::kFormsChange; })
    return Point::kFormsChange;
  else
    return true;
}

template <class T, int D, class Space, class Point>
class PointKernel final : public DeviceKernel<T, D, Space> {
 public:
  using typename DeviceKernel<T, D, Space>::Arrays;
  PointKernel(const Point& point, const Amendments& amendments)
      : point_(point), sources_(amendments.sources), mask_(amendments.mask) {}

  using typename DeviceKernel<T, D, Space>::Images;
  void sweep(const Box<D>& box, const ArrayRef<T, D>& like, Arrays reads, Arrays writes,
             const Images& images) const override {
    const auto run = [&](const auto& update) {
      for_each_cell_in<Space>("isohalo::sweep", box, like, update, images);
    };
    const Update update = plain(reads, writes);
    if constexpr (Amendable<Here, T>)
      if (amended()) {
        AmendedUpdate<Here, T> with{update, sources_, mask_, {}};
        for (std::size_t f = 0; f < with.amending.size(); ++f) with.amending[f] = address(reads, Here::kReads + f);
        return run(with);
      }
    run(update);
  }
  void sweep_with_change(const DeviceSum<D, Space>& sum, const ArrayRef<T, D>& like, Arrays reads, Arrays writes,
                         Arrays before, const Images& images) const override {
    if constexpr (forms_change<Here>())
      if (!amended()) {
        PointUpdateWithChange<Here, T> with{plain(reads, writes), {}};
        std::copy_n(before.begin(), Here::kWrites, with.before.begin());
        return sum.form_whole(with, like, images);
      }
    sweep(sum.cells(), like, reads, writes, images);
    sum.form_whole(ChangeAt<T>::of(writes, before), like);
  }

 private:
  using Here = decltype(of_this_step(std::declval<const Point&>()));
  using Update = PointUpdate<Here, T>;
  bool amended() const { return sources_ || mask_ != Mask::none; }
  /// The first array stands for those that are not there, which nobody reads then.
  static const T* address(Arrays reads, std::size_t f) { return reads[f < reads.size() ? f : 0]; }
  Update plain(Arrays reads, Arrays writes) const {
    Update update{of_this_step(point_), {}, {}};
    for (std::size_t f = 0; f < Here::kReads; ++f) update.in[f] = address(reads, f);
    std::copy_n(writes.begin(), Here::kWrites, update.out.begin());
    return update;
  }

  Point point_;
  bool sources_;
  Mask mask_;
};

}  // namespace detail

/// `point.at(from, x)`: the new values of the cell x elements behind the first owned one. Where steps differ, or
/// the point owns memory, point.of_this_step() is what has that, without a View.
template <class T, int D, class Space, class Point>
DeviceKernelPointer<T, D, Space> device_kernel(const Point& point, const detail::Amendments& amendments = {}) {
  return std::make_unique<detail::PointKernel<T, D, Space, Point>>(point, amendments);
}

}  // namespace isohalo

#undef ISOHALO_UNROLL
