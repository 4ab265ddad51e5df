#include "framework/io/picture.hpp"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "datatypes/error.hpp"
#include "framework/io/gather.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"
#include "framework/mpi/whole_file.hpp"

namespace isohalo {

namespace {

constexpr std::int64_t kMostCells = 1024;  // per side of the picture
constexpr std::int64_t kLeastPixels = 400;

/// The samples of the slice, sample k of a dimension at first + k step: its middle, and in the two last ones every
/// so many cells.
template <int D>
struct Slice {
  Index<D> first{}, step{};

  explicit Slice(const Box<D>& global) {
    std::int64_t widest = 1;
    for (int j = std::max(0, D - 2); j < D; ++j) widest = std::max(widest, global.extent(j));
    step.fill((widest + kMostCells - 1) / kMostCells);
    for (int j = 0; j < D - 2; ++j) first[j] = global.extent(j) / 2, step[j] = global.extent(j);
  }
  /// Those within a block; empty when the slice misses it.
  Box<D> samples(const Box<D>& block) const {
    Box<D> s;
    for (int j = 0; j < D; ++j) {
      s.low[j] = (block.low[j] - first[j] + step[j] - 1) / step[j];
      s.high[j] = (block.high[j] - first[j] + step[j] - 1) / step[j];
    }
    return s;
  }
  Index<D> cell(Index<D> sample) const {
    for (int j = 0; j < D; ++j) sample[j] = first[j] + sample[j] * step[j];
    return sample;
  }
};

struct Colour {
  double r, g, b;
};

/// Dark blue over green to yellow, evenly perceived.
Colour colour_of(double t) {
  static constexpr Colour anchors[] = {{68, 1, 84},    {71, 44, 122},  {59, 81, 139},
                                       {44, 113, 142}, {33, 144, 141}, {39, 173, 129},
                                       {92, 200, 99},  {170, 220, 50}, {253, 231, 37}};
  constexpr int last = 8;
  const double x = std::clamp(t, 0.0, 1.0) * last;
  const int k = std::min(static_cast<int>(x), last - 1);
  const double f = x - k;
  const Colour &a = anchors[k], &b = anchors[k + 1];
  return {a.r + f * (b.r - a.r), a.g + f * (b.g - a.g), a.b + f * (b.b - a.b)};
}

void write_png(const std::filesystem::path& file, const std::vector<double>& v, std::int64_t rows,
               std::int64_t columns) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (double x : v)
    if (std::isfinite(x)) low = std::min(low, x), high = std::max(high, x);
  const double scale = std::isfinite(high - low) ? 1 : 0.5;  // of what is subtracted
  const std::int64_t zoom = std::max<std::int64_t>(1, kLeastPixels / std::max(rows, columns));
  const std::int64_t tall = rows == 1 ? 64 : zoom, wide = columns == 1 ? 64 : zoom;  // a line becomes a strip
  std::vector<png_byte> pixels;
  pixels.reserve(static_cast<std::size_t>(rows * tall * columns * wide * 3));
  for (std::int64_t y = 0; y < rows * tall; ++y)
    for (std::int64_t x = 0; x < columns * wide; ++x) {
      const double value = v[static_cast<std::size_t>(y / tall * columns + x / wide)];
      const double place =
          high > low ? (value * scale - low * scale) / (high * scale - low * scale) : 0.5;  // from 0 to 1
      const Colour c = value != value ? Colour{220, 0, 0} : colour_of(place);
      for (double part : {c.r, c.g, c.b}) pixels.push_back(static_cast<png_byte>(std::lround(part)));
    }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(columns * wide);
  image.height = static_cast<png_uint_32>(rows * tall);
  image.format = PNG_FORMAT_RGB;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = bytes.size();
  if (!png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr))
    throw RunError("cannot make the picture " + file.string() + ": " + image.message);
  detail::fault_point("png");
  write_whole(file, std::string_view(bytes.data(), size));
}

}  // namespace

template <int D>
void write_picture(const std::filesystem::path& file, const CartesianDomain<D>& domain, const AnyArray<D>& array) {
  const Slice<D> slice(domain.global());
  std::vector<Box<D>> parts;  // of the slice, by rank
  for (int r = 0; r < domain.comm().size(); ++r) parts.push_back(slice.samples(domain.decomposition().box(r)));
  std::vector<double> mine;
  for_each_cell(slice.samples(domain.owned()), [&](const Index<D>& sample) {
    const Index<D> i = slice.cell(sample);
    mine.push_back(std::visit([&](const auto& a) { return static_cast<double>(a.at(i)); }, array));
  });
  const Box<D> box = slice.samples(domain.global());
  std::vector<double> whole(domain.rank() == 0 ? static_cast<std::size_t>(box.cells()) : 0);
  detail::gather_cells(domain.comm(), parts, mine, box, whole.data());
  on_root(domain.comm(), [&] { write_png(file, whole, box.cells() / box.extent(D - 1), box.extent(D - 1)); });
}

bool is_our_picture(const std::filesystem::path& file) {
  // Signature; the header's chunk, of 8 bits each of red, green and blue; the chunk sRGB of one byte; the data.
  constexpr std::size_t bytes = 8 + 25 + 13 + 8;
  using namespace std::string_view_literals;
  std::error_code none;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(file, none))) return false;
  std::string begin(bytes, '\0');
  std::ifstream(file, std::ios::binary).read(begin.data(), bytes);
  const std::string_view all = begin;
  return all.starts_with("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"sv) && all.substr(24, 5) == "\x08\x02\0\0\0"sv &&
         all.substr(33, 8) == "\0\0\0\x01sRGB"sv && all.ends_with("IDAT");
}

#define ISOHALO_INSTANTIATE(D) \
  template void write_picture<D>(const std::filesystem::path&, const CartesianDomain<D>&, const AnyArray<D>&);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
