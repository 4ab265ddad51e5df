/// Calls that programs make seldom: MPI's forms for large counts, displacements and buffers beyond 2^31 and 2^32,
/// absolute addresses, inter-communicators, an error handler of the caller's. Knows MPI alone, as client.cpp does.
/// usage: preload_corners forms | bottom | far | intercommunicators | handler | operations | tool | long_buffers

#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

int failures = 0, rank = 0, ranks = 1;

void expect(bool ok, const char* what, long which = 0) {
  if (!ok && ++failures <= 5) std::fprintf(stderr, "rank %d: FAILED: %s, %ld\n", rank, what, which);
}

/// Element i of a rank.
long value(int of, long i) {
  return of * 1000003L + i % 9973 + 1;
}

std::vector<long> values(int of, long count) {
  std::vector<long> v;
  for (long i = 0; i < count; ++i) v.push_back(value(of, i));
  return v;
}

/// Those of all ranks, one after the other.
std::vector<long> all_values(long count) {
  std::vector<long> all;
  for (int r = 0; r < ranks; ++r)
    for (long i = 0; i < count; ++i) all.push_back(value(r, i));
  return all;
}

std::vector<long> sums(long count) {
  std::vector<long> v(static_cast<std::size_t>(count));
  for (int r = 0; r < ranks; ++r)
    for (long i = 0; i < count; ++i) v[static_cast<std::size_t>(i)] += value(r, i);
  return v;
}

/// Each form with MPI_Count once, in place as well.
void forms() {
  const MPI_Comm w = MPI_COMM_WORLD;
  for (const long n : {0L, 1L, 13L, 4099L, 104729L}) {
    const MPI_Count count = n;
    const auto places = static_cast<std::size_t>(n);
    const int root = static_cast<int>(n % ranks);
    const bool here = rank == root;
    const std::vector<long> mine = values(rank, n), all = all_values(n);
    std::vector<long> got = here ? mine : std::vector<long>(places, -1);
    MPI_Bcast_c(got.data(), count, MPI_LONG, root, w);
    expect(got == values(root, n), "MPI_Bcast_c", n);
    got.assign(places, -1);
    MPI_Allreduce_c(mine.data(), got.data(), count, MPI_LONG, MPI_SUM, w);
    expect(got == sums(n), "MPI_Allreduce_c", n);
    got = mine;
    MPI_Allreduce_c(MPI_IN_PLACE, got.data(), count, MPI_LONG, MPI_SUM, w);
    expect(got == sums(n), "MPI_Allreduce_c in place", n);
    got.assign(places, -1);
    MPI_Reduce_c(mine.data(), got.data(), count, MPI_LONG, MPI_SUM, root, w);
    expect(!here || got == sums(n), "MPI_Reduce_c", n);
    std::vector<long> whole(all.size(), -1);
    MPI_Gather_c(mine.data(), count, MPI_LONG, here ? whole.data() : nullptr, count, MPI_LONG, root, w);
    expect(!here || whole == all, "MPI_Gather_c", n);
    whole.assign(all.size(), -1);
    MPI_Allgather_c(mine.data(), count, MPI_LONG, whole.data(), count, MPI_LONG, w);
    expect(whole == all, "MPI_Allgather_c", n);
    got.assign(places, -1);
    MPI_Scatter_c(here ? all.data() : nullptr, count, MPI_LONG, got.data(), count, MPI_LONG, root, w);
    expect(got == mine, "MPI_Scatter_c", n);
  }
  // More elements than an int counts, and no bytes.
  MPI_Datatype nothing = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  const MPI_Count many = (MPI_Count{1} << 32) + 5;
  int untouched = 7;
  expect(MPI_Bcast_c(&untouched, many, nothing, 0, w) == MPI_SUCCESS && untouched == 7, "elements without bytes");
  MPI_Type_free(&nothing);
}

/// A committed type of these blocks of longs at absolute addresses.
MPI_Datatype at_addresses(const std::vector<long*>& places, int each) {
  std::vector<MPI_Aint> addresses(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) MPI_Get_address(places[i], &addresses[i]);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed_block(static_cast<int>(places.size()), each, addresses.data(), MPI_LONG, &type);
  MPI_Type_commit(&type);
  return type;
}

/// Every buffer is MPI_BOTTOM, and its type says where data are: two halves that lie in the wrong order.
void bottom() {
  const MPI_Comm w = MPI_COMM_WORLD;
  constexpr int each = 700, n = 2 * each;
  std::vector<long> second(each), first(each), more(each), another(each);
  const auto put = [&](const std::vector<long>& v) {
    std::copy_n(v.begin(), each, first.begin());
    std::copy_n(v.begin() + each, each, second.begin());
  };
  const auto holds = [&](const std::vector<long>& a, const std::vector<long>& b, const std::vector<long>& v) {
    return std::equal(a.begin(), a.end(), v.begin()) && std::equal(b.begin(), b.end(), v.begin() + each);
  };
  MPI_Datatype halves = at_addresses({first.data(), second.data()}, each);
  MPI_Datatype others = at_addresses({another.data(), more.data()}, each);
  std::vector<long> whole(static_cast<std::size_t>(n * ranks), -1);
  // A part's type may not begin where the whole does: one with the extent of a part, for MPI_BOTTOM's whole.
  MPI_Datatype part = at_addresses({whole.data()}, n), parts = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(part, 0, n * static_cast<MPI_Aint>(sizeof(long)), &parts);
  MPI_Type_commit(&parts);
  for (int root = 0; root < ranks; ++root) {
    put(rank == root ? values(root, n) : std::vector<long>(n, -1));
    MPI_Bcast(MPI_BOTTOM, 1, halves, root, w);
    expect(holds(first, second, values(root, n)), "MPI_Bcast of absolute addresses", root);
    put(values(rank, n));
    whole.assign(whole.size(), -1);
    MPI_Gather(MPI_BOTTOM, 1, halves, MPI_BOTTOM, 1, parts, root, w);
    expect(rank != root || whole == all_values(n), "MPI_Gather of absolute addresses", root);
    whole.assign(whole.size(), -1);
    MPI_Allgather(MPI_BOTTOM, 1, halves, MPI_BOTTOM, 1, parts, w);
    expect(whole == all_values(n), "MPI_Allgather of absolute addresses", root);
    MPI_Scatter(MPI_BOTTOM, 1, parts, MPI_BOTTOM, 1, others, root, w);
    expect(holds(another, more, values(rank, n)), "MPI_Scatter of absolute addresses", root);
  }
  for (MPI_Datatype* t : {&halves, &others, &part, &parts}) MPI_Type_free(t);
}

/// Memory of which only what is touched is there.
char* reserve(std::size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  return static_cast<char*>(memory);
}

/// Elements that lie 2^30 bytes and a bit apart, in a buffer longer than 2^32 bytes.
void far() {
  constexpr MPI_Count apart = (MPI_Count{1} << 30) + 24, count = 6;
  const std::size_t bytes = static_cast<std::size_t>(apart * count);
  char* const memory = reserve(bytes);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(MPI_LONG, 0, apart, &type);
  MPI_Type_commit(&type);
  const auto at = [&](MPI_Count i) -> long& { return *reinterpret_cast<long*>(memory + i * apart); };
  for (int root = 0; root < ranks; ++root) {
    for (MPI_Count i = 0; i < count; ++i) at(i) = rank == root ? value(root, i) : -1;
    MPI_Bcast(memory, count, type, root, MPI_COMM_WORLD);
    for (MPI_Count i = 0; i < count; ++i) expect(at(i) == value(root, i), "elements that lie far apart", i);
  }
  MPI_Type_free(&type);
  munmap(memory, bytes);
}

/// Two groups: MPI alone knows how.
void intercommunicators() {
  const int mine = rank % 2, size = (ranks + 1 - mine) / 2, theirs = ranks - size;
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, mine, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - mine, 9, &inter);
  for (int round = 0; round < 3; ++round) {
    long sum = -1, expected = 0, word = round + 17;
    const long own = value(rank, round);
    for (int r = 1 - mine; r < ranks; r += 2) expected += value(r, round);
    MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, inter);
    expect(sum == expected, "MPI_Allreduce between groups", round);
    std::vector<long> all(static_cast<std::size_t>(theirs), -1);
    MPI_Allgather(&own, 1, MPI_LONG, all.data(), 1, MPI_LONG, inter);
    for (int k = 0; k < theirs; ++k)
      expect(all[static_cast<std::size_t>(k)] == value(2 * k + 1 - mine, round), "MPI_Allgather between groups", k);
    if (mine == 1) word = -1;
    MPI_Bcast(&word, 1, MPI_LONG, mine == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    expect(word == round + 17, "MPI_Bcast between groups", round);
    MPI_Reduce(&own, &sum, 1, MPI_LONG, MPI_SUM, mine == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    expect(rank != 0 || sum == expected, "MPI_Reduce between groups", round);
    MPI_Barrier(inter);
  }
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

int heard = 0, heard_class = MPI_SUCCESS;
MPI_Comm heard_of = MPI_COMM_NULL;

void hear(MPI_Comm* comm, int* code, ...) {
  ++heard;
  heard_of = *comm;
  MPI_Error_class(*code, &heard_class);
}

/// It is called once for each error, with the communicator and what the call then returns, and not for others.
void handler() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Errhandler mine = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(hear, &mine);
  MPI_Comm_set_errhandler(copy, mine);
  MPI_Errhandler_free(&mine);
  double a[4] = {1, 2, 3, 4}, b[4] = {};
  const auto is_heard = [&](int code, int expected_class) {
    int of_class = MPI_SUCCESS;
    MPI_Error_class(code, &of_class);
    const bool ok = heard == 1 && heard_of == copy && heard_class == expected_class && of_class == expected_class;
    heard = 0;
    return ok;
  };
  expect(is_heard(MPI_Allreduce(a, a, 4, MPI_DOUBLE, MPI_SUM, copy), MPI_ERR_BUFFER), "one buffer for both");
  expect(is_heard(MPI_Bcast(nullptr, 4, MPI_DOUBLE, 0, copy), MPI_ERR_BUFFER), "a broadcast of NULL");
  expect(is_heard(MPI_Bcast(a, 4, MPI_DOUBLE, ranks, copy), MPI_ERR_ROOT), "a root that is none");
  expect(is_heard(MPI_Allreduce(a, b, 4, MPI_DOUBLE, MPI_BAND, copy), MPI_ERR_OP), "bits of a double");
  expect(MPI_Allreduce(a, b, 4, MPI_DOUBLE, MPI_SUM, copy) == MPI_SUCCESS && b[3] == 4 * ranks && heard == 0,
         "the next call");
  MPI_Comm_free(&copy);
}

/// Two numbers of 32 bits in one: v -> factor v + summand.
std::uint64_t map_of(std::uint64_t factor, std::uint64_t summand) {
  return factor << 32 | (summand & 0xffffffff);
}

std::uint64_t composed(std::uint64_t a, std::uint64_t b) {
  return map_of((a >> 32) * (b >> 32), (a >> 32) * (b & 0xffffffff) + (a & 0xffffffff));
}

void compose(void* a, void* b, int* count, MPI_Datatype*) {
  auto* const to = static_cast<std::uint64_t*>(b);
  for (int i = 0; i < *count; ++i) to[i] = composed(static_cast<const std::uint64_t*>(a)[i], to[i]);
}

void add(void* a, void* b, int* count, MPI_Datatype*) {
  auto* const to = static_cast<std::uint64_t*>(b);
  for (int i = 0; i < *count; ++i) to[i] += static_cast<const std::uint64_t*>(a)[i];
}

/// An operation of the caller's on a type of the caller's, two numbers of three places.
void derived(MPI_Comm comm, std::uint64_t mine, std::uint64_t all) {
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_UINT64_T, &pair);
  MPI_Type_commit(&pair);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(
      [](void* in, void* inout, int* count, MPI_Datatype*) {
        const auto* a = static_cast<const std::uint64_t*>(in);
        auto* b = static_cast<std::uint64_t*>(inout);
        for (int k = 0; k < *count; ++k)
          for (const int at : {3 * k, 3 * k + 2}) b[at] = composed(a[at], b[at]);
      },
      0, &op);
  const std::vector<std::uint64_t> in{mine, 1, mine};
  std::vector<std::uint64_t> out{0, 2, 0};
  MPI_Allreduce(in.data(), out.data(), 1, pair, op, comm);
  expect(out == std::vector<std::uint64_t>{all, 2, all}, "a type of the caller's", 0);
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
}

/// An operation that does not commute, with the handle of one that did, on ranks that do not lie in their order.
void operations() {
  MPI_Comm odd_last = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank % 2 * ranks + rank, &odd_last);
  int me = 0;
  MPI_Comm_rank(odd_last, &me);
  const auto map = [](int r) {
    return map_of(static_cast<std::uint64_t>(2 * r + 3), static_cast<std::uint64_t>(r) + 5);
  };
  std::uint64_t all = map(0), sum = 0;
  for (int r = 1; r < ranks; ++r) all = composed(all, map(r));
  for (int r = 0; r < ranks; ++r) sum += map(r);
  for (int turn = 0; turn < 3; ++turn)
    for (const bool commutes : {true, false}) {
      MPI_Op op = MPI_OP_NULL;
      MPI_Op_create(commutes ? add : compose, commutes, &op);
      const std::uint64_t mine = map(me);
      std::uint64_t result = 0;
      MPI_Allreduce(&mine, &result, 1, MPI_UINT64_T, op, odd_last);
      expect(result == (commutes ? sum : all), "an operation of the caller's that commutes:", commutes);
      MPI_Op_free(&op);
    }
  derived(odd_last, map(me), all);
  MPI_Comm_free(&odd_last);
}

/// A user's operation that takes elements for what their type says, aligned to 16 bytes.
void aligned() {
  struct Pair {
    long double value;
    int place;
  };
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(
      [](void* a, void* b, int* count, MPI_Datatype*) {
        const auto misplaced = [](const void* p) {
          return reinterpret_cast<std::uintptr_t>(p) % alignof(Pair) != 0;
        };
        expect(!misplaced(a) && !misplaced(b), "elements of an operation are aligned");
        for (int i = 0; i < *count; ++i) {
          Pair x{}, y{};
          std::memcpy(&x, static_cast<const Pair*>(a) + i, sizeof x),
              std::memcpy(&y, static_cast<Pair*>(b) + i, sizeof y);
          if (x.value > y.value) std::memcpy(static_cast<Pair*>(b) + i, &x, sizeof x);
        }
      },
      1, &op);
  for (const int n : {1, 40, 3000}) {
    std::vector<Pair> mine(static_cast<std::size_t>(n)), most(static_cast<std::size_t>(n));
    for (auto& x : mine) x.value = ranks - rank, x.place = rank;
    MPI_Allreduce(mine.data(), most.data(), n, MPI_LONG_DOUBLE_INT, op, MPI_COMM_WORLD);
    for (const auto& x : most) expect(x.value == ranks && x.place == 0, "the largest of all ranks", n);
  }
  MPI_Op_free(&op);
}

/// MPI_Pack of MPICH 4.0.2 drops the end of some when there are many.
void many_types() {
  std::vector<MPI_Datatype> types(1500);
  for (auto& type : types) {
    MPI_Type_contiguous(3, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    double v[3] = {1. - rank, 2. - 2 * rank, 3. - 3 * rank};
    MPI_Bcast(v, 1, type, 0, MPI_COMM_WORLD);
    expect(v[0] == 1 && v[1] == 2 && v[2] == 3, "a broadcast of one of many types", &type - types.data());
  }
  for (auto& type : types) MPI_Type_free(&type);
}

/// So many of each, for a tool that counts: 12 barriers, 10 broadcasts, 8 allreduces, 6 of what only MPI does.
void tool() {
  std::vector<long> in(static_cast<std::size_t>(ranks)), out(in.size());
  for (int k = 0; k < 12; ++k) {
    MPI_Barrier(MPI_COMM_WORLD);
    long word = value(rank, k), sum = 0;
    if (k < 8) MPI_Allreduce(&word, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (k < 8) expect(sum == 1000003L * ranks * (ranks - 1) / 2 + ranks * (k + 1L), "MPI_Allreduce", k);
    if (k < 10) MPI_Bcast(&word, 1, MPI_LONG, k % ranks, MPI_COMM_WORLD);
    if (k < 10) expect(word == value(k % ranks, k), "MPI_Bcast", k);
    if (k < 6) MPI_Alltoall(in.data(), 1, MPI_LONG, out.data(), 1, MPI_LONG, MPI_COMM_WORLD);
  }
}

// --- buffers longer than 2^31 and 2^32 bytes
// ---------------------------------------------------------------------------

constexpr std::size_t kPiece = 2 << 20;  // of real memory, which stands at every multiple of it but the last

/// `bytes` bytes, of which all whole pieces but the last are the same memory: what is beyond 2^32 is found without
/// having so much of it.
class Folded {
 public:
  explicit Folded(std::size_t bytes)
      : pieces_(bytes / kPiece + 1), bytes_(bytes), base_(reserve(pieces_ * kPiece)) {
    const int file = memfd_create("folded", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, kPiece) != 0) MPI_Abort(MPI_COMM_WORLD, 3);
    for (std::size_t k = 0; k + 2 < pieces_; ++k)
      if (mmap(base_ + k * kPiece, kPiece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 3);
    close(file);
  }
  ~Folded() { munmap(base_, pieces_ * kPiece); }
  Folded(const Folded&) = delete;
  Folded& operator=(const Folded&) = delete;
  char* data() const { return base_; }
  /// The folded pieces, and the last ones.
  void fill(char all, char end) {
    std::memset(base_, all, kPiece);
    std::memset(tail(), end, bytes_ - tail_at());
  }
  bool is(char all, char end) const {
    return is_all(base_, kPiece, all) && is_all(tail(), bytes_ - tail_at(), end);
  }
  bool byte_is(std::size_t at, char c) const { return base_[at] == c; }

 private:
  static bool is_all(const char* p, std::size_t n, char c) {
    return std::all_of(p, p + n, [c](char x) { return x == c; });
  }
  std::size_t tail_at() const { return (pieces_ - 2) * kPiece; }
  char* tail() const { return base_ + tail_at(); }
  std::size_t pieces_, bytes_;
  char* base_;
};

/// More bytes than 32 bits count, as many bytes and as fewer elements; reductions of more elements than an int
/// counts; parts and wholes of as many.
void long_buffers() {
  const MPI_Comm w = MPI_COMM_WORLD;
  const int last = ranks - 1;
  {
    const std::size_t bytes = (std::size_t{1} << 32) + 3001;
    Folded data(bytes);
    data.fill(rank == last ? 'a' : 0, rank == last ? 'z' : 0);
    MPI_Bcast_c(data.data(), static_cast<MPI_Count>(bytes), MPI_CHAR, last, w);
    expect(data.is('a', 'z'), "a broadcast of more than 2^32 bytes");
    const std::size_t doubles = bytes / sizeof(double);
    data.fill(rank == 0 ? 'b' : 0, rank == 0 ? 'y' : 0);
    MPI_Bcast(data.data(), static_cast<int>(doubles), MPI_DOUBLE, 0, w);
    expect(data.byte_is(0, 'b') && data.byte_is(doubles * sizeof(double) - 1, 'y'),
           "a broadcast of fewer elements than 2^31 and more bytes than 2^32");
  }
  {
    const MPI_Count count = (MPI_Count{1} << 31) + 3001;
    Folded in(static_cast<std::size_t>(count)), out(static_cast<std::size_t>(count));
    const char low = static_cast<char>(rank + 1), high = static_cast<char>(100 - rank);
    in.fill(low, high), out.fill(0, 0);
    MPI_Allreduce_c(in.data(), out.data(), count, MPI_SIGNED_CHAR, MPI_MAX, w);
    expect(out.is(static_cast<char>(ranks), 100), "MPI_Allreduce_c of more than 2^31 elements");
    out.fill(0, 0);
    MPI_Reduce_c(in.data(), out.data(), count, MPI_SIGNED_CHAR, MPI_MIN, last, w);
    expect(rank != last || out.is(1, static_cast<char>(100 - last)), "MPI_Reduce_c of more than 2^31 elements");
  }
  {
    const MPI_Count part = (MPI_Count{1} << 31) + 3001;
    Folded one(static_cast<std::size_t>(part)), all(static_cast<std::size_t>(part * ranks));
    const auto begins_and_ends =
        [&](const char* what) {  // of each part, where memory is not folded: the last one's
          expect(all.byte_is(static_cast<std::size_t>(part * ranks - 1), 'z'), what);
          expect(all.byte_is(static_cast<std::size_t>(part * ranks - 3001), 'z'), what, 1);
        };
    one.fill('p', rank == last ? 'z' : 'p'), all.fill(0, 0);
    MPI_Gather_c(one.data(), part, MPI_CHAR, all.data(), part, MPI_CHAR, 0, w);
    if (rank == 0) begins_and_ends("MPI_Gather_c of parts of more than 2^31 bytes");
    all.fill(0, 0);
    MPI_Allgather_c(one.data(), part, MPI_CHAR, all.data(), part, MPI_CHAR, w);
    begins_and_ends("MPI_Allgather_c of parts of more than 2^31 bytes");
    one.fill(0, 0), all.fill('p', 'z');
    MPI_Scatter_c(all.data(), part, MPI_CHAR, one.data(), part, MPI_CHAR, 0, w);
    expect(one.byte_is(static_cast<std::size_t>(part - 1), rank == last ? 'z' : 'p'),
           "MPI_Scatter_c of parts of more than 2^31 bytes");
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "forms") forms();
  if (mode == "bottom") bottom();
  if (mode == "far") far();
  if (mode == "intercommunicators") intercommunicators();
  if (mode == "handler") handler();
  if (mode == "tool") tool();
  if (mode == "operations") operations(), aligned(), many_types();
  if (mode == "long_buffers") long_buffers();
  MPI_Finalize();
  return failures ? 1 : 0;
}
