#pragma once
/// Sleeping until another rank of the compute node has stored something. Private to framework/shm.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace isohalo::detail {

/// Two words in shared memory, zero at first: how often sleepers were called, and how many there are.
class Sleepers {
 public:
  static constexpr std::size_t kBytes = 8;
  /// `words`: kBytes, on a boundary of 4.
  explicit Sleepers(std::byte* words) : words_(words) {}

  /// Sleeps until a rank calls `wake`, for `timeout_ns` at most, unless `ready()` is true after this rank has said
  /// that it sleeps. May wake up for nothing. Local.
  template <class Ready>
  void sleep_unless(const Ready& ready, std::int64_t timeout_ns) {
    const std::uint32_t before = calls().load();
    sleepers().fetch_add(1);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!ready()) sleep(before, timeout_ns);
    sleepers().fetch_sub(1);
  }
  /// To be called once what others may sleep for has been stored. A system call only when somebody sleeps. Local.
  void wake() {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // what was stored is visible before we look for sleepers
    wake_seen();
  }
  /// The same without a fence: may miss one that is just about to sleep, who then wakes up when its time is over.
  void wake_seen() {
    if (sleepers().load(std::memory_order_relaxed) > 0) call();
  }

 private:
  using Word = std::atomic_ref<std::uint32_t>;
  static_assert(Word::is_always_lock_free, "the words are shared by processes");
  std::uint32_t& word(int k) const { return reinterpret_cast<std::uint32_t*>(words_)[k]; }
  Word calls() const { return Word(word(0)); }
  Word sleepers() const { return Word(word(1)); }
  void sleep(std::uint32_t calls_before, std::int64_t timeout_ns);
  void call();

  std::byte* words_;
};

}  // namespace isohalo::detail
