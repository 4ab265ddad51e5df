#pragma once
/// An array of one block with ghosts, for programs without a field of their own: laid out as sweeps like it best.

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "framework/halo/array_ref.hpp"

namespace isohalo {

namespace detail {

/// Asks the system to back the memory with large pages where it offers them on request (Linux, "madvise" mode). A
/// hint: small arrays and refusals are left as they are. Local.
inline void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t page = 4096, large = std::uintptr_t{2} << 20;
  if (bytes < 4 * large) return;
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

/// How rows lie in memory that begins where a cache line does, so that the first owned cell of each row does as
/// well: otherwise every vector straddles two lines (docs/performance.md). Where several ghosts lie beside a row,
/// its cache lines are all its own, so that steps that go into the ghosts may update whole lines.
struct RowLayout {
  std::int64_t lead = 0;      ///< elements before the first row
  std::int64_t padding = 0;   ///< elements after each row
  std::int64_t elements = 0;  ///< in all

  /// Elements from a row of so many owned ones to the next one. Neighboring rows stay off one cache set and, where
  /// rows fill pages, off sets next to each other: some processors fetch several such rows at half the speed
  /// (docs/performance.md).
  template <class T, int D>
  static std::int64_t pitch_of(std::int64_t row, std::int64_t ghost_low, std::int64_t ghost_high) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T)), line = line_of<T>();
    const std::int64_t before = is_deep(ghost_low, ghost_high) ? in_lines<T>(ghost_low) : ghost_low;
    const std::int64_t pitch = in_lines<T>(before + row + ghost_high);
    if (D == 1) return pitch;
    if (pitch * size % 2048 == 0) return pitch + 2 * line;
    return pitch * size > 4096 && pitch * size % 4096 == 64 ? pitch + line : pitch;
  }

  template <class T, int D>
  static RowLayout of(const Box<D>& owned, const Index<D>& ghost_low, const Index<D>& ghost_high) {
    const Box<D> all = owned.grown(ghost_low, ghost_high);
    const std::int64_t row = all.extent(D - 1), line = line_of<T>();
    const std::int64_t low = ghost_low[D - 1], high = ghost_high[D - 1];
    RowLayout r;
    r.padding = pitch_of<T, D>(owned.extent(D - 1), low, high) - row;
    const std::int64_t elements = all.cells() / std::max<std::int64_t>(row, 1) * (row + r.padding);
    r.lead = in_lines<T>(low) - low;
    if (elements * static_cast<std::int64_t>(sizeof(T)) > 64 * kPage) r.lead += lines_apart() * line;
    // A line more before and behind all: what lies in the same line as the last ghost may be computed, and for that
    // what lies beside it be read.
    const std::int64_t around = is_deep(low, high) ? line : 0;
    r.lead += around;
    r.elements = r.lead + elements + around;
    return r;
  }

  /// The fewest elements of whole cache lines that are not less.
  template <class T>
  static std::int64_t in_lines(std::int64_t elements) {
    constexpr std::int64_t line = line_of<T>();
    return (elements + line - 1) / line * line;
  }

 private:
  static constexpr std::int64_t kPage = 4096;
  static bool is_deep(std::int64_t ghost_low, std::int64_t ghost_high) { return ghost_low > 1 || ghost_high > 1; }
  /// Lines by which an array begins later in its page than the one made before: the same cell of several arrays is
  /// not in one set of the first-level cache, then. (Gray-Scott from memory, four rows at a time, an EPYC: 1.3
  /// times as fast.)
  static std::int64_t lines_apart() {
    static std::atomic<std::int64_t> made{0};
    return made.fetch_add(1, std::memory_order_relaxed) * 10 % (kPage / 64);
  }
  template <class T>
  static constexpr std::int64_t line_of() {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    return 64 % size == 0 ? 64 / size : 1;
  }
};

}  // namespace detail

/// Owns host memory for a block in C order with `width` ghost layers on every side, zeroed by the calling thread,
/// in large pages where the system has them on request; the first owned cell of each row begins a cache line
/// where their size divides 64.
/// Move-only, local. Throws std::bad_alloc, and UsageError for a negative width.
template <class T, int D>
class GridArray {
  static_assert(alignof(T) <= 64, "GridArray: memory begins with a cache line");

 public:
  GridArray(const Box<D>& owned, std::int64_t width) {
    detail::check_adopted(width, 0);
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 256;  // bytes; rows are padded, too
    if (adopted_size(owned, width) > most / static_cast<std::int64_t>(sizeof(T))) throw std::bad_alloc();
    const Index<D> ghosts = index_of<D>(width);
    const auto layout = detail::RowLayout::of<T, D>(owned, ghosts, ghosts);
    constexpr std::size_t line = 64;
    const std::size_t bytes = (static_cast<std::size_t>(layout.elements) * sizeof(T) + line - 1) / line * line;
    memory_.reset(static_cast<T*>(std::aligned_alloc(line, std::max(bytes, line))));
    if (!memory_) throw std::bad_alloc();
    detail::prefer_huge_pages(memory_.get(), bytes);  // before the first touch
    std::memset(static_cast<void*>(memory_.get()), 0, bytes);
    ref_ = detail::c_order(memory_.get() + layout.lead, owned, ghosts, ghosts, layout.padding);
  }

  /// For exchanges, sweeps, reductions. It stays good when the array is moved.
  const ArrayRef<T, D>& ref() const { return ref_; }
  T& at(const Index<D>& i) const { return ref_.at(i); }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };

  std::unique_ptr<T[], Free> memory_;
  ArrayRef<T, D> ref_;
};

}  // namespace isohalo
