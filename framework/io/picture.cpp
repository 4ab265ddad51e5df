#include "framework/io/picture.hpp"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "datatypes/error.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"
#include "framework/mpi/whole_file.hpp"

namespace isohalo {

namespace {

constexpr std::int64_t kMostCells = 1024;  // per side of the picture
constexpr std::int64_t kLeastPixels = 400;

/// The samples of the slice: every `thin`-th cell.
template <int D>
struct Slice {
  Box<D> global;
  std::int64_t thin, rows, columns;

  explicit Slice(const Box<D>& g) : global(g) {
    const std::int64_t ny = D > 1 ? g.extent(std::max(D - 2, 0)) : 1, nx = g.extent(D - 1);
    thin = (std::max(nx, ny) + kMostCells - 1) / kMostCells;
    rows = (ny + thin - 1) / thin;
    columns = (nx + thin - 1) / thin;
  }

  /// The sampled cells within a block, as a box of (row, column); empty when the slice misses the block.
  Box<2> samples(const Box<D>& block) const {
    Box<2> s{{0, 0}, {1, 1}};
    for (int j = 0; j < D - 2; ++j) {
      const std::int64_t middle = global.extent(j) / 2;
      if (middle < block.low[j] || middle >= block.high[j]) return Box<2>{};
    }
    if (D > 1) {
      const int y = std::max(D - 2, 0);
      s.low[0] = (block.low[y] + thin - 1) / thin;
      s.high[0] = (block.high[y] + thin - 1) / thin;
    }
    s.low[1] = (block.low[D - 1] + thin - 1) / thin;
    s.high[1] = (block.high[D - 1] + thin - 1) / thin;
    return s;
  }

  Index<D> cell(std::int64_t row, std::int64_t column) const {
    Index<D> i{};
    for (int j = 0; j < D - 2; ++j) i[j] = global.extent(j) / 2;
    if (D > 1) i[std::max(D - 2, 0)] = row * thin;
    i[D - 1] = column * thin;
    return i;
  }
};

template <int D>
std::vector<double> local_samples(const Slice<D>& slice, const Box<D>& block, const AnyArray<D>& array) {
  std::vector<double> values;
  for_each_cell(slice.samples(block), [&](const Index<2>& rc) {
    const Index<D> i = slice.cell(rc[0], rc[1]);
    values.push_back(std::visit([&](const auto& a) { return static_cast<double>(a.at(i)); }, array));
  });
  return values;
}

/// The whole slice on rank 0, row-major; empty elsewhere.
template <int D>
std::vector<double> gather(const Slice<D>& slice, const CartesianDomain<D>& domain,
                           const std::vector<double>& mine) {
  const Communicator& comm = domain.comm();
  const int tag = comm.take_tags(1);
  if (comm.rank() != 0) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (!mine.empty())
      mpi_check(MPI_Isend(mine.data(), static_cast<int>(mine.size()), MPI_DOUBLE, 0, tag, comm.get(), &request),
                "MPI_Isend of a picture", comm.get());
    comm.wait(request, "picture");
    return {};
  }
  std::vector<std::vector<double>> parts(static_cast<std::size_t>(comm.size()));
  std::vector<MPI_Request> requests;
  parts[0] = mine;
  for (int r = 1; r < comm.size(); ++r) {
    const Box<2> s = slice.samples(domain.decomposition().box(r));
    if (s.empty()) continue;
    auto& part = parts[static_cast<std::size_t>(r)];
    part.resize(static_cast<std::size_t>(s.cells()));
    requests.push_back(MPI_REQUEST_NULL);
    mpi_check(
        MPI_Irecv(part.data(), static_cast<int>(part.size()), MPI_DOUBLE, r, tag, comm.get(), &requests.back()),
        "MPI_Irecv of a picture", comm.get());
  }
  comm.wait(requests, "picture");
  std::vector<double> whole(static_cast<std::size_t>(slice.rows * slice.columns));
  for (int r = 0; r < comm.size(); ++r) {
    std::size_t k = 0;
    const Box<2> s = slice.samples(domain.decomposition().box(r));
    if (parts[static_cast<std::size_t>(r)].empty()) continue;
    for_each_cell(s, [&](const Index<2>& rc) {
      whole[static_cast<std::size_t>(rc[0] * slice.columns + rc[1])] = parts[static_cast<std::size_t>(r)][k++];
    });
  }
  return whole;
}

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
  double low = 0, high = 0;
  bool any = false;
  for (double x : v)
    if (std::isfinite(x)) {
      low = any ? std::min(low, x) : x;
      high = any ? std::max(high, x) : x;
      any = true;
    }
  const std::int64_t zoom = std::max<std::int64_t>(1, kLeastPixels / std::max(rows, columns));
  const std::int64_t tall = rows == 1 ? 64 : zoom;  // a line becomes a strip
  std::vector<png_byte> pixels;
  pixels.reserve(static_cast<std::size_t>(rows * tall * columns * zoom * 3));
  for (std::int64_t y = 0; y < rows * tall; ++y)
    for (std::int64_t x = 0; x < columns * zoom; ++x) {
      const double value = v[static_cast<std::size_t>(y / tall * columns + x / zoom)];
      const Colour c =
          value != value ? Colour{220, 0, 0} : colour_of(high > low ? (value - low) / (high - low) : 0.5);
      for (double part : {c.r, c.g, c.b}) pixels.push_back(static_cast<png_byte>(std::lround(part)));
    }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(columns * zoom);
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
  const auto whole = gather(slice, domain, local_samples(slice, domain.owned(), array));
  agreed(domain.comm(), [&] {
    if (domain.rank() == 0) write_png(file, whole, slice.rows, slice.columns);
  });
}

template void write_picture<1>(const std::filesystem::path&, const CartesianDomain<1>&, const AnyArray<1>&);
template void write_picture<2>(const std::filesystem::path&, const CartesianDomain<2>&, const AnyArray<2>&);
template void write_picture<3>(const std::filesystem::path&, const CartesianDomain<3>&, const AnyArray<3>&);
template void write_picture<4>(const std::filesystem::path&, const CartesianDomain<4>&, const AnyArray<4>&);

}  // namespace isohalo
