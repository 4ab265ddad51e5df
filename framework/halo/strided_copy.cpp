#include "framework/halo/strided_copy.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "datatypes/fetch.hpp"
#include "datatypes/streaming_copy.hpp"

namespace isohalo::detail {

namespace {

/// `loop.count` runs of B bytes. Rows of a large array lie on cache lines and pages that no hardware prefetcher
/// foresees, so the lines of later runs are asked for here.
template <int B>
void copy_runs(std::byte* to, const std::byte* from, std::int64_t, const CopyLoop& loop) {
  constexpr std::int64_t ahead = 64;
  const bool far_to = std::abs(loop.to) >= 64, far_from = std::abs(loop.from) >= 64;
  for (std::int64_t i = 0; i < loop.count; ++i) {
    if (far_from) fetch_line(from + ahead * loop.from);
    if (far_to) fetch_line(to + ahead * loop.to);
    std::memcpy(to, from, B);
    to += loop.to;
    from += loop.from;
  }
}

void copy_any(std::byte* to, const std::byte* from, std::int64_t run, const CopyLoop& loop) {
  for (std::int64_t i = 0; i < loop.count; ++i)
    std::memcpy(to + i * loop.to, from + i * loop.from, static_cast<std::size_t>(run));
}

void stream_rows(std::byte* to, const std::byte* from, std::int64_t run, const CopyLoop& loop) {
  for (std::int64_t i = 0; i < loop.count; ++i)
    streaming_copy(to + i * loop.to, from + i * loop.from, static_cast<std::size_t>(run));
}

/// From here on most of a row is whole lines.
constexpr std::int64_t kStreamedRow_bytes = 512;

using CopyRuns = void (*)(std::byte* to, const std::byte* from, std::int64_t run, const CopyLoop& loop);

/// For runs of 1 to 64 bytes.
constexpr auto kShortRuns = []<int... B>(std::integer_sequence<int, B...>) {
  return std::array<CopyRuns, sizeof...(B)>{copy_runs<B + 1>...};
}
(std::make_integer_sequence<int, 64>{});

/// Takes into the run every loop that continues it on both sides.
std::int64_t merge(std::int64_t run, CopyLoop* loops, int& count) {
  for (;;) {
    const auto joins = [&](const CopyLoop& l) { return l.count == 1 || (l.to == run && l.from == run); };
    CopyLoop* const l = std::find_if(loops, loops + count, joins);
    if (l == loops + count) return run;
    run *= l->count;
    std::move(l + 1, loops + count, l);
    --count;
  }
}

}  // namespace

void copy_loops(std::byte* to, const std::byte* from, std::int64_t run, CopyLoop* loops, int count, Stores stores) {
  run = merge(run, loops, count);
  const bool streaming = stores == Stores::streaming && run >= kStreamedRow_bytes;
  CopyRuns copy = streaming ? stream_rows : copy_any;
  if (run > 0 && run <= std::ssize(kShortRuns)) copy = kShortRuns[static_cast<std::size_t>(run) - 1];
  if (count == 0) loops[count++] = {1, 0, 0};
  const auto reach = [](const CopyLoop& l) { return std::max(std::abs(l.to), std::abs(l.from)); };
  std::sort(loops, loops + count, [&](const CopyLoop& a, const CopyLoop& b) { return reach(a) > reach(b); });
  CopyLoop& inner = loops[count - 1];
  if (inner.count < 8)
    for (int k = count - 2; k >= 0; --k)
      if (loops[k].count > inner.count) std::swap(loops[k], inner);
  std::int64_t at[4] = {};
  for (;;) {
    copy(to, from, run, inner);
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
