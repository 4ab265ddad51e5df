#pragma once
/// Streaming access to a field of a checkpoint, whatever its rank count: pieces of consecutive cells.

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/io/hdf5.hpp"
#include "framework/io/readable.hpp"

namespace isohalo {

/// Consecutive cells of a field of shape `extents.size()` dimensions: a box in index order.
struct Piece {
  std::int64_t first = 0, cells = 0;  ///< linear index of the first cell, number of cells
  std::vector<hsize_t> start, extents;
};

/// Cuts a field into such pieces, at most `most` cells each (a row may be cut, too): runs along the first dimension
/// whose slices are small enough, one index in the dimensions before it. They depend on the shape alone.
class Pieces {
 public:
  Pieces(const std::vector<std::int64_t>& shape, std::int64_t most);
  std::int64_t count() const { return outer_ * runs_; }
  Piece piece(std::int64_t p) const;
  /// The first piece of this rank's share, of `size` nearly equal ones.
  std::int64_t share(int rank, int size) const { return count() * rank / size; }

 private:
  std::int64_t slice() const;
  std::vector<std::int64_t> shape_;
  std::size_t along_ = 0;
  std::int64_t run_ = 1, runs_ = 1, outer_ = 1;
};

/// Reads that box of a dataset by HDF5, as numbers of `type`. Local. Throws as h5_check does, naming `place`.
void read_piece(const H5Handle& set, hid_t type, const Piece& piece, void* out, const std::string& place);

/// Value number `k` of unaligned memory.
template <class T>
T load(const char* data, std::int64_t k) {
  T value;
  std::memcpy(&value, data + k * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

/// One field of a file, opened by the calling rank alone. Throws Error naming the file.
class FieldReader {
 public:
  FieldReader(const std::filesystem::path& file, const std::string& field);
  FieldReader(const FieldReader&) = delete;
  FieldReader& operator=(const FieldReader&) = delete;
  ~FieldReader() { unmap(); }

  /// The cells of a piece, `bytes` each and not aligned (see `load`), until the next call. Where the data lies in
  /// one run of the file they are seen in the page cache, through a window of a few MiB, which is up to twice as
  /// fast as a copy; other layouts are read by HDF5 into a buffer.
  const char* view(const Piece& piece, std::size_t bytes);
  /// Copies a piece, `bytes` per cell, into `out`: by plain reads, or by HDF5.
  void read(const Piece& piece, std::size_t bytes, char* out) const;
  /// Where the data begins in the file, -1 when it does not lie in one run.
  std::int64_t offset() const { return offset_; }

 private:
  const char* window(std::int64_t from, std::int64_t bytes);
  void unmap() noexcept;

  std::string file_name_;
  H5Handle file_, set_;
  std::optional<ReadableFile> bytes_;  // when the data lies in one run
  std::int64_t offset_ = -1;
  std::vector<char> buffer_;
  char* map_ = nullptr;  // bytes map_from_ .. map_to_ of the file
  std::int64_t map_from_ = 0, map_to_ = 0;
};

}  // namespace isohalo
