#pragma once
/// The messages of HDF5 object headers that checkpoints use, decoded with every length checked. Private to
/// framework/io. Source: HDF5 File Format Specification, version 3.0, section IV.A.2.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isohalo::detail {

constexpr std::uint64_t kNoAddress = ~std::uint64_t{0};

/// Bytes with a position; reading beyond the end throws UsageError.
class ByteCursor {
 public:
  /// `place`: the file's byte at which they begin, for messages.
  ByteCursor(std::span<const std::uint8_t> bytes, std::uint64_t place) : bytes_(bytes), place_(place) {}

  std::uint64_t number(int bytes);  ///< little-endian, 1 to 8 bytes
  std::span<const std::uint8_t> take(std::uint64_t bytes);
  void skip(std::uint64_t bytes) { take(bytes); }
  std::size_t left() const { return bytes_.size() - at_; }
  std::size_t position() const { return at_; }
  /// The next `bytes` as a cursor of their own.
  ByteCursor part(std::uint64_t bytes);
  /// Throws UsageError "at byte N: WHAT".
  [[noreturn]] void refuse(const std::string& what) const;
  void expect(bool good, const char* what) const {
    if (!good) refuse(what);
  }
  /// The next bytes must be these.
  void expect_bytes(std::string_view expected, const char* what);

 private:
  std::span<const std::uint8_t> bytes_;
  std::uint64_t place_;
  std::size_t at_ = 0;
};

struct StoredSpace {
  std::vector<std::uint64_t> extents;
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

/// What the messages of an object's header say of it.
struct StoredObject {
  bool is_group = false, heap_of_links = false;
  std::optional<StoredSpace> space;
  std::optional<StoredDatatype> type;
  std::optional<StoredLayout> layout;
  std::uint64_t fill_bytes = 0;                ///< of the fill value; 0 without one
  std::map<std::string, std::uint64_t> links;  ///< name to address
  std::set<std::string> attributes;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;  ///< of the header: address, bytes
};

/// Adds what a message of this kind says. Throws UsageError for one that no checkpoint has.
void decode_message(std::uint64_t kind, ByteCursor& in, StoredObject& object);

/// a * b, refusing more than 2^53.
std::uint64_t checked_product(const ByteCursor& in, std::uint64_t a, std::uint64_t b);

}  // namespace isohalo::detail
