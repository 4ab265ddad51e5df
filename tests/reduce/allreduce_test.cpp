/// The plain allreduce over MPI: types, operations, schedules, refusals.

#include "framework/reduce/allreduce.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "datatypes/error.hpp"
#include "framework/schedule/schedule_check.hpp"
#include "framework/schedule/schedule_search.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

std::vector<std::string> plain_schedules(int p) {
  std::set<std::string> texts{"auto", recursive_doubling(p).text(), elimination(p).text()};
  for (const Plan& plan : plan_candidates(p, {}, 8)) texts.insert(plan.schedule.text());
  texts.erase("");
  return {texts.begin(), texts.end()};
}

TEST(ScheduledAllreduce, SumsAnyCountByAnySchedule) {
  const int p = test::ranks();
  for (const std::string& text : plain_schedules(p))
    for (const int count : {0, 1, 7, 1000}) {
      ScheduledAllreduce allreduce(MPI_COMM_WORLD, count, MPI_INT64_T, MPI_SUM, text);
      for (int again = 0; again < 3; ++again) {
        std::vector<std::int64_t> v;
        for (int k = 0; k < count; ++k) v.push_back((test::rank() + 1) * 1000 + k + again);
        allreduce.reduce(v.data());
        for (int k = 0; k < count; ++k)
          ASSERT_EQ(v[static_cast<std::size_t>(k)], 1000 * p * (p + 1) / 2 + p * (k + again))
              << text << " count " << count;
      }
    }
}

/// 2 x 2 matrices: associative, not commutative.
void multiply(void* in, void* in_out, int* length, MPI_Datatype*) {
  const auto* a = static_cast<const std::int64_t*>(in);
  auto* b = static_cast<std::int64_t*>(in_out);
  for (int k = 0; k < *length; ++k, a += 4, b += 4) {
    const std::int64_t c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                               a[2] * b[1] + a[3] * b[3]};
    std::copy(c, c + 4, b);
  }
}

TEST(ScheduledAllreduce, OperationsThatDoNotCommuteKeepRankOrder) {
  const int p = test::ranks();
  MPI_Datatype matrix;
  MPI_Op op;
  MPI_Type_contiguous(4, MPI_INT64_T, &matrix);
  MPI_Type_commit(&matrix);
  MPI_Op_create(multiply, 0, &op);
  const auto of = [](int rank) { return std::vector<std::int64_t>{1, rank + 1, rank % 3, 1 - rank}; };
  std::vector<std::int64_t> expected = of(0);
  for (int r = 1; r < p; ++r) {
    auto next = of(r);
    int one = 1;
    multiply(expected.data(), next.data(), &one, nullptr);
    expected = next;
  }
  int refused = 0, done = 0;
  for (const std::string& text : plain_schedules(p)) {
    if (text != "auto" && !keeps_rank_order(Schedule::parse(text, p))) {
      EXPECT_THROW(ScheduledAllreduce(MPI_COMM_WORLD, 1, matrix, op, text), Error) << text;
      ++refused;
      continue;
    }
    ScheduledAllreduce allreduce(MPI_COMM_WORLD, 1, matrix, op, text);
    auto v = of(test::rank());
    allreduce.reduce(v.data());
    EXPECT_EQ(v, expected) << text;
    ++done;
  }
  EXPECT_GT(done, 0);
  MPI_Op_free(&op);
  MPI_Type_free(&matrix);
}

TEST(ScheduledAllreduce, SameRoundingOnAllRanksAndInAllRuns) {
  const int p = test::ranks();
  test::Random random(3);
  std::vector<double> values;
  for (int r = 0; r < p; ++r) values.push_back(random.real(-1, 1) * (r % 2 ? 1e16 : 1));
  for (const std::string& text : plain_schedules(p)) {
    ScheduledAllreduce allreduce(MPI_COMM_WORLD, 1, MPI_DOUBLE, MPI_SUM, text);
    double first = values[static_cast<std::size_t>(test::rank())], again = first;
    allreduce.reduce(&first);
    allreduce.reduce(&again);
    EXPECT_EQ(first, again);
    double extremes[2] = {first, -first};
    Communicator::of(MPI_COMM_WORLD).allreduce(extremes, 2, MPI_DOUBLE, MPI_MAX);
    EXPECT_EQ(extremes[0], -extremes[1]) << text;
  }
}

TEST(ScheduledAllreduce, TypesWithGaps) {
  MPI_Datatype pair, spaced;  // one int of every three, and a lower bound that is not zero
  MPI_Type_vector(2, 1, 3, MPI_INT, &pair);
  const int length = 1;
  const MPI_Aint shift = sizeof(int);
  MPI_Type_create_struct(1, &length, &shift, &pair, &spaced);
  MPI_Type_commit(&spaced);
  MPI_Op op;
  MPI_Op_create(
      [](void* in, void* in_out, int* n, MPI_Datatype* type) {
        MPI_Aint lower, extent;
        MPI_Type_get_extent(*type, &lower, &extent);
        for (int k = 0; k < *n; ++k)
          for (int j : {1, 4})
            reinterpret_cast<int*>(static_cast<char*>(in_out) + k * extent)[j] +=
                reinterpret_cast<const int*>(static_cast<char*>(in) + k * extent)[j];
      },
      1, &op);
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(spaced, &lower, &extent);
  for (const std::string& text : plain_schedules(test::ranks())) {
    ScheduledAllreduce allreduce(MPI_COMM_WORLD, 3, spaced, op, text);
    std::vector<int> v(5 + 2 * static_cast<std::size_t>(extent) / sizeof(int), -7);
    for (std::size_t k = 0; k < 3; ++k)
      for (const std::size_t j : {1, 4}) v[k * static_cast<std::size_t>(extent) / sizeof(int) + j] = test::rank();
    const auto before = v;
    allreduce.reduce(v.data());
    const int sum = test::ranks() * (test::ranks() - 1) / 2;
    auto expected = before;
    for (std::size_t k = 0; k < 3; ++k)
      for (const std::size_t j : {1, 4}) expected[k * static_cast<std::size_t>(extent) / sizeof(int) + j] = sum;
    EXPECT_EQ(v, expected) << text;
  }
  MPI_Op_free(&op);
  MPI_Type_free(&spaced);
  MPI_Type_free(&pair);
}

TEST(ScheduledAllreduce, TypesThatGoBackwards) {
  MPI_Datatype back;
  MPI_Type_create_resized(MPI_INT, 0, -2 * static_cast<MPI_Aint>(sizeof(int)), &back);
  MPI_Type_commit(&back);
  MPI_Op op;  // MPI's own operations are not for types that are made
  MPI_Op_create(
      [](void* in, void* in_out, int* n, MPI_Datatype*) {
        for (int k = 0; k < *n; ++k) static_cast<int*>(in_out)[-2 * k] += static_cast<const int*>(in)[-2 * k];
      },
      1, &op);
  for (const std::string& text : plain_schedules(test::ranks())) {
    ScheduledAllreduce allreduce(MPI_COMM_WORLD, 3, back, op, text);
    std::vector<int> v(5, -7), expected(5, -7);
    for (const std::size_t k : {0, 2, 4}) {
      v[k] = test::rank() + static_cast<int>(k);
      expected[k] = test::ranks() * (test::ranks() - 1) / 2 + test::ranks() * static_cast<int>(k);
    }
    allreduce.reduce(&v[4]);
    EXPECT_EQ(v, expected) << text;
  }
  MPI_Op_free(&op);
  MPI_Type_free(&back);
}

TEST(ScheduledAllreduce, NonBlocking) {
  ScheduledAllreduce a(MPI_COMM_WORLD, 1, MPI_INT, MPI_MAX), b(MPI_COMM_WORLD, 1, MPI_INT, MPI_MIN);
  for (int again = 0; again < 5; ++again) {
    int most = test::rank() + again, least = most;
    a.start(&most);
    b.start(&least);
    while (!b.test()) a.test();
    a.wait();
    EXPECT_EQ(most, test::ranks() - 1 + again);
    EXPECT_EQ(least, again);
  }
}

TEST(ScheduledAllreduce, RefusesByNameOnAllRanks) {
  const int p = test::ranks();
  const auto make = [](int count, const std::string& text) {
    ScheduledAllreduce(MPI_COMM_WORLD, count, MPI_INT, MPI_SUM, text);
  };
  test::expect_refusal("give 0 or more", [&] { make(-1, "auto"); });
  test::expect_refusal("\"a" + std::to_string(p + 1) + "\"", [&] { make(1, "a" + std::to_string(p + 1)); });
  test::expect_refusal("nonsense", [&] { make(1, "nonsense"); });
  // What MPI_Reduce_local would end the program for, with the error handler that programs begin with.
  const auto combine = [](MPI_Datatype type, MPI_Op op) { ScheduledAllreduce(MPI_COMM_WORLD, 1, type, op); };
  test::expect_refusal("by MPI_OP_NULL", [&] { combine(MPI_DOUBLE, MPI_OP_NULL); });
  test::expect_refusal("of MPI_DATATYPE_NULL", [&] { combine(MPI_DATATYPE_NULL, MPI_SUM); });
  test::expect_refusal("MPI does not combine elements of this type", [&] { combine(MPI_DOUBLE, MPI_BAND); });
  MPI_Errhandler now = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
  EXPECT_EQ(now, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&now);
  if (p < 2) return;
  test::expect_refusal("dissemination", [&] { make(1, dissemination(p, 2).text()); });
  test::expect_refusal("differs between ranks", [&] { make(test::rank() == 0 ? 1 : 2, "auto"); });
  test::expect_refusal("differs between ranks", [&] {
    ScheduledAllreduce(MPI_COMM_WORLD, 1, test::rank() == 0 ? MPI_DOUBLE : MPI_INT, MPI_SUM, "auto");
  });
  test::expect_refusal("differs between ranks", [&] {
    ScheduledAllreduce(MPI_COMM_WORLD, 1, MPI_INT, MPI_SUM, "auto",
                       {.costs = {.latency_ns = test::rank() == 0 ? 1e-3 : 0.0}});
  });
  test::expect_refusal("rank 1: ", [&] { make(1, test::rank() == 1 ? "a77" : "auto"); });
  if (p == 6) {
    test::expect_refusal("differs between ranks", [&] { make(1, test::rank() == 0 ? "a2,a3" : "a3,a2"); });
  }
}

}  // namespace
}  // namespace isohalo
