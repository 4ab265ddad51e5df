/// The collectives on an MPI that offers the fewest tags the standard allows: they come round again all the time.

#include <gtest/gtest.h>

#include "tests/neighborhood/collective_cases.hpp"
#include "tests/neighborhood/counters.hpp"

namespace {
int fewest_tags = 32767;     // MPI 4.0, section 9.1.1
constexpr int kRoom = 1638;  // operations for which a quarter of them suffices
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
  for (int n = 0; n < 3 * kRoom + 100; ++n) {  // blocking, started and persistent ones in turn
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

/// What is left of an operation that one rank refused meets later ones that have the same tags.
TEST(FewTags, StaleNoticesAreNoData) {
  if (ranks() == 1) return;
  const Setting ring(MPI_COMM_WORLD, {ranks()}, {1}, {1});
  MPI_Comm_set_errhandler(ring.cart, MPI_ERRORS_RETURN);
  isohalo_neighborhood iso = nullptr;
  ASSERT_EQ(isohalo_neighborhood_create(ring.cart, ring.s, ring.relative.data(), &iso), MPI_SUCCESS);
  std::vector<std::int64_t> out(150), in(150);  // more bytes than a notice has
  const auto exchange = [&](int count, MPI_Datatype type) {
    return isohalo_neighbor_alltoall(out.data(), count, type, in.data(), count, type, iso);
  };
  for (int turn = 0; turn < 3; ++turn) {
    exchange(1, rank() == 0 ? MPI_DATATYPE_NULL : MPI_INT64_T);
    for (int n = 0; n < kRoom + 100; ++n) {
      for (auto& v : out) v = 10000 * rank() + n;
      ASSERT_EQ(exchange(n % 2 ? 50 : 150, MPI_INT64_T), MPI_SUCCESS) << isohalo_error_text() << " after " << n;
      ASSERT_EQ(in[49], 10000 * ((rank() + ranks() - 1) % ranks()) + n);
    }
  }
  isohalo_neighborhood_free(&iso);
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
  std::vector<Values> values(2 * kRoom);
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

/// Neighborhoods begin at tags of their own: none gets those of another's live requests.
TEST(FewTags, NeighborhoodsKeepApart) {
  constexpr int neighborhoods = 8, live = kRoom / 20;
  const Setting ring(MPI_COMM_WORLD, {ranks()}, {1}, {1});
  MPI_Comm_set_errhandler(ring.cart, MPI_ERRORS_RETURN);
  std::vector<isohalo_neighborhood> all(neighborhoods);
  std::vector<isohalo_request> requests;
  std::int64_t out = rank(), in = -1;
  for (auto& iso : all)
    ASSERT_EQ(isohalo_neighborhood_create(ring.cart, ring.s, ring.relative.data(), &iso), MPI_SUCCESS);
  for (int n = 0; n < live; ++n)
    for (auto& iso : all)
      ASSERT_EQ(
          isohalo_neighbor_alltoall_init(&out, 1, MPI_INT64_T, &in, 1, MPI_INT64_T, iso, &requests.emplace_back()),
          MPI_SUCCESS)
          << isohalo_error_text();
  for (auto& r : requests) ASSERT_EQ(isohalo_start(r), MPI_SUCCESS);
  for (auto& r : requests) ASSERT_EQ(isohalo_wait(&r), MPI_SUCCESS) << isohalo_error_text();
  EXPECT_EQ(in, (rank() + ranks() - 1) % ranks());
  for (auto& r : requests) isohalo_request_free(&r);
  for (auto& iso : all) isohalo_neighborhood_free(&iso);
}

/// One rank alone holds on to what the others have ended: what would get the same tags there fails on all that have
/// to do with that rank.
TEST(FewTags, HeldByOneRankAlone) {
  if (ranks() == 1) return;
  const Setting ring(MPI_COMM_WORLD, {ranks()}, {1}, {1, -1});
  MPI_Comm_set_errhandler(ring.cart, MPI_ERRORS_RETURN);
  isohalo_neighborhood iso = nullptr;
  ASSERT_EQ(isohalo_neighborhood_create(ring.cart, ring.s, ring.relative.data(), &iso), MPI_SUCCESS);
  const bool last = rank() == ranks() - 1, near = last || rank() == 0 || rank() == ranks() - 2;
  std::int64_t out[2], in[2];
  for (const bool persistent : {true, false}) {
    isohalo_request held = nullptr;
    if (persistent) {
      ASSERT_EQ(isohalo_neighbor_alltoall_init(out, 1, MPI_INT64_T, in, 1, MPI_INT64_T, iso, &held), MPI_SUCCESS);
    } else {
      ASSERT_EQ(isohalo_ineighbor_alltoall(out, 1, MPI_INT64_T, in, 1, MPI_INT64_T, iso, &held), MPI_SUCCESS);
    }
    if (!last) {
      ASSERT_EQ(isohalo_wait(&held), MPI_SUCCESS) << isohalo_error_text();
      if (persistent) isohalo_request_free(&held);
    }
    int errors = 0;
    for (int n = 0; n < kRoom + 100; ++n) {
      out[0] = 10000 * rank() + n, out[1] = -out[0];
      isohalo_request r = nullptr;
      int code = MPI_SUCCESS, error_class = MPI_SUCCESS;
      if (persistent) {
        code = isohalo_neighbor_alltoall_init(out, 1, MPI_INT64_T, in, 1, MPI_INT64_T, iso, &r);
        if (code == MPI_SUCCESS) code = isohalo_start(r);
        if (code == MPI_SUCCESS) code = isohalo_wait(&r);
        if (r) isohalo_request_free(&r);
      } else {
        code = isohalo_neighbor_alltoall(out, 1, MPI_INT64_T, in, 1, MPI_INT64_T, iso);
      }
      if (code == MPI_SUCCESS) {
        EXPECT_EQ(in[0], 10000 * ((rank() + ranks() - 1) % ranks()) + n);
        continue;
      }
      ++errors;
      MPI_Error_class(code, &error_class);
      EXPECT_EQ(error_class, MPI_ERR_OTHER) << isohalo_error_text();
      if (!last) {
        const std::string who = "rank " + std::to_string(ranks() - 1) + ": ";
        EXPECT_NE(std::string(isohalo_error_text()).find(who), std::string::npos) << isohalo_error_text();
      }
    }
    EXPECT_EQ(errors, near ? 1 : 0);
    if (last) {
      ASSERT_EQ(isohalo_wait(&held), MPI_SUCCESS) << isohalo_error_text();
      if (persistent) isohalo_request_free(&held);
    }
  }
  isohalo_neighborhood_free(&iso);
}

}  // namespace
}  // namespace isohalo::test
