#include "framework/io/field_reader.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace isohalo {

namespace {
constexpr std::int64_t kPage = 65536;  // a multiple of every page size in use
constexpr std::int64_t kWindow = std::int64_t{8} << 20;
}  // namespace

Pieces::Pieces(const std::vector<std::int64_t>& shape, std::int64_t most) : shape_(shape) {
  while (along_ + 1 < shape.size() && slice() > most) ++along_;
  run_ = std::clamp<std::int64_t>(most / slice(), 1, shape[along_]);
  runs_ = (shape[along_] + run_ - 1) / run_;
  for (std::size_t j = 0; j < along_; ++j) outer_ *= shape[j];
}

Piece Pieces::piece(std::int64_t p) const {
  Piece c;
  c.start.assign(shape_.size(), 0);
  c.extents.assign(shape_.begin(), shape_.end());
  std::int64_t rest = p / runs_;
  for (std::size_t j = along_; j-- > 0; rest /= shape_[j]) {
    c.start[j] = static_cast<hsize_t>(rest % shape_[j]);
    c.extents[j] = 1;
  }
  const std::int64_t from = p % runs_ * run_, to = std::min(from + run_, shape_[along_]);
  c.start[along_] = static_cast<hsize_t>(from);
  c.extents[along_] = static_cast<hsize_t>(to - from);
  c.first = (p / runs_ * shape_[along_] + from) * slice();
  c.cells = (to - from) * slice();
  return c;
}

std::int64_t Pieces::slice() const {
  std::int64_t n = 1;
  for (std::size_t j = along_ + 1; j < shape_.size(); ++j) n *= shape_[j];
  return n;
}

void read_piece(const H5Handle& set, hid_t type, const Piece& piece, void* out, const std::string& place) {
  const hsize_t *const start = piece.start.data(), *const extents = piece.extents.data();
  const H5Handle from = h5_own(H5Dget_space(set.get()), place);
  h5_check(H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, start, nullptr, extents, nullptr), place);
  const H5Handle to = h5_own(H5Screate_simple(static_cast<int>(piece.extents.size()), extents, nullptr), place);
  h5_check(H5Dread(set.get(), type, to.get(), from.get(), H5P_DEFAULT, out), place);
}

FieldReader::FieldReader(const std::filesystem::path& file, const std::string& field)
    : file_name_(file.string()),
      file_(h5_own(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open " + file.string())),
      set_(naming(file, [&] { return open_object(file_.get(), "fields/" + field, H5I_DATASET); })) {
  const haddr_t at = H5Dget_offset(set_.get());  // undefined unless contiguous, allocated and in this file
  if (at == HADDR_UNDEF) {
    H5Eclear2(H5E_DEFAULT);
    return;
  }
  bytes_.emplace(file);
  offset_ = static_cast<std::int64_t>(at);
}

void FieldReader::unmap() noexcept {
  if (map_) munmap(map_, static_cast<std::size_t>(map_to_ - map_from_));
  map_ = nullptr;
}

const char* FieldReader::window(std::int64_t from, std::int64_t bytes) {
  from += offset_;
  if (!map_ || from < map_from_ || from + bytes > map_to_) {
    unmap();
    // Beyond the end of a file a mapping is a fatal signal, so a file that has shrunk is found here.
    const std::int64_t size = bytes_->size();
    if (size < from + bytes) throw UsageError(file_name_ + ": it ends within its data");
    map_from_ = from / kPage * kPage;
    map_to_ = std::min<std::int64_t>(std::max(map_from_ + kWindow, from + bytes), size);
    void* const at = mmap(nullptr, static_cast<std::size_t>(map_to_ - map_from_), PROT_READ,
                          MAP_SHARED | MAP_POPULATE, bytes_->descriptor(), static_cast<off_t>(map_from_));
    if (at == MAP_FAILED) throw RunError(file_name_ + " cannot be mapped: " + reason());
    map_ = static_cast<char*>(at);
  }
  return map_ + (from - map_from_);
}

const char* FieldReader::view(const Piece& piece, std::size_t bytes) {
  const auto size = piece.cells * static_cast<std::int64_t>(bytes);
  if (bytes_) return window(piece.first * static_cast<std::int64_t>(bytes), size);
  buffer_.resize(static_cast<std::size_t>(size));
  read(piece, bytes, buffer_.data());
  return buffer_.data();
}

void FieldReader::read(const Piece& piece, std::size_t bytes, char* out) const {
  const auto size = static_cast<std::int64_t>(bytes);
  if (bytes_) return bytes_->read(offset_ + piece.first * size, out, static_cast<std::size_t>(piece.cells * size));
  read_piece(set_, h5_own(H5Dget_type(set_.get()), file_name_).get(), piece, out, file_name_);
}

}  // namespace isohalo
