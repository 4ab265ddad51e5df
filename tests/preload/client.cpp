/// A program that knows MPI alone, but for a guard of MPI_Finalize: its collectives against formulas, over types,
/// operations, counts, roots, places and communicators, with messages under way and ranks that are late. To be run
/// with libisohalo_mpi.so preloaded, and without. usage: preload_client [CALLS [SEED]] | barriers COUNT | limited
/// COUNT | mixed COUNT (levels of threads) | refusals COUNT

#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "apps/common/finalize_guard.hpp"

namespace {

int failures = 0, world_rank = 0;

void expect(bool ok, const char* what, long call) {
  if (ok || ++failures > 5) return;
  std::fprintf(stderr, "rank %d: FAILED: %s, call %ld\n", world_rank, what, call);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  int in(int low, int high) {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return low + static_cast<int>((z ^ (z >> 31)) % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t state_;
};

/// A communicator, and how a rank's number in it makes its values.
struct Group {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
  explicit Group(MPI_Comm c) : comm(c) {
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
  }
};

constexpr int kCounts[] = {0, 1, 2, 3, 7, 64, 127, 511, 512, 513, 1000, 4099, 16411, 70001};

/// Element i of rank r: small whole numbers, exact in every type.
int value(int rank, int i) {
  return (rank * 13 + i * 7) % 5 + 1;
}

template <class T>
std::vector<T> values(int rank, int count) {
  std::vector<T> v(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) v[static_cast<std::size_t>(i)] = static_cast<T>(value(rank, i));
  return v;
}

template <class T>
void reductions(const Group& g, MPI_Datatype type, Random& same, long call) {
  const int count = kCounts[same.in(0, 13)], root = same.in(0, g.size - 1), which = same.in(0, 2);
  const bool in_place = same.in(0, 1);
  const MPI_Op op = which == 0 ? MPI_SUM : which == 1 ? MPI_MAX : MPI_MIN;
  std::vector<T> mine = values<T>(g.rank, count), result(mine.size(), T(77)), expected = values<T>(0, count);
  for (int r = 1; r < g.size; ++r)
    for (int i = 0; i < count; ++i) {
      T& e = expected[static_cast<std::size_t>(i)];
      const T v = static_cast<T>(value(r, i));
      e = which == 0 ? static_cast<T>(e + v) : which == 1 ? std::max(e, v) : std::min(e, v);
    }
  if (same.in(0, 1)) {
    if (in_place) result = mine;
    MPI_Allreduce(in_place ? MPI_IN_PLACE : mine.data(), result.data(), count, type, op, g.comm);
    expect(result == expected, "MPI_Allreduce", call);
  } else {
    const bool here = in_place && g.rank == root;
    if (here) result = mine;
    MPI_Reduce(here ? MPI_IN_PLACE : mine.data(), result.data(), count, type, op, root, g.comm);
    if (g.rank == root) expect(result == expected, "MPI_Reduce", call);
  }
}

/// Every second number of a column: a derived type, and its packed form.
class Strided {
 public:
  explicit Strided(int count) : count_(count) {
    MPI_Type_vector(std::max(count, 1), 1, 2, MPI_INT, &type_);
    MPI_Type_commit(&type_);
  }
  ~Strided() { MPI_Type_free(&type_); }
  MPI_Datatype type() const { return type_; }
  std::vector<int> spread(const std::vector<int>& v) const {
    std::vector<int> wide(2 * static_cast<std::size_t>(std::max(count_, 1)), -9);
    for (std::size_t i = 0; i < v.size(); ++i) wide[2 * i] = v[i];
    return wide;
  }

 private:
  int count_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

void moves(const Group& g, Random& same, long call) {
  const int count = kCounts[same.in(0, 11)], root = same.in(0, g.size - 1), what = same.in(0, 4);
  const bool in_place = same.in(0, 1), derived = same.in(0, 1);
  MPI_Datatype whole = MPI_DATATYPE_NULL;  // of all numbers of a rank
  MPI_Type_contiguous(count, MPI_INT, &whole);
  MPI_Type_commit(&whole);
  const MPI_Datatype type = derived ? whole : MPI_INT;
  const int number = derived ? 1 : count;
  std::vector<int> mine = values<int>(g.rank, count), all(static_cast<std::size_t>(count * g.size), -1), expected;
  for (int r = 0; r < g.size; ++r)
    for (int v : values<int>(r, count)) expected.push_back(v);
  int* const place = all.data() + g.rank * count;
  if (what == 0) {  // a root of one type, others of another with the same signature
    std::vector<int> data = g.rank == root ? mine : std::vector<int>(mine.size(), -1);
    const Strided strided(count);
    if (count > 0 && g.rank % 2) {
      std::vector<int> wide = strided.spread(data);
      MPI_Bcast(wide.data(), 1, strided.type(), root, g.comm);
      expect(wide == strided.spread(values<int>(root, count)), "MPI_Bcast of a strided type", call);
    } else {
      MPI_Bcast(data.data(), count, MPI_INT, root, g.comm);
      expect(data == values<int>(root, count), "MPI_Bcast", call);
    }
  } else if (what == 1) {
    const bool here = in_place && g.rank == root;
    if (here) std::copy(mine.begin(), mine.end(), place);
    MPI_Gather(here ? MPI_IN_PLACE : mine.data(), count, MPI_INT, g.rank == root ? all.data() : nullptr, number,
               type, root, g.comm);
    if (g.rank == root) expect(all == expected, "MPI_Gather", call);
  } else if (what == 2) {
    if (in_place) std::copy(mine.begin(), mine.end(), place);
    MPI_Allgather(in_place ? MPI_IN_PLACE : mine.data(), in_place ? 0 : count,
                  in_place ? MPI_DATATYPE_NULL : MPI_INT, all.data(), number, type, g.comm);
    expect(all == expected, "MPI_Allgather", call);
  } else if (what == 3) {
    std::vector<int> part(mine.size(), -1);
    const bool here = in_place && g.rank == root;
    MPI_Scatter(g.rank == root ? expected.data() : nullptr, number, type, here ? MPI_IN_PLACE : part.data(), count,
                MPI_INT, root, g.comm);
    expect(here || part == mine, "MPI_Scatter", call);
  } else {
    MPI_Barrier(g.comm);
  }
  MPI_Type_free(&whole);
}

/// x -> a x + b modulo a prime, one after the other: does not commute.
void then(void* in, void* inout, int* n, MPI_Datatype*) {
  constexpr long p = 1000003;
  for (int i = 0; i < *n; ++i) {
    const long f = static_cast<long*>(in)[i], g = static_cast<long*>(inout)[i];
    static_cast<long*>(inout)[i] = f / p * (g / p) % p * p + (g / p * (f % p) + g % p) % p;
  }
}

void order_of_ranks(const Group& g, MPI_Op op, Random& same, long call) {
  const int count = kCounts[same.in(1, 12)], root = same.in(0, g.size - 1);
  const auto at = [](int r, int i) { return (static_cast<long>(r) * 97 + i % 50 + 2) * 1000003 + r + 1; };
  std::vector<long> mine, result(static_cast<std::size_t>(count)), expected;
  for (int i = 0; i < count; ++i) {
    mine.push_back(at(g.rank, i));
    long all = at(g.size - 1, i);
    int one = 1;
    for (int r = g.size - 2; r >= 0; --r) {
      long left = at(r, i);
      then(&left, &all, &one, nullptr);
    }
    expected.push_back(all);
  }
  MPI_Reduce(mine.data(), result.data(), count, MPI_LONG, op, root, g.comm);
  if (g.rank == root) expect(result == expected, "MPI_Reduce in the order of ranks", call);
  MPI_Allreduce(mine.data(), result.data(), count, MPI_LONG, op, g.comm);
  expect(result == expected, "MPI_Allreduce in the order of ranks", call);
}

struct Located {
  double value;
  int place;
};

void locations(const Group& g, long call) {
  Located mine{static_cast<double>((g.rank * 7 + call) % g.size), g.rank}, result{-1, -1};
  MPI_Allreduce(&mine, &result, 1, MPI_DOUBLE_INT, MPI_MAXLOC, g.comm);
  Located expected{-1, -1};
  for (int r = 0; r < g.size; ++r)
    if (const double v = static_cast<double>((r * 7 + call) % g.size); v > expected.value) expected = {v, r};
  expect(result.value == expected.value && result.place == expected.place, "MPI_MAXLOC", call);
}

/// Memory in KiB that the process has ever had, files that it has open, and pieces of memory that it has mapped.
struct Held {
  long memory = 0, files = 0, maps = 0;
};

Held held() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const std::filesystem::directory_iterator files("/proc/self/fd");
  std::ifstream maps("/proc/self/maps");
  return {usage.ru_maxrss, std::distance(begin(files), end(files)),
          std::count(std::istreambuf_iterator<char>(maps), {}, '\n')};
}

/// So many barriers, and communicators that are made, used and freed, leave nothing.
void barriers(long count) {
  const auto some = [](long n, long communicators) {
    for (long k = 0; k < n; ++k) MPI_Barrier(MPI_COMM_WORLD);
    for (long k = 0; k < communicators; ++k) {
      MPI_Comm copy = MPI_COMM_NULL;
      MPI_Comm_dup(MPI_COMM_WORLD, &copy);
      MPI_Barrier(copy);
      MPI_Comm_free(&copy);
    }
  };
  some(count / 10 + 1, 20);
  const auto before = held();
  some(count, 40);
  const auto after = held();
  expect(after.memory <= before.memory + 2048, "memory grows", after.memory - before.memory);
  expect(after.files == before.files, "files stay open", after.files - before.files);
  expect(after.maps <= before.maps + 4, "memory stays mapped",
         after.maps - before.maps);  // MPI's own may grow a little
}

/// Buffers that are none are errors of the call, and the next call is as if they had not been.
void refusals() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double a[4] = {1, 2, 3, 4};
  std::vector<double> b(4 * static_cast<std::size_t>(size));
  double* const mine = b.data() + 4 * world_rank;
  const auto refused = [](int code) {
    int of_class = MPI_SUCCESS;
    MPI_Error_class(code, &of_class);
    return of_class == MPI_ERR_BUFFER;
  };
  const MPI_Comm w = MPI_COMM_WORLD;
  expect(refused(MPI_Allreduce(a, a, 4, MPI_DOUBLE, MPI_SUM, w)), "one buffer for both", 0);
  expect(refused(MPI_Allreduce(nullptr, b.data(), 4, MPI_DOUBLE, MPI_SUM, w)), "NULL is sent", 0);
  expect(refused(MPI_Allreduce(a, MPI_IN_PLACE, 4, MPI_DOUBLE, MPI_SUM, w)), "MPI_IN_PLACE receives", 0);
  expect(refused(MPI_Bcast(nullptr, 4, MPI_DOUBLE, 0, w)), "a broadcast of NULL", 0);
  expect(refused(MPI_Allgather(mine, 4, MPI_DOUBLE, b.data(), 4, MPI_DOUBLE, w)), "a part that is in place already",
         0);
  expect(MPI_Allreduce(a, b.data(), 4, MPI_DOUBLE, MPI_SUM, w) == MPI_SUCCESS && b[3] == 4 * size, "the next call",
         0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[1] : "";
  const char* const number = std::getenv("PMI_RANK");
  int level = mode == "mixed" && number && std::atoi(number) % 2 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, level, &level);
  isohalo::guard_finalize();
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  if (mode == "limited") {  // no file may be as large as the memory that the library wants
    const rlimit small{1 << 16, 1 << 16};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  if (mode == "refusals") {
    refusals();
    MPI_Finalize();
    return failures ? 1 : 0;
  }
  if (mode == "barriers" || mode == "limited" || mode == "mixed") {
    barriers(std::atol(argv[2]));
    MPI_Finalize();
    return failures ? 1 : 0;
  }
  const long calls = argc > 1 ? std::atol(argv[1]) : 2000;
  Random same(argc > 2 ? static_cast<std::uint64_t>(std::atol(argv[2])) : 1);
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm copy = MPI_COMM_NULL, reversed = MPI_COMM_NULL, halves = MPI_COMM_NULL, alone = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - world_rank, &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &halves);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank, 0, &alone);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(then, 0, &op);
  std::vector<Group> groups;
  for (MPI_Comm c : {MPI_COMM_WORLD, copy, reversed, halves, alone}) groups.emplace_back(c);
  for (long call = 0; call < calls; ++call) {
    const Group& g = groups[static_cast<std::size_t>(same.in(0, 4))];
    // A message to the next rank of the world, which stays under way during the collective.
    int out = static_cast<int>(call), in = -1;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const bool message = same.in(0, 2) == 0;
    if (message) {
      MPI_Irecv(&in, 1, MPI_INT, (world_rank + size - 1) % size, 5, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(&out, 1, MPI_INT, (world_rank + 1) % size, 5, MPI_COMM_WORLD, &requests[1]);
    }
    if (same.in(0, 40) == static_cast<int>(world_rank % 40)) usleep(300);
    // Halves draw as one: what they do depends on `same` alone.
    switch (same.in(0, 6)) {
      case 0:
        reductions<double>(g, MPI_DOUBLE, same, call);
        break;
      case 1:
        reductions<float>(g, MPI_FLOAT, same, call);
        break;
      case 2:
        reductions<std::int64_t>(g, MPI_INT64_T, same, call);
        break;
      case 3:
        reductions<unsigned char>(g, MPI_UNSIGNED_CHAR, same, call);
        break;
      case 4:
        order_of_ranks(g, op, same, call);
        break;
      case 5:
        locations(g, call);
        break;
      default:
        moves(g, same, call);
    }
    if (message) {
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      expect(in == out, "a message beside a collective", call);
    }
    if (call % 500 == 499) {  // communicators come and go
      MPI_Comm_free(&copy);
      MPI_Comm_dup(MPI_COMM_WORLD, &copy);
      groups[1] = Group(copy);
    }
  }
  MPI_Op_free(&op);
  for (MPI_Comm* c : {&copy, &reversed, &halves, &alone}) MPI_Comm_free(c);
  int all = 0;
  MPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world_rank == 0) std::printf("%ld calls on %d ranks, %d failed\n", calls, size, all);
  MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return all ? 1 : 0;
}
