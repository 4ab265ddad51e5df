/// Long vectors, read from where they lie in another process. Who is read from has to wait for that, so ranks that
/// outnumber the cores do not do it.

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "framework/shm/collectives.hpp"

namespace isohalo {

/// Of this call; null: by slots.
FastestWay* NodeCollectives::ways_of(const Call& call) {
  const bool gathers = call.shape == Shape::gather && call.root < 0;
  if (!gathers && (forced_ || call.shape != Shape::broadcast)) return nullptr;
  const std::size_t bytes = call.count * (gathers ? static_cast<std::size_t>(ranks_) : 1);
  const auto bits = static_cast<std::size_t>(std::bit_width(bytes));
  if (bits <= kOnceFrom) return nullptr;
  return &ways_[gathers * kOnceLengths + std::min(bits - 1 - kOnceFrom, kOnceLengths - 1)];
}

/// Can all ranks read each other's memory? Collective.
bool NodeCollectives::can_copy_once() {
  // Numbers that no other process has there, should ranks have process numbers of their own.
  const std::uint64_t token = std::random_device()() | std::uint64_t{std::random_device()()} << 32;
  struct Word {
    detail::ProcessAddress place;
    std::uint64_t value;
  } const mine{detail::ProcessAddress::of(reinterpret_cast<const std::byte*>(&token)), token};
  std::vector<Word> words(static_cast<std::size_t>(ranks_));
  allgather(reinterpret_cast<const std::byte*>(&mine), sizeof mine, reinterpret_cast<std::byte*>(words.data()));
  const bool refused = std::any_of(words.begin(), words.end(), [](const Word& w) {
    std::uint64_t read = 0;
    return !w.place.copy(reinterpret_cast<std::byte*>(&read), sizeof read) || read != w.value;
  });
  return largest(refused) == 0;
}

void NodeCollectives::copy_once(bool once) {
  std::fill(ways_.begin(), ways_.end(), FastestWay::decided_for(once && can_copy_once() ? 1 : 0));
}

/// The largest number of all ranks. Collective.
double NodeCollectives::largest(double mine) {
  numbers_.resize(static_cast<std::size_t>(ranks_));
  allgather(reinterpret_cast<const std::byte*>(&mine), sizeof mine, reinterpret_cast<std::byte*>(numbers_.data()));
  return *std::max_element(numbers_.begin(), numbers_.end());
}

/// False, on all ranks, when one of them could not read: then it is to be done by slots. All have read when it
/// ends.
bool NodeCollectives::copied_once(const Call& call) {
  const bool gathers = call.shape == Shape::gather;
  const auto me = static_cast<std::size_t>(me_), n = static_cast<std::size_t>(ranks_);
  std::byte* const in_place = gathers ? call.result + me * call.count : call.result;
  const auto own = detail::ProcessAddress::of(call.mine);
  places_.resize(n);
  auto* const places = reinterpret_cast<std::byte*>(places_.data());
  bool read = true;
  if (gathers) {
    allgather(reinterpret_cast<const std::byte*>(&own), sizeof own, places);
    if (own.at != in_place) std::memcpy(in_place, own.at, call.count);
    for (std::size_t k = 1; k < n; ++k) {  // not all from the same one at the same time
      const std::size_t from = (me + k) % n;
      read = read && places_[from].copy(call.result + from * call.count, call.count);
    }
  } else {
    places_[0] = own;
    broadcast(places, sizeof own, call.root);
    read = me_ == call.root || places_[0].copy(call.result, call.count);
  }
  return largest(!read) == 0;
}

}  // namespace isohalo
