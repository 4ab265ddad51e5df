/// The collectives on an MPI that offers the fewest tags the standard allows: they come round again all the time.

#include <gtest/gtest.h>

#include "tests/neighborhood/collective_cases.hpp"
#include "tests/neighborhood/counters.hpp"

namespace {
int fewest_tags = 32767;     // MPI 4.0, section 9.1.1
constexpr int kRoom = 8192;  // operations for which a quarter of them suffices
}  // namespace

extern "C" int MPI_Comm_get_attr(MPI_Comm comm, int key, void* value, int* found) {
  if (key != MPI_TAG_UB) return PMPI_Comm_get_attr(comm, key, value, found);
  *static_cast<int**>(value) = &fewest_tags;
  *found = 1;
  return MPI_SUCCESS;
}

namespace isohalo::test {
namespace {

TEST(FewTags, ComeRoundAgain) {
  Random random(11);
  const Setting ring(MPI_COMM_WORLD, {ranks()}, {1}, {1, -1, 2, 0});
  isohalo_neighborhood iso = nullptr;
  ASSERT_EQ(isohalo_neighborhood_create(ring.cart, ring.s, ring.relative.data(), &iso), MPI_SUCCESS);
  largest_tag = 0;
  for (int n = 0; n < kRoom + 1000; ++n) {  // blocking, started and persistent ones in turn
    const auto kind = static_cast<Kind>(random.in(0, 5));
    Case c(ring, kind, random.in(0, 1), MPI_SUM, random);
    isohalo_neighborhood_set_algorithm(iso, static_cast<isohalo_algorithm>(random.in(0, 3)));
    c.refill(n);
    isohalo_request r = nullptr;
    ASSERT_EQ(c.call(iso, n % 3 ? &r : nullptr, n % 3 == 2), MPI_SUCCESS) << isohalo_error_text();
    if (n % 3 == 2) {
      ASSERT_EQ(isohalo_start(r), MPI_SUCCESS);
    }
    if (r) {
      ASSERT_EQ(isohalo_wait(&r), MPI_SUCCESS) << isohalo_error_text();
    }
    if (r) isohalo_request_free(&r);
    ASSERT_EQ(c.wrong(), 0) << c.text() << ", operation " << n;
  }
  isohalo_neighborhood_free(&iso);
  EXPECT_LE(largest_tag, fewest_tags);
  if (ranks() > 1) {  // the passing ones are in the upper half
    EXPECT_GT(largest_tag, fewest_tags / 2);
  }
}

/// As many live requests as there are tags for, started in opposite orders on the ranks; one more is refused.
TEST(FewTags, AreNeverSharedByLiveRequests) {
  const Setting ring(MPI_COMM_WORLD, {ranks()}, {1}, {1, -1});
  MPI_Comm_set_errhandler(ring.cart, MPI_ERRORS_RETURN);
  isohalo_neighborhood iso = nullptr;
  ASSERT_EQ(isohalo_neighborhood_create(ring.cart, ring.s, ring.relative.data(), &iso), MPI_SUCCESS);
  struct Values {
    std::int64_t out[2], in[2];
  };
  std::vector<Values> values(kRoom + 10);
  std::vector<isohalo_request> requests;
  int code = MPI_SUCCESS;
  while (requests.size() < values.size()) {
    isohalo_request r = nullptr;
    Values& v = values[requests.size()];
    code = isohalo_neighbor_alltoall_init(v.out, 1, MPI_INT64_T, v.in, 1, MPI_INT64_T, iso, &r);
    if (code != MPI_SUCCESS) break;
    requests.push_back(r);
  }
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  EXPECT_EQ(error_class, MPI_ERR_OTHER);
  EXPECT_NE(std::string(isohalo_error_text()).find("free requests sooner"), std::string::npos)
      << isohalo_error_text();
  EXPECT_EQ(requests.size(), static_cast<std::size_t>(kRoom));
  const int next = (rank() + 1) % ranks(), before = (rank() + ranks() - 1) % ranks();
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t k = 0; k < requests.size(); ++k)
      for (int side = 0; side < 2; ++side)
        values[k].out[side] = ((turn * 64 + rank()) * 10000 + static_cast<std::int64_t>(k)) * 2 + side,
        values[k].in[side] = -1;
    for (std::size_t n = 0; n < requests.size(); ++n) {
      const std::size_t k = rank() % 2 ? requests.size() - 1 - n : n;
      ASSERT_EQ(isohalo_start(requests[k]), MPI_SUCCESS);
    }
    for (isohalo_request& r : requests) ASSERT_EQ(isohalo_wait(&r), MPI_SUCCESS) << isohalo_error_text();
    for (std::size_t k = 0; k < requests.size(); ++k) {
      EXPECT_EQ(values[k].in[0], ((turn * 64 + before) * 10000 + static_cast<std::int64_t>(k)) * 2);
      EXPECT_EQ(values[k].in[1], ((turn * 64 + next) * 10000 + static_cast<std::int64_t>(k)) * 2 + 1);
    }
  }
  for (isohalo_request& r : requests) isohalo_request_free(&r);
  isohalo_neighborhood_free(&iso);
}

}  // namespace
}  // namespace isohalo::test
