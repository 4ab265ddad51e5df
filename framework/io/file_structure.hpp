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
#include <span>
#include <string>
#include <vector>

namespace isohalo {

/// Reads the metadata of a file, not its data, and throws UsageError, naming file, byte and reason, unless every
/// size and address in it fits the file and every object is of a kind that a checkpoint has. More than 8 fields
/// make HDF5 keep their names in a heap; what lies behind that heap is not checked. Local.
void check_file_structure(const std::filesystem::path& file);

/// The same, and what in the file is part of nothing, a line each: bytes that are not 0 in the gaps, and whatever
/// follows the last structure. Behind a heap only what follows the end as HDF5 knows it. Local.
std::vector<std::string> stray_bytes(const std::filesystem::path& file);

namespace detail {

/// Bob Jenkins' lookup3 ("hashlittle", initial value 0), the checksum of HDF5's metadata.
std::uint32_t metadata_checksum(std::span<const std::uint8_t> bytes);

}  // namespace detail

}  // namespace isohalo
