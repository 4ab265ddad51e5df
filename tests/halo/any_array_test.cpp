/// Arrays of any element in one exchange: more of them than any fixed list holds, sizes known at run time,
/// structures and single members of them, MPI datatypes with gaps. Every byte of every array is compared.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "framework/halo/run_time_elements.hpp"
#include "tests/halo/halo_fields.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

constexpr unsigned char kSentinel = 0x5a;

/// Byte b of the element of array `number` in a cell of the grid; never the sentinel.
unsigned char value(int number, std::int64_t cell, std::int64_t b) {
  const std::int64_t v = (cell * 31 + b * 7 + number * 13) % 255;
  return static_cast<unsigned char>(v < kSentinel ? v : v + 1);
}

/// An array in memory of its own: elements of `bytes` bytes, so many further bytes after each, in C order or its
/// reverse.
class Bytes {
 public:
  Bytes(const CartesianDomain<2>& domain, int number, std::int64_t bytes, std::int64_t gap, bool reversed,
        bool shared)
      : domain_(domain), number_(number) {
    ref_.bytes = bytes, ref_.pitch = 1;
    ref_.owned = domain.owned();
    ref_.ghost_low = {2 + number % 2, 2};
    ref_.ghost_high = {2, 3};
    std::int64_t stride = bytes + gap, origin = 0;
    for (const int j : {reversed ? 0 : 1, reversed ? 1 : 0}) {
      ref_.stride[j] = stride;
      origin += ref_.ghost_low[j] * stride;
      stride *= ref_.owned.extent(j) + ref_.ghost_low[j] + ref_.ghost_high[j];
    }
    const auto all = static_cast<std::size_t>(stride);
    if (shared) shared_.resize(all);
    if (!shared) own_.resize(all);
    first_ = shared ? shared_.data() : own_.data();
    size_ = all;
    ref_.data = reinterpret_cast<std::byte*>(first_ + origin);
    const auto start = expected([](const Index<2>&) { return false; });
    std::memcpy(first_, start.data(), all);
  }
  const ErasedArray<2>& ref() const { return ref_; }
  bool right(const std::set<Index<2>>& needed) const {
    const auto should = expected([&](const Index<2>& i) { return needed.contains(i); });
    return std::memcmp(first_, should.data(), size_) == 0;
  }

 private:
  template <class Needed>
  std::vector<unsigned char> expected(Needed&& needed) const {
    std::vector<unsigned char> all(size_, kSentinel);
    const std::ptrdiff_t origin = reinterpret_cast<unsigned char*>(ref_.data) - first_;
    for_each_cell(ref_.owned.grown(ref_.ghost_low, ref_.ghost_high), [&](const Index<2>& i) {
      if (!ref_.owned.contains(i) && !needed(i)) return;
      const std::int64_t cell = linear_index(domain_.global(), wrapped(domain_.global(), i));
      unsigned char* const to = all.data() + origin + offset_of<2>(i, ref_.owned.low, ref_.stride);
      for (std::int64_t b = 0; b < ref_.bytes; ++b) to[b] = value(number_, cell, b);
    });
    return all;
  }

  CartesianDomain<2> domain_;
  int number_;
  std::vector<unsigned char> own_;
  std::vector<unsigned char, SharedAllocator<unsigned char>> shared_;
  unsigned char* first_;
  std::size_t size_;
  ErasedArray<2> ref_;
};

const StencilShape<2> kShape = StencilShape<2>::von_neumann(1);

CartesianDomain<2> grid_of(bool periodic) {
  DomainOptions<2> o;
  o.periodic = {periodic, true};
  return {MPI_COMM_WORLD, {13, 17}, o};
}

HaloOptions<2> by(Exchange e) {
  HaloOptions<2> o;
  o.exchange = e;
  return o;
}

TEST(AnyArray, FortyOfAllSizesInOneExchange) {
  for (const bool periodic : {false, true}) {
    const auto domain = grid_of(periodic);
    const auto needed = test::needed_on(domain, kShape, 2);
    for (const Exchange e : test::exchanges(kShape)) {
      HaloPlan<2> plan(domain, kShape, 2, by(e));
      for (int round = 0; round < 2; ++round) {  // later ones know where neighbors' arrays lie
        std::vector<std::unique_ptr<Bytes>> arrays;
        std::vector<ErasedArray<2>> list;
        for (int k = 0; k < 40; ++k) {
          arrays.push_back(std::make_unique<Bytes>(domain, k + round, k % 3 == 2 ? 72 : k + 1, k % 4 == 1 ? 5 : 0,
                                                   k % 5 == 3, k % 3 == 2));
          list.push_back(arrays.back()->ref());
        }
        plan.exchange(list);
        for (std::size_t k = 0; k < arrays.size(); ++k)
          EXPECT_TRUE(arrays[k]->right(needed)) << "array " << k << " by " << exchange_name(e);
      }
    }
  }
}

TEST(AnyArray, EachWithANeedOfItsOwn) {
  const auto domain = grid_of(true);
  for (const Exchange e : test::exchanges(kShape)) {
    std::vector<HaloNeed<2>> needs;
    for (int k = 0; k < 20; ++k) needs.push_back({k % 2 ? StencilShape<2>::moore(1) : kShape, k % 3});
    HaloPlan<2> plan(domain, needs, by(e));
    std::vector<std::unique_ptr<Bytes>> arrays;
    std::vector<ErasedArray<2>> list;
    for (int k = 0; k < 20; ++k) {
      arrays.push_back(std::make_unique<Bytes>(domain, k, 3 * k + 1, 0, false, false));
      list.push_back(arrays.back()->ref());
    }
    plan.exchange(list);
    for (std::size_t k = 0; k < arrays.size(); ++k)
      EXPECT_TRUE(arrays[k]->right(test::needed_on(domain, needs[k].shape, needs[k].depth))) << "array " << k;
  }
}

struct Cell {
  double a, b, c;
};

/// Whole structures, a structure of arrays, and one member of other structures, together.
TEST(AnyArray, ArraysOfStructuresAndStructuresOfArrays) {
  const auto domain = grid_of(true);
  const auto needed = test::needed_on(domain, kShape, 2);
  const auto n = static_cast<std::size_t>(adopted_size(domain.owned(), 2));
  const auto number = [&](const Index<2>& i) {
    return static_cast<double>(linear_index(domain.global(), wrapped(domain.global(), i)));
  };
  for (const Exchange e : test::exchanges(kShape)) {
    std::vector<Cell> whole(n, {-1, -2, -3}), part(n, {-1, -2, -3});
    std::vector<double> x(n, -1), y(n, -2);
    std::vector<std::uint8_t> flag(n, 255);
    const auto w = adopt(std::span(whole), domain.owned(), 2), p = adopt(std::span(part), domain.owned(), 2);
    const auto u = adopt(std::span(x), domain.owned(), 2), v = adopt(std::span(y), domain.owned(), 2);
    const auto f = adopt(std::span(flag), domain.owned(), 2);
    for_each_cell(domain.owned(), [&](const Index<2>& i) {
      const double g = number(i);
      w.at(i) = {g, g + 0.25, g + 0.5}, p.at(i) = {2 * g, 3 * g, 4 * g};
      u.at(i) = 5 * g, v.at(i) = 6 * g, f.at(i) = static_cast<std::uint8_t>(g);
    });
    HaloPlan<2> plan(domain, kShape, 2, by(e));
    plan.exchange(adopt_bytes(whole.data(), sizeof(Cell), domain.owned(), 2), u, v, f, member_of(p, &Cell::b));
    int wrong = 0;
    for_each_cell(w.allocated(), [&](const Index<2>& i) {
      const double g = number(i);
      const bool mine = domain.owned().contains(i), known = mine || needed.contains(i);
      const auto expect = [&](double found, bool brought, double right, double otherwise) {
        wrong += found != (brought ? right : otherwise);
      };
      expect(w.at(i).a, known, g, -1), expect(w.at(i).b, known, g + 0.25, -2),
          expect(w.at(i).c, known, g + 0.5, -3);
      expect(p.at(i).a, mine, 2 * g, -1), expect(p.at(i).b, known, 3 * g, -2), expect(p.at(i).c, mine, 4 * g, -3);
      expect(u.at(i), known, 5 * g, -1), expect(v.at(i), known, 6 * g, -2);
      expect(f.at(i), known, static_cast<std::uint8_t>(g), 255);
    });
    EXPECT_EQ(wrong, 0) << exchange_name(e);
  }
}

/// 20 single bytes of 60, every third one.
TEST(AnyArray, ElementsByAnMpiDatatype) {
  const auto domain = grid_of(true);
  const auto needed = test::needed_on(domain, kShape, 1);
  constexpr std::int64_t kExtent = 61;
  MPI_Datatype pieces = MPI_DATATYPE_NULL, type = MPI_DATATYPE_NULL;
  MPI_Type_vector(20, 1, 3, MPI_BYTE, &pieces);
  MPI_Type_create_resized(pieces, 0, kExtent, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&pieces);
  const ElementLayout element(type, domain.comm());
  EXPECT_EQ(element.runs().size(), 20u);
  EXPECT_EQ(element.extent(), kExtent);
  EXPECT_EQ(ElementLayout(MPI_DOUBLE, domain.comm()).runs().size(), 1u);
  const ArrayRef<char, 2> cells = adopt(static_cast<char*>(nullptr), domain.owned(), 1);  // geometry alone
  for (const Exchange e : test::exchanges(kShape)) {
    std::vector<unsigned char> memory(static_cast<std::size_t>(adopted_size(domain.owned(), 1) * kExtent),
                                      kSentinel);
    const auto each = [&](auto&& f) {  // f(byte of the memory, travels, its value, index)
      for_each_cell(cells.allocated(), [&](const Index<2>& i) {
        const auto first = static_cast<std::size_t>(linear_index(cells.allocated(), i) * kExtent);
        const std::int64_t g = linear_index(domain.global(), wrapped(domain.global(), i));
        for (std::int64_t b = 0; b < kExtent; ++b)
          f(memory[first + static_cast<std::size_t>(b)], b % 3 == 0 && b < 60, value(1, g, b), i);
      });
    };
    each([&](unsigned char& at, bool, unsigned char right, const Index<2>& i) {
      if (domain.owned().contains(i)) at = right;
    });
    HaloPlan<2> plan(domain, kShape, 1, by(e));
    const auto arrays = adopt_elements(memory.data(), element, domain.owned(), 1);
    plan.exchange(arrays);
    int wrong = 0;
    each([&](unsigned char& at, bool travels, unsigned char right, const Index<2>& i) {
      const bool known = domain.owned().contains(i) || (travels && needed.contains(i));
      wrong += at != (known ? right : kSentinel);
    });
    EXPECT_EQ(wrong, 0) << exchange_name(e);
  }
  MPI_Type_free(&type);
  test::expect_refusal("the element type is MPI_DATATYPE_NULL", [&] { ElementLayout(type, domain.comm()); });
}

TEST(AnyArray, WhatDoesNotFitIsRefused) {
  const auto domain = grid_of(true);
  const Bytes good(domain, 0, 24, 0, false, false);
  const bool odd = test::rank() == test::ranks() - 1;
  test::expect_refusal("elements have 0 bytes; the least is 1",
                       [&] { adopt_bytes(nullptr, 0, domain.owned(), 1); });
  test::expect_refusal("ghost width -1 is negative", [&] { adopt_bytes(nullptr, 8, domain.owned(), -1); });
  for (const Exchange e : {Exchange::coalesced, Exchange::coalesced_packed}) {
    HaloPlan<2> plan(domain, kShape, 2, by(e));
    const auto refused = [&](const std::string& text, auto&& change) {  // one rank's mistake, agreed by all
      ErasedArray<2> bad = good.ref();
      if (odd) change(bad);
      test::expect_refusal(text, [&] { plan.exchange(bad); });
    };
    refused("elements of array 0 have -8 bytes", [](auto& a) { a.bytes = -8; });
    refused("elements of array 0 have 0 bytes", [](auto& a) { a.bytes = 0; });
    refused("array 0 is NULL", [](auto& a) { a.data = nullptr; });
    refused("let cells overlap: neighbors in dimension 1 are 23 bytes apart, the cells have 24",
            [](auto& a) { a.stride[1] = 23; });
    refused("array 0 holds another box than this rank owns", [](auto& a) { ++a.owned.high[1]; });
    if (test::ranks() > 1) refused("list of element sizes", [](auto& a) { a.bytes = 23; });
    EXPECT_NO_THROW(plan.exchange(good.ref()));
    EXPECT_TRUE(good.right(test::needed_on(domain, kShape, 2)));
  }
  const CartesianDomain<2> alone(MPI_COMM_SELF, {4, 4});  // a later start is a local check
  HaloPlan<2> plan(alone, kShape, 1);
  std::vector<char> memory(6 * 6 * 24);
  auto a = adopt_bytes(memory.data(), 24, alone.owned(), 1);
  plan.exchange(a);
  a.stride[1] = 20;
  test::expect_refusal("are 20 bytes apart", [&] { plan.exchange(a); });
}

}  // namespace
}  // namespace isohalo
