#include "framework/shm/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>

namespace isohalo {

namespace {

struct Block {
  std::size_t bytes = 0;
  int descriptor = -1;  ///< -1: nobody else can map it
  SharedAddress address{};
};

/// Every block of the process, by its first byte.
struct Blocks {
  std::mutex mutex;
  std::map<std::uintptr_t, Block> live;
  std::int64_t last_serial = 0;
};

Blocks& blocks() {
  static Blocks* const b = new Blocks;  // never destroyed: static objects may free memory later
  return *b;
}

/// An anonymous file of `bytes` bytes, or -1. Its pages are not reserved: they are memory like any other, whatever
/// room /dev/shm has, and to reserve them here would make them small ones.
int anonymous_file(std::size_t bytes) {
  rlimit limit{};
  // Beyond this limit the system would send a signal.
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes))
    return -1;
  const int file = memfd_create("isohalo", MFD_CLOEXEC);
  if (file < 0) return -1;
  // Others of this user map it by its number; it begins with all rights for everybody.
  if (fchmod(file, S_IRUSR | S_IWUSR) == 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
  close(file);
  return -1;
}

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes / page * page + page;
}

}  // namespace

namespace detail {

void* shared_allocate(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(-1) / 2) throw std::bad_alloc();
  Block block{whole_pages(bytes), -1, {}};
  block.descriptor = anonymous_file(block.bytes);
  const int flags = block.descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const memory = mmap(nullptr, block.bytes, PROT_READ | PROT_WRITE, flags, block.descriptor, 0);
  struct stat file {};
  if (memory == MAP_FAILED || (block.descriptor >= 0 && fstat(block.descriptor, &file) != 0)) {
    if (block.descriptor >= 0) close(block.descriptor);
    throw std::bad_alloc();
  }
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  block.address = {static_cast<std::int64_t>(getpid()),
                   block.descriptor,
                   static_cast<std::int64_t>(file.st_dev),
                   static_cast<std::int64_t>(file.st_ino),
                   ++all.last_serial,
                   static_cast<std::int64_t>(block.bytes),
                   0};
  all.live.emplace(reinterpret_cast<std::uintptr_t>(memory), block);
  return memory;
}

void shared_free(void* memory) noexcept {
  if (!memory) return;
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  const auto it = all.live.find(reinterpret_cast<std::uintptr_t>(memory));
  if (it == all.live.end()) return;
  munmap(memory, it->second.bytes);
  if (it->second.descriptor >= 0) close(it->second.descriptor);
  all.live.erase(it);
}

void shared_close(void* memory) noexcept {
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  const auto it = all.live.find(reinterpret_cast<std::uintptr_t>(memory));
  if (it != all.live.end() && it->second.descriptor >= 0) close(std::exchange(it->second.descriptor, -1));
}

}  // namespace detail

bool SharedMemory::find(const void* place, SharedAddress& address) {
  const auto at = reinterpret_cast<std::uintptr_t>(place);
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  auto it = all.live.upper_bound(at);
  if (it == all.live.begin()) return false;
  --it;
  if (it->second.descriptor < 0 || at - it->first >= it->second.bytes) return false;
  address = it->second.address;
  address.offset = static_cast<std::int64_t>(at - it->first);
  return true;
}

MappedMemory::MappedMemory(const SharedAddress& address) {
  const std::string name = "/proc/" + std::to_string(address.process) + "/fd/" + std::to_string(address.descriptor);
  const int file = open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  struct stat found {};
  // With process numbers of their own, as in containers, the name may mean another process's file.
  if (fstat(file, &found) == 0 && static_cast<std::int64_t>(found.st_dev) == address.device &&
      static_cast<std::int64_t>(found.st_ino) == address.inode && found.st_size == address.bytes) {
    const auto bytes = static_cast<std::size_t>(address.bytes);
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) data_ = static_cast<std::byte*>(memory), bytes_ = bytes;
  }
  close(file);
}

MappedMemory::~MappedMemory() {
  if (data_) munmap(data_, bytes_);
}

}  // namespace isohalo
