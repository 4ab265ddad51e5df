#pragma once
/// Copies out of the memory of another process, where the system allows that. Private to framework/shm.

#include <cstddef>
#include <cstdint>

namespace isohalo::detail {

/// Where something lies in the memory of a process.
struct ProcessAddress {
  std::int64_t process = 0;
  const std::byte* at = nullptr;

  /// In this process.
  static ProcessAddress of(const std::byte* at);
  ProcessAddress and_further(std::size_t bytes) const { return {process, at + bytes}; }
  /// The bytes from there on to `to`. False where the system refuses, or has no such call (Linux has it): then some
  /// of them may have come. Local.
  bool copy(std::byte* to, std::size_t bytes) const;
};

}  // namespace isohalo::detail
