#pragma once
/// Handles of the C interface: values that are checked before they are followed, so that a handle used after it was
/// freed is an error and not a crash; and the way of errors to the caller's error handler.

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
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
