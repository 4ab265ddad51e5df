/// The collectives on an MPI that offers the fewest tags the standard allows: they come round again all the time.

#include <gtest/gtest.h>

#include "tests/neighborhood/collective_cases.hpp"
#include "tests/neighborhood/counters.hpp"

namespace {
int fewest_tags = 32767;  // MPI 4.0, section 9.1.1
}

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
  for (int n = 0; n < 100; ++n) {  // blocking, started and persistent ones in turn
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

}  // namespace
}  // namespace isohalo::test
