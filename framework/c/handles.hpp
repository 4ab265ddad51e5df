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

inline void require(bool ok, int mpi_class, const char* text) {
  if (!ok) throw ArgumentError(mpi_class, text);
}

/// Objects behind handles of type H; T has `MPI_Comm user() const`, a communicator with the error handler for it. A
/// handle is the object's place in the table with a generation number, in the clothes of a pointer; it is never
/// NULL.
template <class T, class H>
class HandleTable {
 public:
  /// `mpi_class`, `unknown`: the error when a handle is none, or was freed.
  HandleTable(int mpi_class, const char* unknown) : mpi_class_(mpi_class), unknown_(unknown) {}

  H add(std::unique_ptr<T> object) {
    if (free_.empty()) {
      free_.push_back(entries_.size());
      entries_.emplace_back();
    }
    const std::size_t place = free_.back();
    free_.pop_back();
    Entry& e = entries_[place];
    e.object = std::move(object);
    return reinterpret_cast<H>((++e.generation << kPlaceBits) | (place + 1));
  }

  /// The object, nullptr when the handle is none or was freed.
  T* find(H handle) const {
    const std::size_t place = place_of(handle);
    if (place >= entries_.size()) return nullptr;
    const Entry& e = entries_[place];
    return e.generation == reinterpret_cast<std::uintptr_t>(handle) >> kPlaceBits ? e.object.get() : nullptr;
  }
  T& known(H handle) const {
    T* const found = find(handle);
    require(found, mpi_class_, unknown_);
    return *found;
  }
  /// MPI_COMM_NULL when none is known.
  MPI_Comm user(H handle) const {
    const T* const found = find(handle);
    return found ? found->user() : MPI_COMM_NULL;
  }
  std::unique_ptr<T> take(H handle) {
    known(handle);
    free_.push_back(place_of(handle));
    return std::move(entries_[place_of(handle)].object);
  }

 private:
  static constexpr int kPlaceBits = 24;
  struct Entry {
    std::unique_ptr<T> object;
    std::uintptr_t generation = 0;
  };
  /// Of NULL one that no object has.
  static std::size_t place_of(H handle) {
    return (reinterpret_cast<std::uintptr_t>(handle) & ((std::uintptr_t{1} << kPlaceBits) - 1)) - 1;
  }

  int mpi_class_;
  const char* unknown_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> free_;
};

/// Keeps the text for isohalo_error_text, calls the error handler of `comm` unless it is MPI_COMM_NULL (printing
/// the text first when that handler ends the program), and returns `code`.
int report(MPI_Comm comm, int code, const char* text);

/// Runs `f` and turns what it throws into a code, reported to the error handler of `comm`.
template <class F>
int guarded(MPI_Comm comm, F&& f) {
  try {
    require_mpi();
    f();
    return MPI_SUCCESS;
  } catch (...) {
    const ArgumentError e = current_argument_error();
    return report(mpi_is_usable() ? comm : MPI_COMM_NULL, e.mpi_class(), e.what());
  }
}

/// The same for f(object), with the object behind a handle.
template <class T, class H, class F>
int guarded(const HandleTable<T, H>& table, H handle, F&& f) {
  return guarded(table.user(handle), [&] { f(table.known(handle)); });
}

/// Sets *place to NULL and frees the object behind that handle after f(object).
template <class T, class H, class F>
int freed(HandleTable<T, H>& table, H* place, F&& f) {
  const H handle = place ? *place : nullptr;
  std::unique_ptr<T> last;  // lives until its error has been reported to the error handler of its communicator
  return guarded(table.user(handle), [&] {
    require(place, MPI_ERR_ARG, "the place of the handle is NULL");
    last = table.take(handle);
    *place = nullptr;
    f(*last);
  });
}

}  // namespace isohalo::detail
