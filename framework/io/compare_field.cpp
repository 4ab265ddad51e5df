/// The streaming comparison of one field.

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "datatypes/error.hpp"
#include "datatypes/superaccumulator.hpp"
#include "framework/io/compare_parts.hpp"
#include "framework/io/field_reader.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"

namespace isohalo::detail {

namespace {

constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();
/// Of each file at a time: both pieces stay in the second-level cache between the read and the comparison.
constexpr std::size_t kPieceBytes = std::size_t{192} << 10;

template <class T>
struct BitsOf;
template <>
struct BitsOf<double> {
  using type = std::uint64_t;
};
template <>
struct BitsOf<float> {
  using type = std::uint32_t;
};
template <>
struct BitsOf<std::uint8_t> {
  using type = std::uint8_t;
};

/// A number that counts the values of the type in their order; -0 and 0 share one.
std::int64_t place(double v) {
  const auto bits = std::bit_cast<std::int64_t>(v);
  return bits < 0 ? std::numeric_limits<std::int64_t>::min() - bits : bits;
}
std::int64_t place(float v) {
  const auto bits = std::bit_cast<std::int32_t>(v);
  return bits < 0 ? std::int64_t{std::numeric_limits<std::int32_t>::min()} - bits : bits;
}
std::int64_t place(std::uint8_t v) {
  return v;
}
std::uint64_t distance(std::int64_t a, std::int64_t b) {
  return a < b ? static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a)
               : static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
}

/// What one rank finds in its share.
struct Found {
  std::int64_t different = 0, beyond = 0;
  std::int64_t first = kNowhere, first_beyond = kNowhere, largest = kNowhere;
  std::uint64_t bits[2] = {0, 0}, largest_bits[2] = {0, 0};
  std::uint64_t digest[2] = {0, 0};
  std::int64_t nan[2] = {0, 0}, nan_one = 0;
  double max_abs = 0, max_rel = 0;
  std::uint64_t max_ulp = 0;
  Superaccumulator l1, l2;
};

/// Notes a cell whose bits differ.
template <class T>
void note_difference(T a, T b, std::int64_t index, const Tolerance& tolerance, Found& f) {
  using Bits = typename BitsOf<T>::type;
  if (f.different++ == 0) {
    f.first = index;
    f.bits[0] = std::bit_cast<Bits>(a);
    f.bits[1] = std::bit_cast<Bits>(b);
  }
  bool within = false;
  const double x = static_cast<double>(a), y = static_cast<double>(b);
  if (x != x || y != y) {
    f.nan_one += (x != x) != (y != y);
  } else {
    const double d = std::abs(y - x), size = std::max(std::abs(x), std::abs(y));
    const double relative = d == 0 ? 0 : std::isinf(size) ? std::numeric_limits<double>::infinity() : d / size;
    const std::uint64_t steps = distance(place(a), place(b));
    if (f.largest == kNowhere || d > f.max_abs) {
      f.largest = index;
      f.largest_bits[0] = std::bit_cast<Bits>(a);
      f.largest_bits[1] = std::bit_cast<Bits>(b);
    }
    f.max_abs = std::max(f.max_abs, d);
    f.max_rel = std::max(f.max_rel, relative);
    f.max_ulp = std::max(f.max_ulp, steps);
    f.l1.add(d);
    f.l2.add(d * d);
    within = (tolerance.abs && d <= *tolerance.abs) || (tolerance.rel && d <= *tolerance.rel * size) ||
             (tolerance.ulp && steps <= *tolerance.ulp);
    if (std::isinf(size)) within = tolerance.ulp && steps <= *tolerance.ulp;  // no distance to infinity is small
  }
  if (!within && f.beyond++ == 0) f.first_beyond = index;
}

/// One pass over a piece of both files: the first one's sum in the digest and its NaNs, and whether the bits
/// differ.
struct Pass {
  std::uint64_t digest = 0;
  std::int64_t nans = 0;
  bool different = false;
};

template <class T>
Pass pass(const char* a, const char* b, std::int64_t n, std::uint64_t first) {
  using Bits = typename BitsOf<T>::type;
  constexpr int digits = std::numeric_limits<T>::digits;
  // A NaN's bits without its sign are above those of infinity; bytes have none.
  constexpr Bits magnitude = static_cast<Bits>(~Bits{0} >> 1);
  constexpr Bits infinity =
      std::is_floating_point_v<T> ? static_cast<Bits>(magnitude >> (digits - 1) << (digits - 1)) : magnitude;
  std::uint64_t digest = 0, nans = 0, place = (first + 1) * kGolden;
  Bits different = 0;
  for (std::int64_t c = 0; c < n; ++c) {
    const Bits x = load<Bits>(a, c), y = load<Bits>(b, c);
    different = static_cast<Bits>(different | (x ^ y));
    nans += (x & magnitude) > infinity;
    digest += mix64(std::uint64_t{x} + place);
    place += kGolden;
  }
  return {digest, static_cast<std::int64_t>(nans), different != 0};
}

template <class T>
void compare_piece(const char* a, const char* b, const Piece& piece, const Tolerance& tolerance, Found& f) {
  using Bits = typename BitsOf<T>::type;
  const auto first = static_cast<std::uint64_t>(piece.first);
  const Pass one = pass<T>(a, b, piece.cells, first);
  const Pass two = one.different ? pass<T>(b, a, piece.cells, first) : one;
  f.digest[0] += one.digest;
  f.digest[1] += two.digest;
  f.nan[0] += one.nans;
  f.nan[1] += two.nans;
  if (!one.different) return;
  for (std::int64_t c = 0; c < piece.cells; ++c)
    if (load<Bits>(a, c) != load<Bits>(b, c))
      note_difference(load<T>(a, c), load<T>(b, c), piece.first + c, tolerance, f);
}

/// Compares this rank's share of one field.
template <class T>
void compare_share(FieldReader& a, FieldReader& b, const std::vector<std::int64_t>& shape,
                   const Tolerance& tolerance, const Communicator& comm, Found& found) {
  const Pieces pieces(shape, static_cast<std::int64_t>(kPieceBytes / sizeof(T)));
  for (std::int64_t p = pieces.share(comm.rank(), comm.size()); p < pieces.share(comm.rank() + 1, comm.size());
       ++p) {
    const Piece piece = pieces.piece(p);
    const char* const x = a.view(piece, sizeof(T));
    compare_piece<T>(x, b.view(piece, sizeof(T)), piece, tolerance, found);
  }
}

std::vector<std::int64_t> index_of(std::int64_t linear, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> i(shape.size());
  if (linear == kNowhere) return {};
  for (std::size_t j = shape.size(); j-- > 0; linear /= shape[j]) i[j] = linear % shape[j];
  return i;
}

double as_double(std::uint64_t bits, const std::string& type) {
  if (type == "float64") return std::bit_cast<double>(bits);
  if (type == "float32") return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return static_cast<double>(bits);
}

/// The sum of all ranks' accumulators, on all of them. Collective.
void sum_of_ranks(const Communicator& comm, Superaccumulator& sum) {
  sum.settle();
  comm.allreduce(sum.words().data(), static_cast<int>(sum.words().size()), MPI_INT64_T, MPI_SUM);
}

/// Makes `at` the least of all ranks' places, and `bits` those of the rank that has it. Collective.
void combine_place(const Communicator& comm, std::int64_t& at, std::uint64_t (&bits)[2]) {
  const std::int64_t mine = at;
  at = comm.min(at);
  if (mine != at || at == kNowhere) bits[0] = bits[1] = 0;
  comm.allreduce(bits, 2, MPI_UINT64_T, MPI_SUM);
}

/// Joins what the ranks found. Collective.
void combine(Found& f, const Communicator& comm) {
  std::int64_t sums[5] = {f.different, f.beyond, f.nan[0], f.nan[1], f.nan_one};
  comm.allreduce(sums, 5, MPI_INT64_T, MPI_SUM);
  f.different = sums[0], f.beyond = sums[1], f.nan[0] = sums[2], f.nan[1] = sums[3], f.nan_one = sums[4];
  comm.allreduce(f.digest, 2, MPI_UINT64_T, MPI_SUM);
  combine_place(comm, f.first, f.bits);
  f.first_beyond = comm.min(f.first_beyond);
  double most[2] = {f.max_abs, f.max_rel};
  comm.allreduce(most, 2, MPI_DOUBLE, MPI_MAX);
  if (f.max_abs != most[0]) f.largest = kNowhere;
  f.max_abs = most[0], f.max_rel = most[1];
  combine_place(comm, f.largest, f.largest_bits);
  // In two halves: MPICH 4.0.2 compares MPI_UINT64_T as signed numbers.
  const std::int64_t high = comm.max(static_cast<std::int64_t>(f.max_ulp >> 32));
  const bool highest = static_cast<std::int64_t>(f.max_ulp >> 32) == high;
  const std::int64_t low = comm.max(highest ? static_cast<std::int64_t>(f.max_ulp & 0xffffffffu) : 0);
  f.max_ulp = static_cast<std::uint64_t>(high) << 32 | static_cast<std::uint64_t>(low);
  sum_of_ranks(comm, f.l1);
  sum_of_ranks(comm, f.l2);
}

}  // namespace

FieldDifference compare_field(const std::filesystem::path& a, const std::filesystem::path& b, const StoredField& fa,
                              const StoredField& fb, const Tolerance& tolerance, const Communicator& comm,
                              Comparison& report) {
  Found f;
  agreed(comm, [&] {
    FieldReader ra(a, fa.name), rb(b, fb.name);
    if (fa.type == "float64")
      compare_share<double>(ra, rb, fa.shape, tolerance, comm, f);
    else if (fa.type == "float32")
      compare_share<float>(ra, rb, fa.shape, tolerance, comm, f);
    else
      compare_share<std::uint8_t>(ra, rb, fa.shape, tolerance, comm, f);
    detail::fault_point("compare");
  });
  combine(f, comm);
  const StoredField* const stored[2] = {&fa, &fb};
  for (int k = 0; k < 2; ++k)
    if (f.digest[k] != stored[k]->digest)
      report.warnings.push_back(fmt::format("field {} of the {} file: its digest {} does not match its data, {}",
                                            fa.name, k ? "second" : "first", hex_digest(stored[k]->digest),
                                            hex_digest(f.digest[k])));
  FieldDifference d;
  d.name = fa.name;
  d.type = fa.type;
  d.cells = 1;
  for (std::int64_t n : fa.shape) d.cells *= n;
  d.cells_different = f.different;
  d.cells_beyond = f.beyond;
  d.tolerant = tolerance.any();
  d.first = index_of(f.first, fa.shape);
  d.first_beyond = index_of(f.first_beyond, fa.shape);
  d.bits_a = f.bits[0];
  d.bits_b = f.bits[1];
  d.value_a = as_double(f.bits[0], fa.type);
  d.value_b = as_double(f.bits[1], fa.type);
  d.max_abs = f.max_abs;
  d.largest = index_of(f.largest, fa.shape);
  d.largest_a = as_double(f.largest_bits[0], fa.type);
  d.largest_b = as_double(f.largest_bits[1], fa.type);
  d.max_rel = f.max_rel;
  d.max_ulp = f.max_ulp;
  d.l1 = f.l1.value();
  d.l2 = std::sqrt(f.l2.value());
  d.nan_a = f.nan[0];
  d.nan_b = f.nan[1];
  d.nan_one = f.nan_one;
  if (d.cells_different == 0) compare_statistics(fa, fb, report.metadata);  // with other data they differ anyway
  return d;
}

}  // namespace isohalo::detail
