#pragma once
/// Fields with a unique value per field and global cell and a signalling sentinel in every ghost, in several
/// layouts.

#include <bit>
#include <cstring>

#include "framework/domain/cartesian_domain.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/shm/shared_memory.hpp"
#include "tests/halo/halo_cases.hpp"

namespace isohalo::test {

/// A user's struct, to exchange something that is no number.
struct Pair {
  std::int64_t a;
  double b;
  std::uint8_t c;
};

template <class T>
T value_of(int field, std::int64_t l) {
  if constexpr (std::is_same_v<T, Pair>)
    return Pair{l * 7 + field, static_cast<double>(l), static_cast<std::uint8_t>(l)};
  else
    return static_cast<T>(l * 7 + field + 1);
}

template <class T>
T sentinel() {
  T v;
  std::memset(static_cast<void*>(&v), 0, sizeof v);
  if constexpr (std::is_same_v<T, double>)
    v = std::bit_cast<double>(std::uint64_t{0x7ff4000000000123u});  // signalling
  if constexpr (std::is_same_v<T, float>) v = std::bit_cast<float>(std::uint32_t{0x7fa00123u});
  if constexpr (std::is_same_v<T, Pair>) v.a = -99;
  if constexpr (std::is_same_v<T, std::uint8_t>) v = 255;
  return v;
}

template <class T>
bool same(const T& x, const T& y) {
  if constexpr (std::is_same_v<T, Pair>)
    return x.a == y.a && x.b == y.b && x.c == y.c;
  else
    return std::memcmp(&x, &y, sizeof x) == 0;
}

enum class Memory { plain, padded, permuted, shared };
constexpr int kMemories = 4;

/// A field in memory of its own, in one of several layouts.
template <class T, int D>
class TestField {
 public:
  TestField(const CartesianDomain<D>& domain, const HaloPlan<D>& plan, int number, Memory memory)
      : number_(number), global_(domain.global()) {
    ref_.owned = domain.owned();
    for (int j = 0; j < D; ++j) {
      ref_.ghost_low[j] = plan.ghost_low()[j] + (memory == Memory::padded ? 1 : 0);  // wider than the plan needs
      ref_.ghost_high[j] = plan.ghost_high()[j] + (memory == Memory::padded ? 2 : 0);
    }
    const Box<D> all = ref_.allocated();
    std::int64_t stride = 1, origin = 0;
    for (int k = D - 1; k >= 0; --k) {
      const int j = memory == Memory::permuted ? D - 1 - k : k;
      ref_.stride[j] = stride;
      origin += ref_.ghost_low[j] * stride;
      stride *= all.extent(j) + (memory == Memory::padded ? 3 : 0);
    }
    if (memory == Memory::shared) {
      shared_.assign(static_cast<std::size_t>(stride), sentinel<T>());
      ref_.data = shared_.data() + origin;
    } else {
      memory_.assign(static_cast<std::size_t>(stride), sentinel<T>());
      ref_.data = memory_.data() + origin;
    }
    for_each_cell(ref_.owned, [&](const Index<D>& i) { ref_.at(i) = right(i); });
  }

  T right(Index<D> i) const {
    for (int j = 0; j < D; ++j) {
      const std::int64_t n = global_.extent(j);
      i[j] = ((i[j] % n) + n) % n;
    }
    return value_of<T>(number_, linear_index(global_, i));
  }
  const ArrayRef<T, D>& ref() const { return ref_; }

  /// Number of cells that are wrong.
  std::int64_t wrong(const std::set<Index<D>>& needed) const {
    std::int64_t n = 0;
    for_each_cell(ref_.allocated(), [&](const Index<D>& i) {
      const bool known = ref_.owned.contains(i) || needed.contains(i);
      n += !same(ref_.at(i), known ? right(i) : sentinel<T>());
    });
    return n;
  }

 private:
  int number_;
  Box<D> global_;
  std::vector<T> memory_;
  std::vector<T, SharedAllocator<T>> shared_;
  ArrayRef<T, D> ref_;
};

template <int D>
std::vector<PerDim<bool, D>> periodicities() {
  std::vector<PerDim<bool, D>> all;
  for (int m = 0; m < (1 << D); ++m) {
    PerDim<bool, D> p{};
    for (int j = 0; j < D; ++j) p[j] = m >> j & 1;
    all.push_back(p);
  }
  return all;
}

/// Every way to travel that can be forced and that this shape allows.
template <int D>
std::vector<Exchange> exchanges(const StencilShape<D>& shape) {
  std::vector<Exchange> all;
  for (const auto& name : exchange_names()) {
    const Exchange e = exchange_of_name(name);
    if (e == Exchange::automatic || (pattern_of(e) == HaloPattern::slabs && !slabs_possible(shape))) continue;
    all.push_back(e);
  }
  return all;
}

/// One exchange by a plan of its own; the number of wrong cells on this rank.
template <class T, int D>
std::int64_t exchange_once(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth, Memory memory,
                           Exchange exchange, const std::set<Index<D>>& needed, HaloMutation<D> mutation = {}) {
  HaloOptions<D> options;
  options.exchange = exchange;
  options.mutation = std::move(mutation);
  HaloPlan<D> plan(domain, shape, depth, options);
  const TestField<T, D> field(domain, plan, 0, memory);
  plan.exchange(field.ref());
  return field.wrong(needed);
}

template <int D>
std::set<Index<D>> needed_on(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth) {
  return needed_by_definition(domain.owned(), shape.offsets(), depth,
                              Surroundings<D>{domain.global(), domain.periodic(), {}, {}});
}

}  // namespace isohalo::test
