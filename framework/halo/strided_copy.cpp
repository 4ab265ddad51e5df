#include "framework/halo/strided_copy.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "datatypes/streaming_copy.hpp"

namespace isohalo::detail {

namespace {

/// `loop.count` runs of B bytes. Rows of a large array lie on cache lines and pages that no hardware prefetcher
/// foresees, so the lines of later runs are asked for here.
template <int B>
void copy_runs(std::byte* to, const std::byte* from, const CopyLoop& loop) {
  constexpr std::int64_t ahead = 16;
  const bool far_to = std::abs(loop.to) >= 64, far_from = std::abs(loop.from) >= 64;
  for (std::int64_t i = 0; i < loop.count; ++i) {
    if (far_from) __builtin_prefetch(from + ahead * loop.from, 0, 3);
    if (far_to) __builtin_prefetch(to + ahead * loop.to, 1, 3);
    std::memcpy(to, from, B);
    to += loop.to;
    from += loop.from;
  }
}

/// From here on most of a row is whole lines.
constexpr std::int64_t kStreamedRow_bytes = 512;

void stream_rows(std::byte* to, const std::byte* from, std::int64_t run, const CopyLoop& loop) {
  for (std::int64_t i = 0; i < loop.count; ++i)
    streaming_copy(to + i * loop.to, from + i * loop.from, static_cast<std::size_t>(run));
}

void copy_any(std::byte* to, const std::byte* from, std::int64_t run, const CopyLoop& loop) {
  for (std::int64_t i = 0; i < loop.count; ++i)
    std::memcpy(to + i * loop.to, from + i * loop.from, static_cast<std::size_t>(run));
}

void copy_runs(std::byte* to, const std::byte* from, std::int64_t run, const CopyLoop& loop) {
  switch (run) {
    case 1:
      return copy_runs<1>(to, from, loop);
    case 2:
      return copy_runs<2>(to, from, loop);
    case 4:
      return copy_runs<4>(to, from, loop);
    case 8:
      return copy_runs<8>(to, from, loop);
    case 12:
      return copy_runs<12>(to, from, loop);
    case 16:
      return copy_runs<16>(to, from, loop);
    case 24:
      return copy_runs<24>(to, from, loop);
    case 32:
      return copy_runs<32>(to, from, loop);
    case 40:
      return copy_runs<40>(to, from, loop);
    case 48:
      return copy_runs<48>(to, from, loop);
    case 56:
      return copy_runs<56>(to, from, loop);
    case 64:
      return copy_runs<64>(to, from, loop);
    default:
      return copy_any(to, from, run, loop);
  }
}

/// Takes into the run every loop that continues it on both sides.
std::int64_t merge(std::int64_t run, CopyLoop* loops, int& count) {
  for (bool merged = true; merged;) {
    merged = false;
    for (int k = 0; k < count; ++k)
      if (loops[k].count == 1 || (loops[k].to == run && loops[k].from == run)) {
        run *= loops[k].count;
        std::move(loops + k + 1, loops + count, loops + k);
        --count;
        merged = true;
        break;
      }
  }
  return run;
}

}  // namespace

void copy_loops(std::byte* to, const std::byte* from, std::int64_t run, CopyLoop* loops, int count, Stores stores) {
  run = merge(run, loops, count);
  const bool streaming = stores == Stores::streaming && run >= kStreamedRow_bytes;
  if (count == 0) loops[count++] = {1, 0, 0};
  const auto reach = [](const CopyLoop& l) { return std::max(std::abs(l.to), std::abs(l.from)); };
  std::sort(loops, loops + count, [&](const CopyLoop& a, const CopyLoop& b) { return reach(a) > reach(b); });
  CopyLoop& inner = loops[count - 1];
  if (inner.count < 8)
    for (int k = count - 2; k >= 0; --k)
      if (loops[k].count > inner.count) std::swap(loops[k], inner);
  std::int64_t at[4] = {};
  for (;;) {
    if (streaming)
      stream_rows(to, from, run, inner);
    else
      copy_runs(to, from, run, inner);
    int k = count - 2;
    for (; k >= 0; --k) {
      to += loops[k].to;
      from += loops[k].from;
      if (++at[k] < loops[k].count) break;
      to -= loops[k].to * loops[k].count;
      from -= loops[k].from * loops[k].count;
      at[k] = 0;
    }
    if (k < 0) break;
  }
  if (streaming) streaming_fence();
}

}  // namespace isohalo::detail
