#pragma once
/// Memory that other processes of the node can map, without any of them taking part when it is made or freed.

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace isohalo {

/// Names a place in shared memory to other processes of the node. Plain bytes, to be sent.
struct SharedAddress {
  std::int64_t process = 0, descriptor = 0, device = 0, inode = 0;  ///< where the system finds the memory
  std::int64_t serial = 0;                                          ///< in its process; never used twice
  std::int64_t bytes = 0;                                           ///< of the whole memory
  std::int64_t offset = 0;                                          ///< of the place
};

namespace detail {
/// Zeroed, on a page of its own. Throws std::bad_alloc.
void* shared_allocate(std::size_t bytes);
void shared_free(void* memory) noexcept;
/// From now on nobody else can map it; who has, keeps it. Its file descriptor is free for others.
void shared_close(void* memory) noexcept;
}  // namespace detail

/// Owns zeroed memory that begins on a page. Where the system offers no anonymous shared files (it needs Linux'
/// memfd_create and a file-size limit above `bytes`) the memory is this process's own, and nobody can map it.
/// Move-only. Local, without MPI.
class SharedMemory {
 public:
  SharedMemory() = default;
  /// Throws std::bad_alloc.
  explicit SharedMemory(std::size_t bytes) : data_(static_cast<std::byte*>(detail::shared_allocate(bytes))) {}
  SharedMemory(SharedMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~SharedMemory() { detail::shared_free(data_); }

  std::byte* data() const { return data_; }
  /// Nobody else can map it from now on; those who have keep it. Frees a file descriptor.
  void close() { detail::shared_close(data_); }

  /// Sets `address` and returns true when `place` lies in memory of this process that others can map. Thread safe.
  static bool find(const void* place, SharedAddress& address);

 private:
  std::byte* data_ = nullptr;
};

/// An allocator whose memory other ranks of the node can map, for `std::vector<double, SharedAllocator<double>>`:
/// the exchange `shared` then writes whole rows straight into the ghosts of such an array. Use it for large arrays:
/// each allocation takes pages of its own and a file descriptor.
template <class T>
struct SharedAllocator {
  using value_type = T;
  SharedAllocator() = default;
  template <class U>
  SharedAllocator(const SharedAllocator<U>&) noexcept {}

  T* allocate(std::size_t n) {
    if (n > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(detail::shared_allocate(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t) noexcept { detail::shared_free(p); }
  friend bool operator==(const SharedAllocator&, const SharedAllocator&) { return true; }
};

/// Another process's shared memory, mapped into this one. Move-only. It stays valid when the owner frees its own.
class MappedMemory {
 public:
  MappedMemory() = default;
  /// Not `mapped` when the system refuses or the memory is gone.
  explicit MappedMemory(const SharedAddress& address);
  MappedMemory(MappedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedMemory();

  bool mapped() const { return data_ != nullptr; }
  /// The first byte of the whole memory.
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace isohalo
