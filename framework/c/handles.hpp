#pragma once
/// Handles of the C interface: values that are checked before they are followed, so that a handle used after it was
/// freed is an error and not a crash; and the way of errors to the caller's error handler.

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/neighborhood/neighbor_call.hpp"

namespace isohalo::detail {

/// Objects behind handles of type H. A handle is the object's place in the table with a generation number, in the
/// clothes of a pointer; it is never NULL.
template <class T, class H>
class HandleTable {
 public:
  H add(std::unique_ptr<T> object) {
    std::size_t place = 0;
    if (free_.empty()) {
      place = entries_.size();
      entries_.emplace_back();
    } else {
      place = free_.back();
      free_.pop_back();
    }
    Entry& e = entries_[place];
    e.object = std::move(object);
    return reinterpret_cast<H>((++e.generation << kPlaceBits) | (place + 1));
  }

  /// The object, nullptr when the handle is none or was freed.
  T* find(H handle) const {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    const std::uintptr_t place = value & ((std::uintptr_t{1} << kPlaceBits) - 1);
    if (place == 0 || place > entries_.size()) return nullptr;
    const Entry& e = entries_[place - 1];
    return e.generation == value >> kPlaceBits ? e.object.get() : nullptr;
  }

  std::unique_ptr<T> take(H handle) {
    if (!find(handle)) return nullptr;
    const std::size_t place =
        (reinterpret_cast<std::uintptr_t>(handle) & ((std::uintptr_t{1} << kPlaceBits) - 1)) - 1;
    free_.push_back(place);
    return std::move(entries_[place].object);
  }

 private:
  static constexpr int kPlaceBits = 24;
  struct Entry {
    std::unique_ptr<T> object;
    std::uintptr_t generation = 0;
  };
  std::vector<Entry> entries_;
  std::vector<std::size_t> free_;
};

/// The latest of a kind that were freed on this rank: others may still use them.
template <class Former, class H>
class FreedTable {
 public:
  void add(H handle, Former former) {
    if (list_.size() == kMost) list_.pop_front();
    list_.emplace_back(handle, std::move(former));
  }
  const Former* find(H handle) const {
    const auto found = std::find_if(list_.begin(), list_.end(), [&](const auto& f) { return f.first == handle; });
    return found == list_.end() ? nullptr : &found->second;
  }
  /// A communicator with the error handler for it; MPI_COMM_NULL when none is known.
  MPI_Comm user(H handle) const {
    const Former* former = find(handle);
    const auto comm = former ? former->comm().find() : std::nullopt;
    return comm ? comm->user() : MPI_COMM_NULL;
  }

 private:
  static constexpr std::size_t kMost = 64;
  std::deque<std::pair<H, Former>> list_;
};

/// Runs `find`, which throws for a handle that is none; when it was freed here, `refuse(former, error)` tells the
/// ranks that have not freed it.
template <class Find, class Former, class H, class Refuse>
decltype(auto) found_or_refused(Find&& find, const FreedTable<Former, H>& freed, H handle, Refuse&& refuse) {
  try {
    return find();
  } catch (const ArgumentError& e) {
    if (const Former* former = freed.find(handle)) refuse(*former, e);
    throw;
  }
}

/// Keeps the text for isohalo_error_text, calls the error handler of `comm` unless it is MPI_COMM_NULL (printing
/// the text first when that handler ends the program), and returns `code`.
int report(MPI_Comm comm, int code, const char* text);

/// Runs `f` and turns what it throws into a reported code. `comm` is asked for after the fact, because some
/// functions know it only then.
template <class F, class Comm>
int guarded(Comm&& comm, F&& f) {
  try {
    require_mpi();
    f();
    return MPI_SUCCESS;
  } catch (...) {
    const ArgumentError e = current_argument_error();
    return report(mpi_is_active() ? comm() : MPI_COMM_NULL, e.mpi_class(), e.what());
  }
}

inline void require(bool ok, int mpi_class, const char* text) {
  if (!ok) throw ArgumentError(mpi_class, text);
}

}  // namespace isohalo::detail
