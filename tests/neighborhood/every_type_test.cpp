/// Datatypes of every kind, and MPI's own reductions, by all algorithms: MPI copies and reduces the same within
/// this process, with what the other ranks are known to hold.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/neighborhood/collective_cases.hpp"

namespace isohalo {
namespace {

constexpr isohalo_algorithm kAlgorithms[] = {ISOHALO_AUTO, ISOHALO_DIRECT, ISOHALO_COMBINING, ISOHALO_LOGARITHMIC};

struct NamedType {
  std::string name;
  MPI_Datatype type;
  bool ours = false;  ///< to be freed
};

/// Committed; the caller frees what is ours.
std::vector<NamedType> all_types() {
  std::vector<NamedType> list{
      {"char", MPI_CHAR},
      {"signed char", MPI_SIGNED_CHAR},
      {"wchar", MPI_WCHAR},
      {"byte", MPI_BYTE},
      {"packed", MPI_PACKED},
      {"short", MPI_SHORT},
      {"int", MPI_INT},
      {"unsigned long long", MPI_UNSIGNED_LONG_LONG},
      {"float", MPI_FLOAT},
      {"double", MPI_DOUBLE},
      {"long double", MPI_LONG_DOUBLE},
      {"bool", MPI_C_BOOL},
      {"float complex", MPI_C_FLOAT_COMPLEX},
      {"double complex", MPI_C_DOUBLE_COMPLEX},
      {"int8", MPI_INT8_T},
      {"uint64", MPI_UINT64_T},
      {"aint", MPI_AINT},
      {"count", MPI_COUNT},
      {"float and int", MPI_FLOAT_INT},
      {"double and int", MPI_DOUBLE_INT},
      {"long and int", MPI_LONG_INT},
      {"short and int", MPI_SHORT_INT},
      {"two ints", MPI_2INT},
  };
  const auto add = [&](const std::string& name, MPI_Datatype t) {
    MPI_Type_commit(&t);
    list.push_back({name, t, true});
  };
  MPI_Datatype t = MPI_DATATYPE_NULL, inner = MPI_DATATYPE_NULL;
  const int lengths[4] = {1, 3, 1, 5};
  const MPI_Aint places[4] = {3, 8, 40, 57};
  const MPI_Datatype kinds[4] = {MPI_CHAR, MPI_SHORT, MPI_DOUBLE, MPI_BYTE};
  MPI_Type_create_struct(4, lengths, places, kinds, &t);
  add("struct with gaps", t);
  const MPI_Aint backwards[3] = {48, -16, 16};
  const int one[3] = {1, 1, 1};
  MPI_Type_create_struct(3, one, backwards, kinds, &inner);
  MPI_Type_create_resized(inner, -24, 96, &t);
  MPI_Type_free(&inner);
  add("out of order, below its address", t);
  const int sizes[3] = {4, 5, 6}, parts[3] = {2, 3, 4}, starts[3] = {1, 0, 2};
  MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_FLOAT, &t);
  add("subarray", t);
  const int cells[2] = {7, 9}, how[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, grain[2] = {2, 5};
  const int grid[2] = {2, 2};
  MPI_Type_create_darray(4, 1, 2, cells, how, grain, grid, MPI_ORDER_C, MPI_INT, &t);
  add("distributed array", t);
  MPI_Type_vector(3, 2, 5, MPI_DOUBLE_INT, &inner);
  MPI_Type_create_hvector(2, 1, 400, inner, &t);
  MPI_Type_free(&inner);
  add("vectors of vectors", t);
  const int where[3] = {9, 0, 4};
  MPI_Type_create_indexed_block(3, 2, where, MPI_INT16_T, &t);
  add("indexed blocks", t);
  MPI_Type_contiguous(0, MPI_INT, &t);
  add("nothing", t);
  MPI_Type_dup(MPI_LONG_DOUBLE, &t);
  add("duplicate", t);
  MPI_Type_create_f90_real(12, MPI_UNDEFINED, &t);
  list.push_back({"Fortran real", t});  // predefined, in a way
  return list;
}

/// `count` elements for each of s blocks, with room around them.
class Buffer {
 public:
  Buffer(MPI_Datatype type, int count, int blocks) {
    MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
    MPI_Type_get_extent(type, &low, &extent);
    MPI_Type_get_true_extent(type, &true_low, &true_extent);
    block_ = count * extent;
    room_ = 64 * (1 + (std::abs(low) + std::abs(true_low) + true_extent) / 64);
    bytes_.resize(static_cast<std::size_t>(blocks * block_ + 2 * room_), std::byte{0xcd});
  }
  void fill(int rank) {
    for (std::size_t k = 0; k < bytes_.size(); ++k)
      bytes_[k] = static_cast<std::byte>(static_cast<std::size_t>(rank) * 59 + k * 7 + k / 251);
  }
  std::byte* block(int i) { return bytes_.data() + room_ + i * block_; }
  const std::byte* block(int i) const { return bytes_.data() + room_ + i * block_; }
  bool operator==(const Buffer& other) const { return bytes_ == other.bytes_; }

 private:
  MPI_Aint block_ = 0, room_ = 0;
  std::vector<std::byte> bytes_;
};

test::Setting ring() {
  return {MPI_COMM_WORLD, {test::ranks(), 1}, {1, 0}, {1, 0, -1, 0, 0, 0, 2, 0, -3, 0, 0, 1}};
}

TEST(EveryType, IsMovedAsMpiMovesIt) {
  const auto at = ring();
  isohalo_neighborhood iso = nullptr;
  ASSERT_EQ(isohalo_neighborhood_create(at.cart, at.s, at.relative.data(), &iso), MPI_SUCCESS);
  constexpr int count = 3;
  for (auto& [name, type, ours] : all_types()) {
    Buffer send(type, count, at.s), sent(type, count, at.s);
    send.fill(test::rank());
    for (const bool gather : {false, true}) {
      Buffer right(type, count, at.s);
      for (int i = 0; i < at.s; ++i) {
        const int source = at.sources[static_cast<std::size_t>(i)];
        if (source < 0) continue;
        sent.fill(source);
        MPI_Sendrecv(sent.block(gather ? 0 : i), count, type, 0, 0, right.block(i), count, type, 0, 0,
                     MPI_COMM_SELF, MPI_STATUS_IGNORE);
      }
      for (const isohalo_algorithm a : kAlgorithms)
        for (const bool started : {false, true}) {
          isohalo_neighborhood_set_algorithm(iso, a);
          Buffer got(type, count, at.s);
          isohalo_request r = nullptr;
          std::byte *const out = send.block(0), *const in = got.block(0);
          int code = 0;
          if (started)
            code = gather ? isohalo_ineighbor_allgather(out, count, type, in, count, type, iso, &r)
                          : isohalo_ineighbor_alltoall(out, count, type, in, count, type, iso, &r);
          else
            code = gather ? isohalo_neighbor_allgather(out, count, type, in, count, type, iso)
                          : isohalo_neighbor_alltoall(out, count, type, in, count, type, iso);
          ASSERT_EQ(code, MPI_SUCCESS) << name << ": " << isohalo_error_text();
          if (started) code = isohalo_wait(&r);
          ASSERT_EQ(code, MPI_SUCCESS) << name << ": " << isohalo_error_text();
          EXPECT_TRUE(got == right) << name << ", algorithm " << a << (gather ? ", allgather" : ", alltoall")
                                    << (started ? ", started" : "");
        }
    }
    if (ours) MPI_Type_free(&type);
  }
  isohalo_neighborhood_free(&iso);
}

struct NamedOp {
  std::string name;
  MPI_Op op;
  MPI_Datatype type;
};

/// A vector of this rank for block i, of values that every operation may meet.
template <class T>
void fill_values(std::byte* to, int count, int rank, int i) {
  for (int k = 0; k < count; ++k) {
    const T value = static_cast<T>((rank * 5 + i * 3 + k * 7) % 11);
    std::memcpy(to + static_cast<std::size_t>(k) * sizeof value, &value, sizeof value);
  }
}

struct DoubleInt {
  double value;
  int index;
};

void fill_vector(std::byte* to, MPI_Datatype type, int count, int rank, int i) {
  if (type == MPI_INT) return fill_values<int>(to, count, rank, i);
  if (type == MPI_UINT8_T) return fill_values<std::uint8_t>(to, count, rank, i);
  if (type == MPI_FLOAT) return fill_values<float>(to, count, rank, i);
  if (type == MPI_C_DOUBLE_COMPLEX) return fill_values<double>(to, 2 * count, rank, i);
  if (type == MPI_2INT) return fill_values<int>(to, 2 * count, rank, i);
  for (int k = 0; k < count; ++k) {
    DoubleInt pair{};
    pair.value = (rank + i + k) % 3, pair.index = rank * 10 + i;
    std::memcpy(to + static_cast<std::size_t>(k) * sizeof pair, &pair, sizeof pair);
  }
}

TEST(EveryReduction, OfMpiInListOrder) {
  const auto at = ring();
  isohalo_neighborhood iso = nullptr;
  ASSERT_EQ(isohalo_neighborhood_create(at.cart, at.s, at.relative.data(), &iso), MPI_SUCCESS);
  constexpr int count = 5;
  std::vector<NamedOp> ops{{"max", MPI_MAX, MPI_FLOAT},
                           {"min", MPI_MIN, MPI_INT},
                           {"sum", MPI_SUM, MPI_UINT8_T},
                           {"product", MPI_PROD, MPI_C_DOUBLE_COMPLEX},
                           {"and", MPI_LAND, MPI_INT},
                           {"or", MPI_LOR, MPI_INT},
                           {"exclusive or", MPI_LXOR, MPI_INT},
                           {"bits and", MPI_BAND, MPI_UINT8_T},
                           {"bits or", MPI_BOR, MPI_INT},
                           {"bits exclusive or", MPI_BXOR, MPI_UINT8_T},
                           {"place of max", MPI_MAXLOC, MPI_DOUBLE_INT},
                           {"place of min", MPI_MINLOC, MPI_2INT}};
  for (const auto& [name, op, type] : ops) {
    const auto right_of = [&, op = op, type = type](bool scatter) {  // of sources in list order
      Buffer right(type, count, 1), next(type, count, 1);
      bool any = false;
      for (int i = 0; i < at.s; ++i) {
        const int source = at.sources[static_cast<std::size_t>(i)];
        if (source < 0) continue;
        fill_vector(next.block(0), type, count, source, scatter ? i : 0);
        if (any) MPI_Reduce_local(right.block(0), next.block(0), count, type, op);
        std::swap(right, next);
        any = true;
      }
      return right;
    };
    Buffer send(type, count, at.s);
    MPI_Aint low = 0, extent = 0;
    MPI_Type_get_extent(type, &low, &extent);
    std::vector<int> counts(static_cast<std::size_t>(at.s), count);
    std::vector<MPI_Aint> places;
    const std::vector<MPI_Datatype> types(counts.size(), type);
    for (int i = 0; i < at.s; ++i) {
      fill_vector(send.block(i), type, count, test::rank(), i);
      places.push_back(i * count * extent);
    }
    for (const bool scatter : {false, true}) {
      const Buffer right = right_of(scatter);
      for (const isohalo_algorithm a : kAlgorithms) {
        isohalo_neighborhood_set_algorithm(iso, a);
        Buffer got(type, count, 1);
        const int code = scatter ? isohalo_neighbor_scatter_reduce(send.block(0), counts.data(), places.data(),
                                                                   types.data(), got.block(0), count, type, op, iso)
                                 : isohalo_neighbor_reduce(send.block(0), got.block(0), count, type, op, iso);
        ASSERT_EQ(code, MPI_SUCCESS) << name << ": " << isohalo_error_text();
        for (int k = 0; k < count; ++k) {  // without what lies in gaps
          const std::size_t size = type == MPI_DOUBLE_INT ? 12 : static_cast<std::size_t>(extent);
          EXPECT_EQ(std::memcmp(got.block(0) + k * extent, right.block(0) + k * extent, size), 0)
              << name << ", algorithm " << a << (scatter ? ", scatter_reduce" : ", reduce");
        }
      }
    }
  }
  isohalo_neighborhood_free(&iso);
}

}  // namespace
}  // namespace isohalo
