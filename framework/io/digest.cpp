#include "framework/io/digest.hpp"

#include <Kokkos_Core.hpp>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "datatypes/error.hpp"

namespace isohalo {

namespace {

/// A signed integer that orders like the number: -0 below +0. (Signed, because MPICH 4.0.2's MPI_MIN compares
/// MPI_UINT64_T as signed numbers.)
std::int64_t order_key(double v) {
  const auto bits = std::bit_cast<std::int64_t>(v);
  return bits < 0 ? bits ^ std::numeric_limits<std::int64_t>::max() : bits;
}
double from_order_key(std::int64_t key) {
  return std::bit_cast<double>(key < 0 ? key ^ std::numeric_limits<std::int64_t>::max() : key);
}

std::uint64_t bits_of(double v) {
  return std::bit_cast<std::uint64_t>(v);
}
std::uint64_t bits_of(float v) {
  return std::bit_cast<std::uint32_t>(v);
}
std::uint64_t bits_of(std::uint8_t v) {
  return v;
}

/// Partial result of some rows; joins are exact, so their order does not matter.
struct Partial {
  std::uint64_t digest = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t greatest = std::numeric_limits<std::int64_t>::min();
  std::int64_t nans = 0;
  std::int64_t odd = std::numeric_limits<std::int64_t>::max();  // first index that is not finite

  KOKKOS_INLINE_FUNCTION Partial& operator+=(const Partial& o) {
    digest += o.digest;
    least = o.least < least ? o.least : least;
    greatest = o.greatest > greatest ? o.greatest : greatest;
    nans += o.nans;
    odd = o.odd < odd ? o.odd : odd;
    return *this;
  }
};

/// Adds a row of adjacent values by integer operations that vectorise. Numbers are ordered by keys of their own
/// width; NaNs lie beyond the infinities of their sign, so a row without them shows it by its extremes.
template <class T>
void adjacent_statistics(const T* v, std::int64_t n, std::uint64_t first_index, Partial& p) {
  using Key = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  constexpr Key most = std::numeric_limits<Key>::max(), fewest = std::numeric_limits<Key>::min();
  const auto infinity = std::bit_cast<Key>(std::numeric_limits<T>::infinity());
  const auto key_of = [](Key word) { return static_cast<Key>(word ^ (word >> (8 * sizeof(Key) - 1) & most)); };
  Key least = most, greatest = fewest;
  for (std::int64_t from = 0; from < n;
       from += 512) {  // two loops over a piece in the cache: one would not vectorise
    const std::int64_t to = std::min(n, from + 512);
    p.digest += cells_digest<T>(reinterpret_cast<const char*>(v + from), to - from,
                                static_cast<std::int64_t>(first_index) + from);
    for (std::int64_t x = from; x < to; ++x) {
      const Key key = key_of(std::bit_cast<Key>(v[x]));
      least = std::min(least, key);
      greatest = std::max(greatest, key);
    }
  }
  if (greatest >= infinity || least <= ~infinity) {  // ~infinity is the key of minus infinity
    least = most, greatest = fewest;
    for (std::int64_t x = 0; x < n; ++x) {
      if (!std::isfinite(v[x])) p.odd = std::min(p.odd, static_cast<std::int64_t>(first_index) + x);
      if (v[x] != v[x]) {
        ++p.nans;
        continue;
      }
      least = std::min(least, key_of(std::bit_cast<Key>(v[x])));
      greatest = std::max(greatest, key_of(std::bit_cast<Key>(v[x])));
    }
    if (least > greatest) return;  // nothing but NaNs
  }
  const auto number = [&](Key key) { return static_cast<double>(std::bit_cast<T>(key_of(key))); };
  p.least = std::min(p.least, order_key(number(least)));
  p.greatest = std::max(p.greatest, order_key(number(greatest)));
}

/// Adds a row of values `stride` apart.
template <class T>
void row_statistics(const T* v, std::int64_t n, std::int64_t stride, std::uint64_t first_index, Partial& p) {
  if constexpr (std::is_floating_point_v<T>)
    if (stride == 1) return adjacent_statistics(v, n, first_index, p);
  for (std::int64_t x = 0; x < n; ++x) {
    const T value = v[x * stride];
    const std::uint64_t index = first_index + static_cast<std::uint64_t>(x);
    p.digest += mix64(bits_of(value) + (index + 1) * kGolden);
    const double d = static_cast<double>(value);
    if (!std::isfinite(d)) p.odd = std::min(p.odd, static_cast<std::int64_t>(index));
    if (d != d) {
      ++p.nans;
      continue;
    }
    p.least = std::min(p.least, order_key(d));
    p.greatest = std::max(p.greatest, order_key(d));
  }
}

template <class T, int D>
Partial local_statistics(const Box<D>& global, const ArrayRef<T, D>& a) {
  Box<D> rows = a.owned;
  rows.high[D - 1] = rows.low[D - 1] + 1;
  Partial total;
  Kokkos::parallel_reduce(
      "isohalo::digest", Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(0, rows.cells()),
      [=](const std::int64_t r, Partial& p) {
        const Index<D> i = index_of_linear(rows, r);
        row_statistics(&a.at(i), a.owned.extent(D - 1), a.stride[D - 1],
                       static_cast<std::uint64_t>(linear_index(global, i)), p);
      },
      total);
  return total;
}

/// The statistics of `cells` cells from every rank's part. Collective.
FieldStatistics joined(const Partial& mine, const Communicator& comm, std::int64_t cells) {
  std::uint64_t sums[2] = {mine.digest, static_cast<std::uint64_t>(mine.nans)};
  std::int64_t least[3] = {mine.least, ~mine.greatest, mine.odd};
  comm.allreduce(sums, 2, MPI_UINT64_T, MPI_SUM);
  comm.allreduce(least, 3, MPI_INT64_T, MPI_MIN);
  FieldStatistics s;
  s.digest = sums[0];
  s.nan_count = static_cast<std::int64_t>(sums[1]);
  const bool none = s.nan_count == cells;
  const double quiet_nan = std::bit_cast<double>(std::uint64_t{0x7ff8000000000000u});
  s.min = none ? quiet_nan : from_order_key(least[0]);
  s.max = none ? quiet_nan : from_order_key(~least[1]);
  if (least[2] != std::numeric_limits<std::int64_t>::max()) s.first_not_finite = least[2];
  return s;
}

}  // namespace

template <int D>
FieldStatistics field_statistics(const CartesianDomain<D>& domain, const AnyArray<D>& array) {
  const Partial mine = std::visit([&](const auto& a) { return local_statistics(domain.global(), a); }, array);
  return joined(mine, domain.comm(), domain.global().cells());
}

struct StatisticsSum::State {
  Partial sum;
};
StatisticsSum::StatisticsSum() : state_(std::make_unique<State>()) {}
StatisticsSum::~StatisticsSum() = default;

template <class T>
void StatisticsSum::add(const T* cells, std::int64_t n, std::int64_t first) {
  row_statistics(cells, n, 1, static_cast<std::uint64_t>(first), state_->sum);
}
template void StatisticsSum::add(const double*, std::int64_t, std::int64_t);
template void StatisticsSum::add(const float*, std::int64_t, std::int64_t);
template void StatisticsSum::add(const std::uint8_t*, std::int64_t, std::int64_t);

template <class T, int D>
void StatisticsSum::pack(const Box<D>& global, const ArrayRef<T, D>& a, const Box<D>& box, T* out) {
  if (box.empty()) return;
  Box<D> rows = box;
  rows.high[D - 1] = rows.low[D - 1] + 1;
  const std::int64_t n = box.extent(D - 1);
  Partial found;
  Kokkos::parallel_reduce(
      "isohalo::pack", Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(0, rows.cells()),
      [=](const std::int64_t r, Partial& p) {
        const Index<D> i = index_of_linear(rows, r);
        const T* const from = &a.at(i);
        const std::int64_t step = a.stride[D - 1];
        T* const to = out + r * n;
        if (step == 1)
          std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
        else
          for (std::int64_t x = 0; x < n; ++x) to[x] = from[x * step];
        row_statistics(to, n, 1, static_cast<std::uint64_t>(linear_index(global, i)), p);
      },
      found);
  state_->sum += found;
}
#define ISOHALO_INSTANTIATE(T, D) \
  template void StatisticsSum::pack<T, D>(const Box<D>&, const ArrayRef<T, D>&, const Box<D>&, T*);
#define ISOHALO_INSTANTIATE_ALL(D) \
  ISOHALO_INSTANTIATE(double, D) ISOHALO_INSTANTIATE(float, D) ISOHALO_INSTANTIATE(std::uint8_t, D)
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE_ALL)
#undef ISOHALO_INSTANTIATE_ALL
#undef ISOHALO_INSTANTIATE

FieldStatistics StatisticsSum::finish(const Communicator& comm, std::int64_t cells) const {
  return joined(state_->sum, comm, cells);
}

std::string hex_digest(std::uint64_t digest) {
  static const char* const digits = "0123456789abcdef";
  std::string s(16, '0');
  for (std::size_t k = 16; k-- > 0; digest >>= 4) s[k] = digits[digest & 15];
  return s;
}

std::uint64_t parse_digest(const std::string& text) {
  std::uint64_t d = 0;
  bool good = text.size() == 16;
  for (char c : text) {
    const bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
    good = good && (digit || letter);
    d = d << 4 | static_cast<std::uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  if (!good) throw UsageError("\"" + text + "\" is no digest (16 lower-case hex digits)");
  return d;
}

std::uint64_t bytes_digest(const void* data, std::size_t bytes) {
  const auto* p = static_cast<const std::uint8_t*>(data);
  std::uint64_t d = 0;
  for (std::size_t l = 0; l < bytes; ++l) d += mix64(p[l] + (l + 1) * kGolden);
  return d;
}

template FieldStatistics field_statistics<1>(const CartesianDomain<1>&, const AnyArray<1>&);
template FieldStatistics field_statistics<2>(const CartesianDomain<2>&, const AnyArray<2>&);
template FieldStatistics field_statistics<3>(const CartesianDomain<3>&, const AnyArray<3>&);
template FieldStatistics field_statistics<4>(const CartesianDomain<4>&, const AnyArray<4>&);

}  // namespace isohalo
