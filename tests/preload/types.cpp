/// Every predefined type with every operation that MPI defines on it (MPI 4.0, section 6.9.2): MPI_Allreduce and
/// MPI_Reduce against formulas and, some of them, against MPI's own; and every type moved from rank to rank. On
/// several communicators, with roots that move on and ranks that are late. Knows MPI alone, as client.cpp does.
/// usage: preload_types [long]: long vectors of some of the types

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

int failures = 0, checks = 0;
std::vector<MPI_Comm> comms;  // of which checks take one after the other
MPI_Comm comm = MPI_COMM_NULL;
int rank = 0, ranks = 1, root = 0;  // in it

/// The communicator and the root of the next check; somebody is late now and then.
void go_on(int count) {
  static int turn = 0;
  comm = comms[static_cast<std::size_t>(++turn) % comms.size()];
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  root = (turn / 3 + count) % ranks;
  if (turn % 64 == rank) usleep(300);
}

void expect(bool ok, const std::string& what, int count) {
  ++checks;
  if (!ok && ++failures <= 5) std::fprintf(stderr, "rank %d: FAILED: %s, %d elements\n", rank, what.c_str(), count);
}

/// Negative ones, repeated ones, 0 for logical operations; small enough for every type.
int number(int r, int i) {
  return (r * 31 + i * 7 + i / 11) % 7 - 3;
}

template <class T>
T plain(int n) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(n);
  else
    return T{};
}

template <class T>
bool equal(const T& a, const T& b) {
  return a == b;
}

template <class T>
struct Op {
  const char* name;
  MPI_Op op;
  std::function<T(T, T)> combine;
  T (*element)(int);
  bool (*same)(const T&, const T&);
  bool mpi_is_right = true;
  Op(const char* n, MPI_Op o, std::function<T(T, T)> c, T (*e)(int) = &plain<T>,
     bool (*s)(const T&, const T&) = &equal<T>)
      : name(n), op(o), combine(std::move(c)), element(e), same(s) {}
};

/// Sent, received in place, and received by each root; what lies behind the result stays.
template <class T>
void check(const std::string& type_name, MPI_Datatype type, const Op<T>& o, int count) {
  go_on(count);
  const auto n = static_cast<std::size_t>(count);
  const auto of = [&](int r) {
    std::vector<T> v;
    for (int i = 0; i < count + 2; ++i) v.push_back(o.element(number(i < count ? r : 3, i)));
    return v;
  };
  const std::vector<T> mine = of(rank), untouched = of(-1);
  std::vector<T> expected = of(0);
  for (int r = 1; r < ranks; ++r) {
    const std::vector<T> next = of(r);
    for (std::size_t i = 0; i < n; ++i) expected[i] = o.combine(expected[i], next[i]);
  }
  const auto right = [&](const std::vector<T>& v, const std::vector<T>& wanted) {
    return std::equal(v.begin(), v.begin() + count, wanted.begin(), o.same) &&
           std::equal(v.begin() + count, v.end(), mine.begin() + count);
  };
  const std::string what = type_name + " " + o.name;
  std::vector<T> result = untouched;
  std::copy(mine.begin() + count, mine.end(), result.begin() + count);
  const std::vector<T> before = result;
  bool ok = MPI_Allreduce(mine.data(), result.data(), count, type, o.op, comm) == MPI_SUCCESS;
  expect(ok && right(result, expected), "MPI_Allreduce of " + what, count);
  if (count == 7 && o.mpi_is_right) {
    std::vector<T> by_mpi = before;
    PMPI_Allreduce(mine.data(), by_mpi.data(), count, type, o.op, comm);
    expect(right(result, by_mpi), "MPI_Allreduce as MPI's of " + what, count);
  }
  result = mine;
  ok = MPI_Allreduce(MPI_IN_PLACE, result.data(), count, type, o.op, comm) == MPI_SUCCESS;
  expect(ok && right(result, expected), "MPI_Allreduce in place of " + what, count);
  result = before;
  ok = MPI_Reduce(mine.data(), result.data(), count, type, o.op, root, comm) == MPI_SUCCESS;
  expect(ok && right(result, rank == root ? expected : before), "MPI_Reduce of " + what, count);
  // MPICH 4.0.2's own crashes from 2 KiB on when another root reduces in place.
  result = mine;
  ok = MPI_Reduce(rank == 0 ? MPI_IN_PLACE : mine.data(), result.data(), count, type, o.op, 0, comm) == MPI_SUCCESS;
  expect(ok && right(result, rank == 0 ? expected : mine), "MPI_Reduce in place of " + what, count);
}

/// Values of each rank to all, from a root and to it.
template <class T>
void check_moves(const std::string& type_name, MPI_Datatype type, const Op<T>& o, int count) {
  go_on(count);
  const auto of = [&](int r) {
    std::vector<T> v;
    for (int i = 0; i < count; ++i) v.push_back(o.element(number(r, i)));
    return v;
  };
  const std::vector<T> mine = of(rank);
  std::vector<T> all, data = rank == root ? mine : of(rank + 1), gathered;
  for (int r = 0; r < ranks; ++r) {
    const std::vector<T> theirs = of(r);
    all.insert(all.end(), theirs.begin(), theirs.end());
  }
  const auto right = [&](const std::vector<T>& v, const std::vector<T>& wanted) {
    return std::equal(v.begin(), v.end(), wanted.begin(), wanted.end(), o.same);
  };
  MPI_Bcast(data.data(), count, type, root, comm);
  expect(right(data, of(root)), "MPI_Bcast of " + type_name, count);
  gathered.resize(rank == root ? all.size() : 0);
  MPI_Gather(mine.data(), count, type, gathered.data(), count, type, root, comm);
  expect(rank != root || right(gathered, all), "MPI_Gather of " + type_name, count);
  gathered.assign(all.size(), T{});
  MPI_Allgather(mine.data(), count, type, gathered.data(), count, type, comm);
  expect(right(gathered, all), "MPI_Allgather of " + type_name, count);
  data.assign(data.size(), T{});
  MPI_Scatter(all.data(), count, type, data.data(), count, type, root, comm);
  expect(right(data, mine), "MPI_Scatter of " + type_name, count);
}

std::vector<int> counts{0, 1, 7, 1000, 4099};
std::vector<std::string> only;  // these types, or all

template <class T>
void check_all(const std::string& name, MPI_Datatype type, const std::vector<Op<T>>& ops) {
  if (type == MPI_DATATYPE_NULL) return;  // no Fortran
  if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) return;
  for (const Op<T>& o : ops)
    for (int count : counts) check(name, type, o, count);
  for (int count : counts) check_moves(name, type, ops[0], count);
}

template <class T>
std::vector<Op<T>> arithmetic() {
  return {{"MPI_SUM", MPI_SUM, [](T a, T b) { return static_cast<T>(a + b); }},
          {"MPI_PROD", MPI_PROD, [](T a, T b) { return static_cast<T>(a * b); }}};
}

/// MPICH 4.0.2 itself compares unsigned numbers as signed ones.
template <class T>
std::vector<Op<T>> order() {
  T (*element)(int) = &plain<T>;
  std::vector<Op<T>> ops{{"MPI_MAX", MPI_MAX, [](T a, T b) { return std::max(a, b); }, element},
                         {"MPI_MIN", MPI_MIN, [](T a, T b) { return std::min(a, b); }, element}};
  for (Op<T>& o : ops) o.mpi_is_right = !std::is_unsigned_v<T>;
  return ops;
}

/// Any number but 0 is true in C; what comes out is true or not.
template <class T>
std::vector<Op<T>> logical(bool one) {
  const auto any = [](int n) { return static_cast<T>(n < 0 ? 0 : n); };
  const auto truth = [](int n) { return static_cast<T>(n > 0); };
  T (*const element)(int) = one ? static_cast<T (*)(int)>(truth) : any;
  const auto same = [](const T& a, const T& b) { return static_cast<bool>(a) == static_cast<bool>(b); };
  return {{"MPI_LAND", MPI_LAND, [](T a, T b) { return static_cast<T>(a && b); }, element, same},
          {"MPI_LOR", MPI_LOR, [](T a, T b) { return static_cast<T>(a || b); }, element, same},
          {"MPI_LXOR", MPI_LXOR, [](T a, T b) { return static_cast<T>(!a != !b); }, element, same}};
}

template <class T>
std::vector<Op<T>> bits() {
  const auto element = [](int n) {
    return static_cast<T>(static_cast<std::uint64_t>(n + 9) * 0x9E3779B97F4A7C15u);
  };
  return {{"MPI_BAND", MPI_BAND, [](T a, T b) { return static_cast<T>(a & b); }, element},
          {"MPI_BOR", MPI_BOR, [](T a, T b) { return static_cast<T>(a | b); }, element},
          {"MPI_BXOR", MPI_BXOR, [](T a, T b) { return static_cast<T>(a ^ b); }, element}};
}

template <class T>
void whole(const std::string& name, MPI_Datatype type) {
  check_all(name, type, arithmetic<T>());
  check_all(name, type, order<T>());
  check_all(name, type, logical<T>(false));
  check_all(name, type, bits<T>());
}

/// Fortran's integers have no logical operations.
template <class T>
void fortran(const std::string& name, MPI_Datatype type) {
  check_all(name, type, arithmetic<T>());
  check_all(name, type, order<T>());
  check_all(name, type, bits<T>());
}

template <class T>
void real(const std::string& name, MPI_Datatype type) {
  check_all(name, type, arithmetic<T>());
  check_all(name, type, order<T>());
}

template <class T>
void complex(const std::string& name, MPI_Datatype type) {
  auto ops = arithmetic<std::complex<T>>();
  for (auto& o : ops) o.element = [](int n) { return std::complex<T>(T(n), T(n % 2)); };
  check_all(name, type, ops);
}

template <class V, class P>
struct Located {
  V value;
  P place;
  bool operator==(const Located& o) const { return value == o.value && place == o.place; }
};

/// Of equal values the lowest place.
template <class V, class P>
void pairs(const std::string& name, MPI_Datatype type) {
  using T = Located<V, P>;
  const auto element = [](int n) { return T{static_cast<V>(n / 2), static_cast<P>(n + 3)}; };
  const auto best = [](auto before) {
    return [before](T a, T b) {
      if (a.value == b.value) return T{a.value, std::min(a.place, b.place)};
      return before(a.value, b.value) ? a : b;
    };
  };
  check_all<T>(name, type,
               {{"MPI_MAXLOC", MPI_MAXLOC, best(std::greater<V>()), element},
                {"MPI_MINLOC", MPI_MINLOC, best(std::less<V>()), element}});
}

#define EACH(kind, T, type) kind<T>(#type, type)
#define PAIR(V, P, type) pairs<V, P>(#type, type)

void all_types() {
  EACH(whole, int, MPI_INT), EACH(whole, long, MPI_LONG), EACH(whole, long long, MPI_LONG_LONG);
  EACH(whole, short, MPI_SHORT), EACH(whole, signed char, MPI_SIGNED_CHAR);
  EACH(whole, std::int8_t, MPI_INT8_T), EACH(whole, std::int16_t, MPI_INT16_T);
  EACH(whole, std::int32_t, MPI_INT32_T), EACH(whole, std::int64_t, MPI_INT64_T);
  EACH(whole, MPI_Aint, MPI_AINT), EACH(whole, MPI_Offset, MPI_OFFSET), EACH(whole, MPI_Count, MPI_COUNT);
  EACH(whole, unsigned, MPI_UNSIGNED), EACH(whole, unsigned long, MPI_UNSIGNED_LONG);
  EACH(whole, unsigned long long, MPI_UNSIGNED_LONG_LONG), EACH(whole, unsigned short, MPI_UNSIGNED_SHORT);
  EACH(whole, unsigned char, MPI_UNSIGNED_CHAR), EACH(whole, std::uint8_t, MPI_UINT8_T);
  EACH(whole, std::uint16_t, MPI_UINT16_T), EACH(whole, std::uint32_t, MPI_UINT32_T);
  EACH(whole, std::uint64_t, MPI_UINT64_T);
  EACH(fortran, std::int32_t, MPI_INTEGER), EACH(fortran, std::int8_t, MPI_INTEGER1);
  EACH(fortran, std::int16_t, MPI_INTEGER2), EACH(fortran, std::int32_t, MPI_INTEGER4);
  EACH(fortran, std::int64_t, MPI_INTEGER8);
  EACH(real, double, MPI_DOUBLE), EACH(real, float, MPI_FLOAT), EACH(real, long double, MPI_LONG_DOUBLE);
  EACH(real, float, MPI_REAL), EACH(real, double, MPI_DOUBLE_PRECISION), EACH(real, float, MPI_REAL4);
  EACH(real, double, MPI_REAL8);
  EACH(complex, float, MPI_C_FLOAT_COMPLEX), EACH(complex, double, MPI_C_DOUBLE_COMPLEX);
  EACH(complex, long double, MPI_C_LONG_DOUBLE_COMPLEX), EACH(complex, float, MPI_CXX_FLOAT_COMPLEX);
  EACH(complex, double, MPI_CXX_DOUBLE_COMPLEX), EACH(complex, long double, MPI_CXX_LONG_DOUBLE_COMPLEX);
  EACH(complex, float, MPI_COMPLEX), EACH(complex, double, MPI_DOUBLE_COMPLEX);
  EACH(complex, float, MPI_COMPLEX8), EACH(complex, double, MPI_COMPLEX16);
  check_all("MPI_C_BOOL", MPI_C_BOOL, logical<unsigned char>(true));
  check_all("MPI_CXX_BOOL", MPI_CXX_BOOL, logical<unsigned char>(true));
  check_all("MPI_LOGICAL", MPI_LOGICAL, logical<std::int32_t>(true));
  check_all("MPI_BYTE", MPI_BYTE, bits<unsigned char>());
  PAIR(float, int, MPI_FLOAT_INT), PAIR(double, int, MPI_DOUBLE_INT), PAIR(long, int, MPI_LONG_INT);
  PAIR(int, int, MPI_2INT), PAIR(short, int, MPI_SHORT_INT), PAIR(long double, int, MPI_LONG_DOUBLE_INT);
  PAIR(float, float, MPI_2REAL), PAIR(double, double, MPI_2DOUBLE_PRECISION);
  PAIR(std::int32_t, std::int32_t, MPI_2INTEGER);
}

/// Where MPI defines no operation, it says so, with the library as without.
void undefined() {
  double in[2] = {1, 2}, out[2];
  const std::pair<MPI_Datatype, MPI_Op> pairs[] = {
      {MPI_BYTE, MPI_SUM}, {MPI_DOUBLE, MPI_BAND}, {MPI_INT, MPI_MAXLOC}, {MPI_2INT, MPI_SUM}};
  for (const auto& [type, op] : pairs) {
    expect(MPI_Allreduce(in, out, 1, type, op, MPI_COMM_WORLD) != MPI_SUCCESS, "an operation that is not defined",
           1);
    expect(MPI_Reduce(in, out, 1, type, op, 0, MPI_COMM_WORLD) != MPI_SUCCESS, "an operation that is not defined",
           1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  comms.assign(5, MPI_COMM_WORLD);  // an odd number, so that each has all counts
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &comms[2]);      // reversed
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &comms[3]);  // every other rank
  MPI_Comm_dup(comms[2], &comms[4]);
  if (argc > 1) {
    counts = {104729, 1 << 20};
    only = {"MPI_INT",         "MPI_UNSIGNED_CHAR",    "MPI_DOUBLE",     "MPI_FLOAT",
            "MPI_LONG_DOUBLE", "MPI_C_DOUBLE_COMPLEX", "MPI_DOUBLE_INT", "MPI_C_BOOL"};
  }
  all_types();
  undefined();
  check("MPI_DOUBLE", MPI_DOUBLE, arithmetic<double>()[0], 1 << 20);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (me == 0) std::printf("%d checks of each of %d ranks, %d failed\n", checks, ranks, all);
  for (std::size_t k = 1; k < comms.size(); ++k) MPI_Comm_free(&comms[k]);
  MPI_Finalize();
  return all ? 1 : 0;
}
