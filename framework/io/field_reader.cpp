#include "framework/io/field_reader.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "datatypes/error.hpp"

namespace isohalo {

namespace {
constexpr std::int64_t kPage = 65536;  // a multiple of every page size in use
constexpr std::int64_t kWindow = std::int64_t{8} << 20;
}  // namespace

std::size_t type_bytes(const std::string& type) {
  return type == "float64" ? 8 : type == "float32" ? 4 : type == "uint8" ? 1 : 0;
}

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

FieldReader::FieldReader(const std::filesystem::path& file, const std::string& field)
    : file_name_(file.string()),
      file_(h5_own(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open " + file.string())),
      set_(open_dataset(file_.get(), "fields/" + field)) {
  if (!set_) throw UsageError(file_name_ + ": field " + field + " cannot be opened");
  type_ = h5_own(H5Dget_type(set_.get()), file_name_ + ": field " + field);
  const haddr_t at = H5Dget_offset(set_.get());  // undefined unless contiguous, allocated and in this file
  if (at == HADDR_UNDEF) {
    H5Eclear2(H5E_DEFAULT);
    return;
  }
  descriptor_ = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0)
    throw UsageError(file_name_ + " cannot be opened: " + std::generic_category().message(errno));
  offset_ = static_cast<std::int64_t>(at);
}

FieldReader::~FieldReader() {
  unmap();
  if (descriptor_ >= 0) close(descriptor_);
}

void FieldReader::unmap() noexcept {
  if (map_) munmap(map_, static_cast<std::size_t>(map_to_ - map_from_));
  map_ = nullptr;
}

const char* FieldReader::window(std::int64_t from, std::int64_t bytes) {
  from += offset_;
  if (!map_ || from < map_from_ || from + bytes > map_to_) {
    unmap();
    struct stat status {};
    // Beyond the end of a file a mapping is a fatal signal, so a file that has shrunk is found here.
    if (fstat(descriptor_, &status) != 0 || status.st_size < from + bytes)
      throw UsageError(file_name_ + ": it ends within its data");
    map_from_ = from / kPage * kPage;
    map_to_ = std::min<std::int64_t>(std::max(map_from_ + kWindow, from + bytes), status.st_size);
    void* const at = mmap(nullptr, static_cast<std::size_t>(map_to_ - map_from_), PROT_READ,
                          MAP_SHARED | MAP_POPULATE, descriptor_, static_cast<off_t>(map_from_));
    if (at == MAP_FAILED)
      throw RunError(file_name_ + " cannot be mapped: " + std::generic_category().message(errno));
    map_ = static_cast<char*>(at);
  }
  return map_ + (from - map_from_);
}

const char* FieldReader::view(const Piece& piece, std::size_t bytes) {
  const auto size = piece.cells * static_cast<std::int64_t>(bytes);
  if (descriptor_ >= 0) return window(piece.first * static_cast<std::int64_t>(bytes), size);
  buffer_.resize(static_cast<std::size_t>(size));
  read(piece, bytes, buffer_.data());
  return buffer_.data();
}

void FieldReader::read(const Piece& piece, std::size_t bytes, char* out) const {
  if (descriptor_ < 0) {
    const H5Handle space = h5_own(H5Dget_space(set_.get()), file_name_);
    h5_check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, piece.start.data(), nullptr, piece.extents.data(),
                                 nullptr),
             file_name_);
    const H5Handle memory =
        h5_own(H5Screate_simple(static_cast<int>(piece.extents.size()), piece.extents.data(), nullptr), file_name_);
    h5_check(H5Dread(set_.get(), type_.get(), memory.get(), space.get(), H5P_DEFAULT, out), file_name_);
    return;
  }
  auto left = static_cast<std::size_t>(piece.cells) * bytes;
  auto at = static_cast<off_t>(offset_ + piece.first * static_cast<std::int64_t>(bytes));
  while (left > 0) {
    const ssize_t got = pread(descriptor_, out, left, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw UsageError(file_name_ + (got == 0 ? ": it ends within its data"
                                              : ": cannot be read: " + std::generic_category().message(errno)));
    out += got;
    at += got;
    left -= static_cast<std::size_t>(got);
  }
}

}  // namespace isohalo
