#pragma once
/// The messages of HDF5 object headers that checkpoints use, decoded with every length checked. Private to
/// framework/io. Source: HDF5 File Format Specification, version 3.0, section IV.A.2.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace isohalo::detail {

constexpr std::uint64_t kNoAddress = ~std::uint64_t{0};

/// Bytes with a position; reading beyond the end throws UsageError.
class ByteCursor {
 public:
  /// `place`: the file's byte at which they begin, for messages.
  ByteCursor(std::span<const std::uint8_t> bytes, std::int64_t place) : bytes_(bytes), place_(place) {}

  std::uint64_t number(int bytes);  ///< little-endian, 1 to 8 bytes
  std::span<const std::uint8_t> take(std::uint64_t bytes);
  void skip(std::uint64_t bytes) { take(bytes); }
  std::size_t left() const { return bytes_.size() - at_; }
  std::size_t position() const { return at_; }
  /// The next `bytes` as a cursor of their own.
  ByteCursor part(std::uint64_t bytes);
  std::int64_t place() const { return place_ + static_cast<std::int64_t>(at_); }
  /// "at byte N: WHAT".
  [[noreturn]] void refuse(const std::string& what) const;
  void expect(bool good, const char* what) const {
    if (!good) refuse(what);
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::int64_t place_;
  std::size_t at_ = 0;
};

struct StoredSpace {
  std::vector<std::uint64_t> extents;
  bool null = false;
  std::uint64_t elements = 1;  ///< at most 2^53
};

struct StoredDatatype {
  int kind = 0;  ///< 0 fixed point, 1 floating point, 3 string
  std::uint64_t bytes = 0;
};

struct StoredLayout {
  enum class Kind { compact, contiguous, chunked } kind = Kind::compact;
  std::uint64_t address = kNoAddress;  ///< of the data, or of the tree of chunks
  std::uint64_t bytes = 0;             ///< of compact and contiguous data
  std::vector<std::uint64_t> chunk;    ///< extents of a chunk, then bytes of an element
};

struct StoredLink {
  std::string name;
  std::uint64_t address = kNoAddress;
};

/// Each decodes one message and throws UsageError for one that no checkpoint has.
StoredSpace decode_space(ByteCursor& in);
StoredDatatype decode_datatype(ByteCursor& in);
StoredLayout decode_layout(ByteCursor& in);
StoredLink decode_link(ByteCursor& in);
/// The bytes of the fill value; 0 without one.
std::uint64_t decode_fill(ByteCursor& in);
std::uint64_t decode_old_fill(ByteCursor& in);
/// The attribute's name.
std::string decode_attribute(ByteCursor& in);
/// Is there a heap of links? Only its address is looked at.
bool decode_link_info(ByteCursor& in);
void decode_group_info(ByteCursor& in);
void decode_attribute_info(ByteCursor& in);

/// a * b, refusing more than 2^53.
std::uint64_t checked_product(const ByteCursor& in, std::uint64_t a, std::uint64_t b);

}  // namespace isohalo::detail
