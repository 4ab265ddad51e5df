/// How a rank performs its part of a schedule.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "datatypes/cache_size.hpp"
#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/shm/collectives.hpp"
#include "framework/shm/sleepers.hpp"

namespace isohalo {

namespace {

// The memory of a rank: a line that says which stage it has ended last, and slots of several sizes, each size used
// in turn: the smaller, the more, so that a rank can run ahead of others that wait for a core. A slot begins with
// the stage it was published in, so that short data come with the flag.
constexpr std::size_t kLine = 128;  // two cache lines: what a processor may fetch at once
constexpr std::size_t kFlag = sizeof(std::uint64_t);
struct SlotSize {
  std::size_t bytes, slots;
};
constexpr std::array<SlotSize, NodeCollectives::kSlotSizes> kSizes{
    {{kLine, 256}, {1024, 32}, {kLine + 4096, 16}, {kLine + NodeCollectives::kSlotData, kNodeSlots}}};

// Instead of the longest slots many more, in memory of their own, where long vectors are many. Once they are
// together larger than a core's own cache, what is written has gone to the cache that cores share before it is read
// and written again, and some processors fetch from there three times as fast as from another core's own (measured
// on Zen 4). On a Xeon with 2 MiB of such cache a broadcast of 512 KiB took 26 us by 192 slots, 33 by 64. Vectors
// of 1 to 4 KiB take them as well where they are more than those of that size: ranks can run further ahead.
constexpr std::size_t kLong = kSizes.size() - 1, kManyLong = 64, kMostLong = 192;
constexpr std::size_t kAllLong = std::size_t{32} << 20;  // bytes of these that all ranks together may have

constexpr std::size_t slots_before(std::size_t size) {
  std::size_t n = 0;
  for (std::size_t s = 0; s < size; ++s) n += kSizes[s].slots;
  return n;
}
constexpr std::size_t bytes_before(std::size_t size) {
  std::size_t n = kLine;
  for (std::size_t s = 0; s < size; ++s) n += kSizes[s].slots * kSizes[s].bytes;
  return n;
}
static_assert(slots_before(kLong) + kMostLong == NodeCollectives::kSlots);
/// The smallest slots that hold so much.
std::size_t slot_size_of(std::size_t bytes) {
  std::size_t size = 0;
  while (kSizes[size].bytes < kFlag + bytes) ++size;
  return size;
}
constexpr std::array kSizeBegins{bytes_before(0), bytes_before(1), bytes_before(2), bytes_before(3)};
constexpr std::array kSizeFirst{slots_before(0), slots_before(1), slots_before(2), slots_before(3)};

constexpr int kMeasuredAfter = 100;         // reductions and broadcasts
constexpr std::int64_t kSleep_ns = 50'000;  // at most: other operations and MPI's messages are to go on

using Counter = std::atomic_ref<std::uint64_t>;
static_assert(Counter::is_always_lock_free, "counters are shared by processes");

Counter counter(std::byte* at) {
  return Counter(*reinterpret_cast<std::uint64_t*>(at));
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

std::size_t NodeCollectives::memory_bytes() {
  return bytes_before(kSlotSizes);
}

/// Memory for many of the longest slots, which are in use then; false, on all ranks, when there is none or they
/// would be no more. Collective.
bool NodeCollectives::get_many_slots() {
  const std::size_t suit = second_level_cache() > (1 << 20) ? kMostLong : kManyLong;
  std::size_t many = std::min(suit, kAllLong / kSlotData / static_cast<std::size_t>(ranks_));
  run(Collective::broadcast(reinterpret_cast<std::byte*>(&many), sizeof many, 0));  // cores may differ
  if (many <= kNodeSlots) return false;
  long_memory_ = detail::NodeMemory::make(comm_, spins_, many * kSizes[kLong].bytes);
  if (long_memory_) long_slots_ = many;
  return long_memory_.has_value();
}

/// Slots of this size that are used in turn, the same on all ranks.
std::size_t NodeCollectives::slots_of(std::size_t size) const {
  return size == kLong ? long_slots_ : kSizes[size].slots;
}

/// The words beside the counter of what a rank has ended.
detail::Sleepers NodeCollectives::sleepers_of(int rank) const {
  return detail::Sleepers(memory_.of(rank) + kFlag);
}

/// Has the counter that was found too low come so far?
bool NodeCollectives::is_there() const {
  return counter(awaited_).load(std::memory_order_acquire) >= awaited_stage_;
}

void NodeCollectives::await() {
  for (int spun = 0; spun < spins_; ++spun) {
    if (is_there()) return;
    relax();
  }
  const auto awaited = std::pair(awaited_, awaited_stage_);
  Backoff backoff(0);
  for (int spun = 0; !is_there(); ++spun) {
    const bool awake = backoff.pause_awake();
    if (awaited != std::pair(awaited_, awaited_stage_)) return;  // a call of ours has gone on
    if (!awake) sleepers_of(awaited_rank_).sleep_unless([this] { return is_there(); }, kSleep_ns);
    if (!awake || spun % 64 == 32) move_messages(comm_);  // a rank that we wait for may need one of ours
  }
}

/// Has the counter of a rank come so far? It never goes back.
bool NodeCollectives::has_come(int rank, std::byte* at, std::uint64_t stage) {
  if (counter(at).load(std::memory_order_acquire) >= stage) return true;
  awaited_ = at;
  awaited_rank_ = rank;
  awaited_stage_ = stage;
  return false;
}

/// To be called after a counter of this rank has been set.
void NodeCollectives::wake_others() {
  // Where all have a core sleepers are rare: one may be missed, and the fence would cost as much as the rest.
  spins_ < kSpinsOfOwnCores ? sleepers_of(me_).wake() : sleepers_of(me_).wake_seen();
}

std::byte* NodeCollectives::slot(int rank, const Call& call, std::uint64_t stage) const {
  const std::size_t size = call.slot_size, at = stage % slots_of(size) * kSizes[size].bytes;
  if (size == kLong && long_slots_ > kNodeSlots) return long_memory_->of(rank) + at;
  return memory_.of(rank) + kSizeBegins[size] + at;
}

/// What was published last where the call publishes in a stage.
NodeCollectives::Published& NodeCollectives::published(const Call& call, std::uint64_t stage) {
  return published_[kSizeFirst[call.slot_size] + stage % slots_of(call.slot_size)];
}

/// Have all read it who should?
bool NodeCollectives::is_read(Published& p) {
  for (; p.first != p.last; ++p.first) {
    const std::uint64_t needed = p.base + static_cast<std::uint64_t>(p.first->stage);
    std::uint64_t& known = ended_[static_cast<std::size_t>(p.first->rank)];
    if (all_ended_ >= needed || known >= needed) continue;
    if (!has_come(p.first->rank, memory_.of(p.first->rank), needed)) return false;
    known = needed;
  }
  return true;
}

/// Afterwards nothing is known of schedules that may go.
void NodeCollectives::await_readers() {
  for (Published& p : published_)
    while (!is_read(p)) await();
}

void NodeCollectives::publish(const Call& call, const detail::RankSchedule::Stage& stage) {
  const std::uint64_t number = call.base + call.stage;
  const Reader* const readers = call.schedule->readers.data();
  published(call, number) = {call.base, readers + stage.first_reader, readers + stage.last_reader};
  counter(slot(me_, call, number)).store(number, std::memory_order_release);
  wake_others();
}

/// Have the ranks of a take without bytes come so far?
bool NodeCollectives::meet(Call& call, const detail::RankSchedule::Step& step) {
  for (; step.first_source + call.source < step.last_source; ++call.source) {
    const Source& s = call.schedule->sources[static_cast<std::size_t>(step.first_source + call.source)];
    const std::uint64_t there = call.base + static_cast<std::uint64_t>(s.stage);
    if (!has_come(s.rank, slot(s.rank, call, there), there)) return false;
  }
  call.source = 0;
  return true;
}

/// False, and it is to be called again, while a slot or a source is not ready.
bool NodeCollectives::perform(Call& call, const detail::RankSchedule::Step& step, bool fills) {
  if (step.empty) return meet(call, step);
  const bool of_blocks = call.shape == Shape::gather || call.shape == Shape::scatter;
  // Parts of a vector begin on a line; blocks are apart by their length.
  const auto from_part = [&](int k) {
    if (of_blocks) return static_cast<std::size_t>(k) * call.length;
    if (step.part.of == 1) return k == 0 ? 0 : call.length;
    const auto parts = static_cast<std::size_t>(step.part.of);
    const std::size_t granule = std::max<std::size_t>(1, 64 / std::max<std::size_t>(1, call.element));
    const std::size_t part = ((call.length + parts - 1) / parts + granule - 1) / granule * granule;
    return std::min(call.length, static_cast<std::size_t>(k) * part);
  };
  const std::size_t first = from_part(step.part.first), last = from_part(step.part.last);
  if (first == last) return true;
  const std::uint64_t number = call.base + call.stage;
  if (fills && !is_read(published(call, number))) return false;
  const auto in_users = [&](int block) {
    return of_blocks ? static_cast<std::size_t>(block) * call.count + call.at : (call.at + first) * call.element;
  };
  const std::size_t in_slot = kFlag + first * call.element;
  for (; step.first_source + call.source < step.last_source; ++call.source) {
    const Source& s = call.schedule->sources[static_cast<std::size_t>(step.first_source + call.source)];
    const std::byte*& input = inputs_[static_cast<std::size_t>(call.source)];
    if (s.stage == kOwn) {
      if (!call.mine) return call.source = 0, true;  // in place
      input = call.mine + in_users(step.from_block);
      continue;
    }
    const std::uint64_t there = call.base + static_cast<std::uint64_t>(s.stage);
    std::byte* const at = slot(s.rank, call, there);
    if (s.rank != me_) {
      if (!has_come(s.rank, at, there)) return false;
      std::uint64_t& known = ended_[static_cast<std::size_t>(s.rank)];
      known = std::max(known, there - 1);
    }
    input = at + in_slot;
  }
  const int inputs = call.source;
  call.source = 0;
  if (!fills && !call.result) return true;
  std::byte* const to = fills ? slot(me_, call, number) + in_slot : call.result + in_users(step.to_block);
  if (inputs == 1) {
    if (to != inputs_[0]) std::memcpy(to, inputs_[0], (last - first) * call.element);
  } else {
    const Join* const joins = call.schedule->joins.data();
    call.combine->join({joins + step.first_join, joins + step.last_join},
                       {inputs_.data(), static_cast<std::size_t>(inputs)}, to, last - first);
  }
  return true;
}

bool NodeCollectives::advance(Call& call) {
  for (; call.at < call.count; call.at += call.length) {
    if (call.base == 0) {
      call.length = std::min(call.most, call.count - call.at);
      call.schedule = &schedule_of(call);
      const std::size_t parts = call.shape == Shape::scatter ? static_cast<std::size_t>(ranks_) : 1;
      call.slot_size = slot_size_of(parts * call.length * call.element);
      if (call.slot_size == kLong - 1 && long_slots_ > kSizes[kLong - 1].slots) call.slot_size = kLong;
      call.base = next_;
      next_ += call.schedule->stages.size();
    }
    const detail::RankSchedule& s = *call.schedule;
    while (call.stage < s.stages.size()) {
      const auto& stage = s.stages[call.stage];
      for (; call.step < stage.end || (stage.publishes && !call.published); ++call.step) {
        if (call.step == stage.fills_end && stage.publishes && !call.published) {
          if (!is_read(published(call, call.base + call.stage))) return false;
          publish(call, stage);
          call.published = true;
          if (call.step == stage.end) break;
        }
        if (!perform(call, s.steps[static_cast<std::size_t>(call.step)], call.step < stage.fills_end)) return false;
      }
      counter(memory_.of(me_)).store(call.base + call.stage, std::memory_order_release);
      wake_others();
      ++call.stage;
      call.published = false;
    }
    if (s.meets) all_ended_ = std::max(all_ended_, call.base - 1);
    call.stage = 0;
    call.step = 0;
    call.base = 0;
  }
  return true;
}

void NodeCollectives::complete(Call call, bool may_copy_once) {
  const std::size_t bytes = call.count * call.element;
  if (call.shape <= Shape::broadcast && ++counted_ == kMeasuredAfter && !forced_) set_costs(measure());
  if (!slots_chosen_ && call.shape != Shape::given && bytes > kShort && (long_bytes_ += bytes) > kTrialAfter) {
    choose_slots();
    if (!ways_[0].decided() && (spins_ < kSpinsOfOwnCores || !can_copy_once())) copy_once(false);
  }
  FastestWay* const ways = may_copy_once ? ways_of(call) : nullptr;
  const bool tried = slots_chosen_ && ways && !ways->decided();
  const double start = tried ? MPI_Wtime() : 0;
  if (ways && ways->way() == 1 && (call.at = copied_once(call)) < call.count) copy_once(false);
  while (!advance(call)) await();
  if (tried) ways->took(largest(MPI_Wtime() - start));  // so all ranks decide alike
}

}  // namespace isohalo
