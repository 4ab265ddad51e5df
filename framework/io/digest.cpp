#include "framework/io/digest.hpp"

#include <fmt/format.h>

#include <Kokkos_Core.hpp>
#include <bit>
#include <cmath>

#include "datatypes/error.hpp"
#include "framework/halo/faces.hpp"

namespace isohalo {

namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

/// From a number's bits to a signed integer that orders like the number, -0 below +0, and back. (Signed, because
/// MPICH 4.0.2's MPI_MIN compares MPI_UINT64_T as signed numbers.)
template <class Key>
Key order_key(Key word) {
  return static_cast<Key>(word ^ (word >> (8 * sizeof(Key) - 1) & std::numeric_limits<Key>::max()));
}
std::int64_t key_of(double v) {
  return order_key(std::bit_cast<std::int64_t>(v));
}
double number_of(std::int64_t key) {
  return std::bit_cast<double>(order_key(key));
}

}  // namespace

void StatisticsSum::note(double v, std::int64_t at) {
  if (!std::isfinite(v)) odd_ = std::min(odd_, at);
  if (v != v) {
    ++nans_;
    return;
  }
  least_ = std::min(least_, key_of(v));
  greatest_ = std::max(greatest_, key_of(v));
}

/// Of floating point by integer operations that vectorise. Numbers are ordered by keys of their own width; NaNs lie
/// beyond the infinities of their sign, so cells without them show it by their extremes.
template <class T>
void StatisticsSum::add(const T* v, std::int64_t n, std::int64_t first) {
  constexpr std::int64_t kAtATime = 512;  // two loops over a piece in the cache: one would not vectorise
  using Key = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  Key least = std::numeric_limits<Key>::max(), greatest = std::numeric_limits<Key>::min();
  for (std::int64_t from = 0; from < n; from += kAtATime) {
    const std::int64_t to = std::min(n, from + kAtATime);
    digest_ += cells_digest<T>(reinterpret_cast<const char*>(v + from), to - from, first + from);
    if constexpr (std::is_floating_point_v<T>)
      for (std::int64_t x = from; x < to; ++x) {
        const Key key = order_key(std::bit_cast<Key>(v[x]));
        least = std::min(least, key);
        greatest = std::max(greatest, key);
      }
  }
  if constexpr (std::is_floating_point_v<T>) {
    const auto infinity = std::bit_cast<Key>(std::numeric_limits<T>::infinity());
    if (n > 0 && greatest < infinity && least > ~infinity) {  // ~infinity is the key of minus infinity
      for (const Key key : {least, greatest}) note(static_cast<double>(std::bit_cast<T>(order_key(key))), first);
      return;
    }
  }
  for (std::int64_t x = 0; x < n; ++x) note(static_cast<double>(v[x]), first + x);
}
template void StatisticsSum::add(const double*, std::int64_t, std::int64_t);
template void StatisticsSum::add(const float*, std::int64_t, std::int64_t);
template void StatisticsSum::add(const std::uint8_t*, std::int64_t, std::int64_t);

template <class T, int D>
void StatisticsSum::pack(const Box<D>& global, const ArrayRef<T, D>& a, const Box<D>& box, T* out) {
  check_rows(a);
  if (box.empty()) return;
  Box<D> rows = box;
  rows.high[D - 1] = rows.low[D - 1] + 1;
  const std::int64_t n = box.extent(D - 1);
  StatisticsSum found;
  Kokkos::parallel_reduce(
      "isohalo::statistics", Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(0, rows.cells()),
      [=](const std::int64_t r, StatisticsSum& sum) {
        const Index<D> i = index_of_linear(rows, r);
        const T* const from = &a.at(i);
        if (out) std::memcpy(out + r * n, from, static_cast<std::size_t>(n) * sizeof(T));
        sum.add(out ? out + r * n : from, n, linear_index(global, i));
      },
      found);
  *this += found;
}

FieldStatistics StatisticsSum::finish(const Communicator& comm, std::int64_t cells) const {
  std::uint64_t sums[2] = {digest_, static_cast<std::uint64_t>(nans_)};
  std::int64_t least[3] = {least_, ~greatest_, odd_};
  comm.allreduce(sums, 2, MPI_UINT64_T, MPI_SUM);
  comm.allreduce(least, 3, MPI_INT64_T, MPI_MIN);
  FieldStatistics s;
  s.digest = sums[0];
  s.nan_count = static_cast<std::int64_t>(sums[1]);
  const bool none = s.nan_count == cells;
  const double quiet_nan = std::bit_cast<double>(std::uint64_t{0x7ff8000000000000u});
  s.min = none ? quiet_nan : number_of(least[0]);
  s.max = none ? quiet_nan : number_of(~least[1]);
  if (least[2] != kNone) s.first_not_finite = least[2];
  return s;
}

template <int D>
FieldStatistics field_statistics(const CartesianDomain<D>& domain, const AnyArray<D>& array, int face) {
  const Box<D> global = field_domain(domain, face).global();
  StatisticsSum sum;
  std::visit(
      [&](const auto& a) {
        using T = std::remove_reference_t<decltype(*a.data)>;
        sum.pack(global, a, a.owned, static_cast<T*>(nullptr));
      },
      array);
  return sum.finish(domain.comm(), global.cells());
}

#define ISOHALO_INSTANTIATE_PACK(T, D) \
  template void StatisticsSum::pack<T, D>(const Box<D>&, const ArrayRef<T, D>&, const Box<D>&, T*);
#define ISOHALO_INSTANTIATE(D)              \
  ISOHALO_INSTANTIATE_PACK(double, D)       \
  ISOHALO_INSTANTIATE_PACK(float, D)        \
  ISOHALO_INSTANTIATE_PACK(std::uint8_t, D) \
  template FieldStatistics field_statistics<D>(const CartesianDomain<D>&, const AnyArray<D>&, int);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE
#undef ISOHALO_INSTANTIATE_PACK

std::string hex_digest(std::uint64_t digest) {
  return fmt::format("{:016x}", digest);
}

std::uint64_t parse_digest(const std::string& text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw UsageError("\"" + text + "\" is no digest (16 lower-case hex digits)");
  return std::stoull(text, nullptr, 16);
}

std::uint64_t bytes_digest(const void* data, std::size_t bytes) {
  return cells_digest<std::uint8_t>(static_cast<const char*>(data), static_cast<std::int64_t>(bytes), 0);
}

}  // namespace isohalo
