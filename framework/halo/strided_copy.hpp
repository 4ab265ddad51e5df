#pragma once
/// Copies of boxes of cells between arrays, or between an array and a packed buffer.

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
/// or negative. The two sides must not overlap.
template <int D>
void strided_copy(std::byte* to, const Index<D>& to_stride, const std::byte* from, const Index<D>& from_stride,
                  const Index<D>& extents, std::int64_t bytes, Stores stores = Stores::cached) {
  detail::CopyLoop loops[D];
  for (int j = 0; j < D; ++j) {
    if (extents[j] <= 0) return;
    loops[j] = {extents[j], to_stride[j], from_stride[j]};
  }
  detail::copy_loops(to, from, bytes, loops, D, stores);
}

/// The cells of boxes of one array, one after the other in a packed buffer, each box in index order: so the order
/// does not depend on the layout of the array.
template <int D>
class BoxPacker {
 public:
  explicit BoxPacker(std::vector<Box<D>> boxes, const ExchangeStores& stores = {})
      : boxes_(std::move(boxes)), stores_(stores) {
    for (const auto& b : boxes_) cells_ += b.cells();
  }
  std::int64_t cells() const { return cells_; }

  /// Boxes with rows of `passed_over` bytes or more are left out; their place in the buffer stays.
  void pack(const ErasedArray<D>& a, std::byte* buffer, std::int64_t passed_over = kNone) const {
    for (const auto& b : boxes_) {
      const Index<D> extents = extents_of(b);
      if (extents[D - 1] * a.bytes < passed_over)
        strided_copy<D>(buffer, dense(extents, a.bytes), a.cell(b.low), a.byte_strides(), extents, a.bytes,
                        stores_.packed);
      buffer += b.cells() * a.bytes;
    }
  }
  void unpack(const ErasedArray<D>& a, const std::byte* buffer, std::int64_t passed_over = kNone) const {
    for (const auto& b : boxes_) {
      const Index<D> extents = extents_of(b);
      if (extents[D - 1] * a.bytes < passed_over)
        strided_copy<D>(a.cell(b.low), a.byte_strides(), buffer, dense(extents, a.bytes), extents, a.bytes,
                        stores_.packed);
      buffer += b.cells() * a.bytes;
    }
  }
  /// Copies the boxes that `pack` leaves out into another array of the same element type: `to` is its cell at index
  /// `low`, box k goes to its indices plus shifts[k]. Returns the bytes.
  std::int64_t copy_rows(const ErasedArray<D>& a, std::int64_t passed_over, const std::vector<Index<D>>& shifts,
                         std::byte* to, const std::int64_t (&low)[D], const std::int64_t (&stride)[D]) const {
    std::int64_t bytes = 0;
    Index<D> strides;
    for (int j = 0; j < D; ++j) strides[j] = stride[j];
    for (std::size_t k = 0; k < boxes_.size(); ++k) {
      const Box<D>& b = boxes_[k];
      const Index<D> extents = extents_of(b);
      if (extents[D - 1] * a.bytes < passed_over) continue;
      std::byte* first = to;
      for (int j = 0; j < D; ++j) first += (b.low[j] + shifts[k][j] - low[j]) * stride[j];
      strided_copy<D>(first, strides, a.cell(b.low), a.byte_strides(), extents, a.bytes, stores_.in_place);
      bytes += b.cells() * a.bytes;
    }
    return bytes;
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  static Index<D> extents_of(const Box<D>& b) {
    Index<D> e;
    for (int j = 0; j < D; ++j) e[j] = b.extent(j);
    return e;
  }
  static Index<D> dense(const Index<D>& extents, std::int64_t bytes) {
    Index<D> s;
    for (int j = D - 1; j >= 0; --j) s[j] = bytes, bytes *= extents[j];
    return s;
  }

  std::vector<Box<D>> boxes_;
  std::int64_t cells_ = 0;
  ExchangeStores stores_;
};

/// Copies within one array: box = the same box shifted by -shift.
template <int D>
class BoxCopier {
 public:
  struct Copy {
    Box<D> to;
    Index<D> shift;
  };

  /// Copies that span the same range of the slowest dimension run side by side, a few planes at a time: the two
  /// ghost columns of a row lie in the same cache lines as the cells that they are copied from.
  void add(const Copy& copy) {
    for (auto& group : groups_)
      if (group.front().to.low[0] == copy.to.low[0] && group.front().to.high[0] == copy.to.high[0]) {
        group.push_back(copy);
        return;
      }
    groups_.push_back({copy});
  }

  void run(const ErasedArray<D>& a, Stores stores = Stores::cached) const {
    for (const auto& group : groups_) {
      const std::int64_t low = group.front().to.low[0], high = group.front().to.high[0];
      const std::int64_t planes = D == 1 || group.size() == 1 ? high - low : 4;
      for (std::int64_t x = low; x < high; x += planes)
        for (const auto& copy : group) {
          Box<D> part = copy.to;
          part.low[0] = x;
          part.high[0] = std::min(high, x + planes);
          copy_box(a, part, copy.shift, stores);
        }
    }
  }

 private:
  static void copy_box(const ErasedArray<D>& a, const Box<D>& to, const Index<D>& shift, Stores stores) {
    Index<D> extents, source;
    for (int j = 0; j < D; ++j) {
      extents[j] = to.extent(j);
      source[j] = to.low[j] - shift[j];
    }
    strided_copy<D>(a.cell(to.low), a.byte_strides(), a.cell(source), a.byte_strides(), extents, a.bytes, stores);
  }

  std::vector<std::vector<Copy>> groups_;
};

}  // namespace isohalo
