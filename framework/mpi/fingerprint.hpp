#pragma once
/// One number for many, to find out whether ranks hold the same.

#include <cstdint>

namespace isohalo {

/// The order counts. 64 bits: not for adversaries.
class Fingerprint {
 public:
  template <class T>
  Fingerprint& add(T number) {
    value_ = (value_ ^ static_cast<std::uint64_t>(number)) * 0x100000001b3u;  // FNV-1a, a number at a time
    value_ ^= value_ >> 29;                                                   // high bits reach the low ones
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace isohalo
