#pragma once
/// Copies of boxes of cells between arrays, or between an array and a packed buffer.

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "datatypes/box.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/stores.hpp"

namespace isohalo {

namespace detail {

/// One loop of a copy: how often, and how many bytes further each side is then.
struct CopyLoop {
  std::int64_t count, to, from;
};

/// Runs the loops (at most 4) around a copy of `run` bytes. Loops in which the bytes of both sides join are merged;
/// the longest useful one is innermost. The two sides must not overlap. What another process reads after a release
/// store of this thread is there, however it was stored.
void copy_loops(std::byte* to, const std::byte* from, std::int64_t run, CopyLoop* loops, int count,
                Stores stores = Stores::cached);

}  // namespace detail

/// Copies a box of shape `extents` of cells of `bytes` bytes; the strides are in bytes and may be padded, permuted
/// or negative. The two sides must not overlap. `workers` share a large box, cut across its longest dimension, the
/// slowest if several are as long.
template <int D>
void strided_copy(std::byte* to, const Index<D>& to_stride, const std::byte* from, const Index<D>& from_stride,
                  const Index<D>& extents, std::int64_t bytes, Stores stores = Stores::cached,
                  const Workers& workers = {}) {
  std::int64_t all = bytes;
  int cut = 0;
  for (int j = 0; j < D; ++j) {
    if (extents[j] <= 0) return;
    all *= extents[j];
    if (extents[j] > extents[cut]) cut = j;
  }
  workers.share(extents[cut], all, [&](std::int64_t first, std::int64_t last) {
    detail::CopyLoop loops[D];
    for (int j = 0; j < D; ++j) loops[j] = {extents[j], to_stride[j], from_stride[j]};
    loops[cut].count = last - first;
    detail::copy_loops(to + first * to_stride[cut], from + first * from_stride[cut], bytes, loops, D, stores);
  });
}

/// For copies of rows of any length.
constexpr std::int64_t kAllRows = std::numeric_limits<std::int64_t>::max();

/// The cells of boxes of one array, one after the other in a packed buffer, each box in index order: so the order
/// does not depend on the layout of the array.
template <int D>
class BoxPacker {
 public:
  explicit BoxPacker(std::vector<ShiftedBox<D>> boxes, const ExchangeStores& stores = {})
      : boxes_(std::move(boxes)), stores_(stores) {
    for (const auto& b : boxes_) cells_ += b.box.cells();
  }
  std::int64_t cells() const { return cells_; }

  /// Boxes with rows of `passed_over` bytes or more are left out; their place in the buffer stays.
  void pack(const ErasedArray<D>& a, std::byte* buffer, std::int64_t passed_over = kAllRows) const {
    for_each_packed(a, passed_over, [&](const Box<D>& b, const Index<D>& extents, std::int64_t at) {
      strided_copy<D>(buffer + at, dense(extents, a.bytes), a.cell(b.low), a.byte_strides(), extents, a.bytes,
                      stores_.packed, stores_.workers);
    });
  }
  void unpack(const ErasedArray<D>& a, const std::byte* buffer, std::int64_t passed_over = kAllRows) const {
    for_each_packed(a, passed_over, [&](const Box<D>& b, const Index<D>& extents, std::int64_t at) {
      strided_copy<D>(a.cell(b.low), a.byte_strides(), buffer + at, dense(extents, a.bytes), extents, a.bytes,
                      stores_.packed, stores_.workers);
    });
  }
  /// Copies the boxes that `pack` leaves out, shifted, into another array of the same element type: `to` is its
  /// cell at index `low`.
  void copy_rows(const ErasedArray<D>& a, std::int64_t passed_over, std::byte* to, const std::int64_t (&low)[D],
                 const std::int64_t (&stride)[D]) const {
    const Index<D> strides = std::to_array(stride);
    for (const auto& [b, shift] : boxes_) {
      const Index<D> extents = b.extents();
      if (extents[D - 1] * a.bytes < passed_over) continue;
      std::byte* first = to;
      for (int j = 0; j < D; ++j) first += (b.low[j] + shift[j] - low[j]) * stride[j];
      strided_copy<D>(first, strides, a.cell(b.low), a.byte_strides(), extents, a.bytes, stores_.in_place,
                      stores_.workers);
    }
  }

 private:
  /// f(box, its extents, its place in the buffer).
  template <class F>
  void for_each_packed(const ErasedArray<D>& a, std::int64_t passed_over, F&& f) const {
    std::int64_t at = 0;
    for (const auto& [b, shift] : boxes_) {
      const Index<D> extents = b.extents();
      if (extents[D - 1] * a.bytes < passed_over) f(b, extents, at);
      at += b.cells() * a.bytes;
    }
  }
  static Index<D> dense(const Index<D>& extents, std::int64_t bytes) {
    Index<D> s;
    for (int j = D - 1; j >= 0; --j) s[j] = bytes, bytes *= extents[j];
    return s;
  }

  std::vector<ShiftedBox<D>> boxes_;
  std::int64_t cells_ = 0;
  ExchangeStores stores_;
};

/// Copies within one array: box = the same box shifted by -shift.
template <int D>
class BoxCopier {
 public:
  /// Copies that span the same range of the slowest dimension run side by side, so many planes at a time that their
  /// cache lines stay in cache: the two ghost columns of a row lie in those of the cells that they are copied from.
  explicit BoxCopier(const std::vector<ShiftedBox<D>>& copies) {
    for (const auto& copy : copies) {
      const auto beside = [&](const std::vector<ShiftedBox<D>>& group) {
        const Box<D>& b = group.front().box;
        return b.low[0] == copy.box.low[0] && b.high[0] == copy.box.high[0];
      };
      auto group = std::find_if(groups_.begin(), groups_.end(), beside);
      if (group == groups_.end()) group = groups_.emplace(group);
      group->push_back(copy);
    }
  }

  void run(const ErasedArray<D>& a, Stores stores = Stores::cached, const Workers& workers = {}) const {
    for (const auto& group : groups_) {
      if (D == 1 || group.size() == 1) {
        for (const auto& copy : group) run_copy(a, copy, stores, workers);
        continue;
      }
      const std::int64_t low = group.front().box.low[0], high = group.front().box.high[0];
      std::int64_t bytes = 0, rows_of_plane = 1;  // of the box that has the most
      for (const auto& copy : group) {
        bytes += copy.box.cells() * a.bytes;
        std::int64_t rows = 1;
        for (int j = 1; j < D - 1; ++j) rows *= copy.box.extent(j);
        rows_of_plane = std::max(rows_of_plane, rows);
      }
      workers.share(high - low, bytes, [&](std::int64_t first, std::int64_t last) {
        constexpr std::int64_t rows = 128;
        const std::int64_t planes = std::max<std::int64_t>(1, rows / rows_of_plane);
        for (std::int64_t x = low + first; x < low + last; x += planes)
          for (auto copy : group) {
            copy.box.low[0] = x;
            copy.box.high[0] = std::min(low + last, x + planes);
            run_copy(a, copy, stores, {});
          }
      });
    }
  }

 private:
  static void run_copy(const ErasedArray<D>& a, const ShiftedBox<D>& copy, Stores stores, const Workers& workers) {
    Index<D> source;
    for (int j = 0; j < D; ++j) source[j] = copy.box.low[j] - copy.shift[j];
    strided_copy<D>(a.cell(copy.box.low), a.byte_strides(), a.cell(source), a.byte_strides(), copy.box.extents(),
                    a.bytes, stores, workers);
  }

  std::vector<std::vector<ShiftedBox<D>>> groups_;
};

}  // namespace isohalo
