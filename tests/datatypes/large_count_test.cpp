/// What an MPI 3 is given for counts beyond its int: the same data as many elements would be. The limit is small
/// here, so that every MPI shows it.

#include "datatypes/large_count.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace isohalo::mpi {
namespace {

/// A committed type that is freed with its owner.
class Made {
 public:
  template <class Make>
  explicit Made(const Make& make) {
    EXPECT_EQ(make(&type_), MPI_SUCCESS);
    MPI_Type_commit(&type_);
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  ~Made() { MPI_Type_free(&type_); }
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// Which bytes of memory, in which order, `count` elements of a type are.
std::vector<unsigned> bytes_of(MPI_Datatype type, int count = 1) {
  std::vector<unsigned char> low(60000), high(low.size());
  for (std::size_t k = 0; k < low.size(); ++k)
    low[k] = static_cast<unsigned char>(k % 256), high[k] = static_cast<unsigned char>(k / 256);
  int size = 0;
  MPI_Pack_size(count, type, MPI_COMM_SELF, &size);
  std::vector<unsigned> all;
  std::vector<unsigned char> packed(static_cast<std::size_t>(size) + 1);
  for (const auto* part : {&low, &high}) {
    int at = 0;
    EXPECT_EQ(MPI_Pack(part->data(), count, type, packed.data(), size, &at, MPI_COMM_SELF), MPI_SUCCESS);
    all.resize(static_cast<std::size_t>(at));
    for (std::size_t k = 0; k < all.size(); ++k) all[k] += packed[k] * (part == &low ? 1u : 256u);
  }
  return all;
}

/// (MPIs differ in whether they round an odd extent up: there is none here.)
void expect_same(const Made& large, const Made& plain) {
  EXPECT_EQ(bytes_of(large.get()), bytes_of(plain.get()));
  EXPECT_EQ(bytes_of(large.get(), 2), bytes_of(plain.get(), 2));  // and the extents
}

MPI_Datatype vector_of_shorts() {
  MPI_Datatype t = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 3, MPI_SHORT, &t);
  MPI_Type_commit(&t);
  return t;
}

TEST(LargeCount, Contiguous) {
  MPI_Datatype vector = vector_of_shorts();
  for (MPI_Datatype type : {MPI_INT, vector})
    for (const int count : {0, 1, 2, 3, 4, 5, 8, 9, 27, 30, 31, 100, 243, 250})
      for (const MPI_Count limit : {2, 3, 7, 1000})
        expect_same(Made([&](auto* t) { return detail::make_contiguous(count, type, t, limit); }),
                    Made([&](auto* t) { return MPI_Type_contiguous(count, type, t); }));
  MPI_Type_free(&vector);
}

TEST(LargeCount, Strided) {
  MPI_Datatype vector = vector_of_shorts();
  for (MPI_Datatype type : {MPI_INT, vector})
    for (const int count : {1, 2, 3, 5, 9, 31, 100})
      for (const MPI_Count limit : {2, 3, 7, 1000})
        for (const int stride : {4, 12, 48})
          expect_same(Made([&](auto* t) { return detail::make_strided(count, stride, type, t, limit); }),
                      Made([&](auto* t) { return MPI_Type_create_hvector(count, 1, stride, type, t); }));
  MPI_Type_free(&vector);
}

TEST(LargeCount, Blocks) {
  const std::vector<MPI_Count> lengths{3, 0, 12, 8}, places{0, 20, 40, 200};
  const std::vector<int> short_lengths(lengths.begin(), lengths.end());
  const std::vector<MPI_Aint> short_places(places.begin(), places.end());
  const std::vector<MPI_Datatype> types{MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_CHAR};
  for (const MPI_Count limit : {4, 5, 11, 100}) {
    for (MPI_Datatype type : {MPI_INT, MPI_FLOAT})
      expect_same(Made([&](auto* t) {
                    return detail::make_blocks(4, lengths.data(), places.data(), nullptr, type, t, limit);
                  }),
                  Made([&](auto* t) {
                    return MPI_Type_create_hindexed(4, short_lengths.data(), short_places.data(), type, t);
                  }));
    expect_same(Made([&](auto* t) {
                  return detail::make_blocks(4, lengths.data(), places.data(), types.data(), MPI_DATATYPE_NULL, t,
                                             limit);
                }),
                Made([&](auto* t) {
                  return MPI_Type_create_struct(4, short_lengths.data(), short_places.data(), types.data(), t);
                }));
  }
  MPI_Datatype none = MPI_DATATYPE_NULL;
  EXPECT_EQ(detail::make_blocks(4, lengths.data(), places.data(), nullptr, MPI_INT, &none, 3), MPI_ERR_COUNT);
  EXPECT_EQ(none, MPI_DATATYPE_NULL);
}

TEST(LargeCount, PackingAndReducingInParts) {
  MPI_Datatype vector = vector_of_shorts();
  std::vector<short> from(4 * 11), to(from.size(), -1), expected(to);
  std::iota(from.begin(), from.end(), short{1});
  for (std::size_t k = 0; k < from.size(); k += 4) expected[k] = from[k], expected[k + 3] = from[k + 3];
  for (const MPI_Count limit : {4, 7, 8, 40, 1000}) {
    std::vector<char> buffer(3 + 44, 'x');
    MPI_Count at = 3;
    EXPECT_EQ(detail::pack_parts(from.data(), 11, vector, buffer.data(), 47, &at, MPI_COMM_SELF, limit),
              MPI_SUCCESS);
    EXPECT_EQ(at, 47);
    EXPECT_EQ(std::string(buffer.data(), 3), "xxx");
    std::fill(to.begin(), to.end(), short{-1});
    at = 3;
    EXPECT_EQ(detail::unpack_parts(buffer.data(), 47, &at, to.data(), 11, vector, MPI_COMM_SELF, limit),
              MPI_SUCCESS);
    EXPECT_EQ(at, 47);
    EXPECT_EQ(to, expected);
  }
  char byte = 0;
  MPI_Count at = 0;
  EXPECT_EQ(detail::pack_parts(from.data(), 1, vector, &byte, 1, &at, MPI_COMM_SELF, 3), MPI_ERR_COUNT);
  EXPECT_EQ(detail::unpack_parts(&byte, 1, &at, to.data(), 1, vector, MPI_COMM_SELF, 3), MPI_ERR_COUNT);
  MPI_Type_free(&vector);

  std::vector<int> a(10), b(10, 100);
  std::iota(a.begin(), a.end(), 0);
  EXPECT_EQ(detail::reduce_parts(a.data(), b.data(), 10, MPI_INT, MPI_SUM, 3), MPI_SUCCESS);
  for (int k = 0; k < 10; ++k) EXPECT_EQ(b[static_cast<std::size_t>(k)], 100 + k);
}

}  // namespace
}  // namespace isohalo::mpi
