#pragma once
/// Is a file built the way our checkpoints are? Asked before HDF5 sees it.
///
/// HDF5 checks checksums, so damage is found; but HDF5 1.10 trusts what a matching checksum covers: forged sizes
/// and addresses can make it read beyond its buffers. Checkpoints use little of HDF5 (docs/checkpoints.md;
/// superblock version 2, object headers version 2, hard links, fixed-point, floating-point and fixed-length string
/// types, data in one run or in unfiltered chunks), and that part is easy to check in full. Source: HDF5 File
/// Format Specification, version 3.0.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace isohalo {

/// Reads the metadata of a file, not its data, and throws UsageError, naming file, byte and reason, unless every
/// size and address in it fits the file and every object is of a kind that a checkpoint has. More than 8 fields
/// make HDF5 keep their names in a heap; what lies behind that heap is not checked. Returns the bytes that the file
/// has beyond its end as HDF5 knows it: nobody looks at them. Local.
std::int64_t check_file_structure(const std::filesystem::path& file);

namespace detail {

/// The bytes of a file, wherever they are.
struct ByteSource {
  std::int64_t size = 0;
  /// Fills `to` from byte `at`; only asked for bytes that exist.
  std::function<void(std::int64_t at, std::span<std::uint8_t> to)> read;
};

/// A run of bytes that ends with its checksum, as found; `sum` is what the last four bytes should be.
struct ChecksummedBlock {
  std::int64_t from = 0, bytes = 0;
  std::uint32_t sum = 0;
};

/// The same check. With `on_block`, wrong checksums are no error: it is called for each block instead, so that they
/// can be made right. Throws UsageError.
std::int64_t check_structure(const ByteSource& source,
                             const std::function<void(const ChecksummedBlock&)>& on_block = {});

/// Bob Jenkins' lookup3 ("hashlittle", initial value 0), the checksum of HDF5's metadata.
std::uint32_t metadata_checksum(std::span<const std::uint8_t> bytes);

}  // namespace detail

}  // namespace isohalo
