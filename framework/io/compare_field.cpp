#include "framework/io/compare_field.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>

#include "datatypes/error.hpp"
#include "datatypes/superaccumulator.hpp"
#include "framework/io/field_reader.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"

namespace isohalo::detail {

namespace {

constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();
/// Of each file at a time: both pieces stay in the second-level cache between the read and the comparison.
constexpr std::size_t kPieceBytes = std::size_t{192} << 10;

/// A number that counts the values of the type in their order; -0 and 0 share one.
template <class T>
std::int64_t place(T v) {
  if constexpr (!std::is_floating_point_v<T>) {
    return v;
  } else {
    using Bits = std::make_signed_t<DigestBits<T>>;
    const auto bits = std::bit_cast<Bits>(v);
    return bits < 0 ? std::int64_t{std::numeric_limits<Bits>::min()} - bits : bits;
  }
}
std::uint64_t distance(std::int64_t a, std::int64_t b) {
  return a < b ? static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a)
               : static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
}

/// What one rank finds in its share, and then what all do. Of the report all counts and maxima are filled at once,
/// the rest at the end.
struct Found {
  FieldDifference report;
  std::int64_t first = kNowhere, first_beyond = kNowhere, largest = kNowhere;
  std::uint64_t bits[2] = {0, 0}, largest_bits[2] = {0, 0};
  std::uint64_t digest[2] = {0, 0};
  Superaccumulator l1, l2;
};

/// Notes a cell whose bits differ.
template <class T>
void note_difference(T a, T b, std::int64_t index, const Tolerance& tolerance, Found& f) {
  using Bits = DigestBits<T>;
  FieldDifference& d = f.report;
  if (d.cells_different++ == 0) {
    f.first = index;
    f.bits[0] = std::bit_cast<Bits>(a);
    f.bits[1] = std::bit_cast<Bits>(b);
  }
  bool within = false;
  const double x = static_cast<double>(a), y = static_cast<double>(b);
  if (x != x || y != y) {
    d.nan_one += (x != x) != (y != y);
  } else {
    const double off = std::abs(y - x), size = std::max(std::abs(x), std::abs(y));
    const double relative = off == 0 ? 0 : std::isinf(size) ? std::numeric_limits<double>::infinity() : off / size;
    const std::uint64_t steps = distance(place(a), place(b));
    if (f.largest == kNowhere || off > d.max_abs) {
      f.largest = index;
      f.largest_bits[0] = std::bit_cast<Bits>(a);
      f.largest_bits[1] = std::bit_cast<Bits>(b);
    }
    d.max_abs = std::max(d.max_abs, off);
    d.max_rel = std::max(d.max_rel, relative);
    d.max_ulp = std::max(d.max_ulp, steps);
    f.l1.add(off);
    f.l2.add(off * off);
    within = (tolerance.abs && off <= *tolerance.abs) || (tolerance.rel && off <= *tolerance.rel * size) ||
             (tolerance.ulp && steps <= *tolerance.ulp);
    if (std::isinf(size)) within = tolerance.ulp && steps <= *tolerance.ulp;  // no distance to infinity is small
  }
  if (!within && d.cells_beyond++ == 0) f.first_beyond = index;
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
  using Bits = DigestBits<T>;
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
  using Bits = DigestBits<T>;
  const auto first = static_cast<std::uint64_t>(piece.first);
  const Pass one = pass<T>(a, b, piece.cells, first);
  const Pass two = one.different ? pass<T>(b, a, piece.cells, first) : one;
  f.digest[0] += one.digest;
  f.digest[1] += two.digest;
  f.report.nan_a += one.nans;
  f.report.nan_b += two.nans;
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
  double number = 0;
  with_stored_type(type, [&](auto value) {
    using T = decltype(value);
    number = static_cast<double>(std::bit_cast<T>(static_cast<DigestBits<T>>(bits)));
  });
  return number;
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
  FieldDifference& d = f.report;
  std::int64_t sums[5] = {d.cells_different, d.cells_beyond, d.nan_a, d.nan_b, d.nan_one};
  comm.allreduce(sums, 5, MPI_INT64_T, MPI_SUM);
  d.cells_different = sums[0], d.cells_beyond = sums[1], d.nan_a = sums[2], d.nan_b = sums[3], d.nan_one = sums[4];
  comm.allreduce(f.digest, 2, MPI_UINT64_T, MPI_SUM);
  combine_place(comm, f.first, f.bits);
  f.first_beyond = comm.min(f.first_beyond);
  double most[2] = {d.max_abs, d.max_rel};
  comm.allreduce(most, 2, MPI_DOUBLE, MPI_MAX);
  if (d.max_abs != most[0]) f.largest = kNowhere;
  d.max_abs = most[0], d.max_rel = most[1];
  combine_place(comm, f.largest, f.largest_bits);
  // As signed numbers that order alike: MPICH 4.0.2 compares MPI_UINT64_T as such anyway.
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  d.max_ulp = static_cast<std::uint64_t>(comm.max(static_cast<std::int64_t>(d.max_ulp ^ sign))) ^ sign;
  sum_of_ranks(comm, f.l1);
  sum_of_ranks(comm, f.l2);
}

}  // namespace

FieldDifference compare_field(const std::filesystem::path (&files)[2], const StoredField& a, const StoredField& b,
                              const Tolerance& tolerance, const Communicator& comm,
                              std::vector<std::string>& warnings) {
  Found f;
  agreed(comm, [&] {
    FieldReader ra(files[0], a.name), rb(files[1], a.name);
    with_stored_type(a.type,
                     [&](auto value) { compare_share<decltype(value)>(ra, rb, a.shape, tolerance, comm, f); });
    fault_point("compare");
  });
  combine(f, comm);
  for (const auto& [file, stored, found] :
       {std::tuple{"first", a.digest, f.digest[0]}, {"second", b.digest, f.digest[1]}})
    if (found != stored)
      warnings.push_back(fmt::format("field {} of the {} file: its digest {} does not match its data, {}", a.name,
                                     file, hex_digest(stored), hex_digest(found)));
  FieldDifference& d = f.report;
  d.name = a.name;
  d.type = a.type;
  d.cells = a.cells();
  d.tolerant = tolerance.any();
  d.first = index_of(f.first, a.shape);
  d.first_beyond = index_of(f.first_beyond, a.shape);
  d.bits_a = f.bits[0];
  d.bits_b = f.bits[1];
  d.value_a = as_double(f.bits[0], a.type);
  d.value_b = as_double(f.bits[1], a.type);
  d.largest = index_of(f.largest, a.shape);
  d.largest_a = as_double(f.largest_bits[0], a.type);
  d.largest_b = as_double(f.largest_bits[1], a.type);
  d.l1 = f.l1.value();
  d.l2 = std::sqrt(f.l2.value());
  return d;
}

}  // namespace isohalo::detail
