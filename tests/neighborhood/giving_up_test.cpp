/// Operations that cannot go on, with blocks so large that MPI reads them where they lie: when all ranks have their
/// error, MPI has let go of the buffers, and they may be unmapped.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "framework/isohalo.h"
#include "tests/neighborhood/collective_cases.hpp"

namespace isohalo::test {
namespace {

constexpr int kBlock = 1 << 20;

/// Memory that is gone when it is freed: whoever reads it then crashes.
class Mapped {
 public:
  explicit Mapped(std::size_t bytes)
      : bytes_(bytes), place_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (place_ == MAP_FAILED) throw std::bad_alloc();
    std::memset(place_, 1, bytes);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { munmap(place_, bytes_); }
  char* get() const { return static_cast<char*>(place_); }

 private:
  std::size_t bytes_;
  void* place_;
};

enum class Form { blocking, started, persistent };
constexpr Form kForms[] = {Form::blocking, Form::started, Form::persistent};

/// A neighborhood on a communicator of its own, which ends with it: strays are taken in there.
struct Place {
  Place(const std::vector<int>& periods, std::vector<int> list)
      : setting(MPI_COMM_WORLD, {ranks()}, periods, list) {
    MPI_Comm_set_errhandler(setting.cart, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // where MPICH reports messages that are too long
    EXPECT_EQ(isohalo_neighborhood_create(setting.cart, static_cast<int>(list.size()), list.data(), &iso),
              MPI_SUCCESS);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { isohalo_neighborhood_free(&iso); }

  /// The error class of an alltoallv in which each rank sends and receives blocks of that many bytes; the buffers
  /// are gone when it returns.
  int exchange(Form form, int send, int receive) const {
    const int s = setting.s;
    Mapped out(static_cast<std::size_t>(s) * kBlock), in(static_cast<std::size_t>(s) * kBlock);
    std::vector<int> sent(static_cast<std::size_t>(s), send), received(static_cast<std::size_t>(s), receive), at;
    for (int i = 0; i < s; ++i) at.push_back(i * kBlock);
    isohalo_request r = nullptr;
    int code = MPI_SUCCESS;
    if (form == Form::blocking) {
      code = isohalo_neighbor_alltoallv(out.get(), sent.data(), at.data(), MPI_BYTE, in.get(), received.data(),
                                        at.data(), MPI_BYTE, iso);
    } else if (form == Form::started) {
      code = isohalo_ineighbor_alltoallv(out.get(), sent.data(), at.data(), MPI_BYTE, in.get(), received.data(),
                                         at.data(), MPI_BYTE, iso, &r);
    } else {
      code = isohalo_neighbor_alltoallv_init(out.get(), sent.data(), at.data(), MPI_BYTE, in.get(), received.data(),
                                             at.data(), MPI_BYTE, iso, &r);
      if (code == MPI_SUCCESS) code = isohalo_start(r);
    }
    if (form != Form::blocking && code == MPI_SUCCESS) code = isohalo_wait(&r);
    if (r) isohalo_request_free(&r);
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    return error_class;
  }

  Setting setting;
  isohalo_neighborhood iso = nullptr;
};

bool last() {
  return rank() == ranks() - 1;
}

TEST(GivingUp, DifferentLists) {
  if (ranks() == 1) return;
  for (const Form form : kForms) {
    const Place place({1}, {1, last() ? 2 : -1});
    EXPECT_EQ(place.exchange(form, kBlock, kBlock), MPI_ERR_TOPOLOGY);
  }
}

TEST(GivingUp, OneRankIsWrong) {
  if (ranks() == 1) return;
  for (const int periodic : {0, 1})
    for (const auto& list : {std::vector<int>{1}, {1, -1}, {1, 2, -1, -2}}) {
      const Place place({periodic}, list);
      for (const Form form : kForms)
        for (int a = ISOHALO_AUTO; a <= ISOHALO_LOGARITHMIC; ++a)
          for (const int wrong : {0, ranks() - 1}) {
            isohalo_neighborhood_set_algorithm(place.iso, static_cast<isohalo_algorithm>(a));
            const int got = place.exchange(form, rank() == wrong ? -1 : kBlock, kBlock);
            // Some ranks receive nothing from there; at the end of a line nobody looks at the count.
            const bool may_be_fine = !periodic || (rank() != wrong && (ranks() > 3 || list.size() == 1));
            EXPECT_TRUE(got == MPI_ERR_COUNT || (may_be_fine && got == MPI_SUCCESS))
                << got << " list of " << list.size() << " algorithm " << a << " rank " << rank();
          }
      EXPECT_EQ(place.exchange(Form::blocking, kBlock, kBlock), MPI_SUCCESS) << isohalo_error_text();
    }
}

TEST(GivingUp, DifferentAlgorithms) {
  if (ranks() == 1) return;
  for (const Form form : kForms)
    for (const auto& [one, other] : {std::pair{ISOHALO_COMBINING, ISOHALO_DIRECT},
                                     {ISOHALO_DIRECT, ISOHALO_LOGARITHMIC},
                                     {ISOHALO_LOGARITHMIC, ISOHALO_COMBINING}}) {
      const Place place({1}, {1, 2, 3, -1, -2, -3});
      isohalo_neighborhood_set_algorithm(place.iso, last() ? one : other);
      place.exchange(form, kBlock, kBlock);  // an error where ranks noticed
      isohalo_neighborhood_set_algorithm(place.iso, ISOHALO_AUTO);
      EXPECT_EQ(place.exchange(Form::blocking, kBlock, kBlock), MPI_SUCCESS) << isohalo_error_text();
    }
}

/// Many small blocks to one peer share a message, large ones do not.
TEST(GivingUp, DifferentSizes) {
  if (ranks() == 1) return;
  for (const Form form : kForms) {
    const Place place({1}, {1, 1 + ranks(), 1, -1});
    const int got = place.exchange(form, last() ? 8 : kBlock, last() ? 8 : kBlock);
    EXPECT_TRUE(got == MPI_ERR_TRUNCATE || (ranks() > 3 && got == MPI_SUCCESS)) << got;
    EXPECT_EQ(place.exchange(Form::blocking, kBlock, kBlock), MPI_SUCCESS) << isohalo_error_text();
  }
}

/// The ranks come one after the other.
TEST(GivingUp, LateRanks) {
  if (ranks() == 1) return;
  for (const int wrong : {0, ranks() - 1}) {
    const Place place({0}, {1, -1});
    EXPECT_EQ(place.exchange(Form::blocking, kBlock, kBlock), MPI_SUCCESS) << isohalo_error_text();
    std::this_thread::sleep_for(std::chrono::milliseconds(rank() == wrong ? 0 : 300 + 100 * rank()));
    const int got = place.exchange(Form::blocking, rank() == wrong ? -1 : kBlock, kBlock);
    EXPECT_TRUE(got == MPI_ERR_COUNT || (rank() != wrong && got == MPI_SUCCESS)) << got;
  }
}

int class_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class;
}

/// Bad arguments where the lists differ as well; then legal operations on another neighborhood of the communicator.
TEST(GivingUp, WrongListsAndArguments) {
  if (ranks() == 1) return;
  for (const bool blocking : {true, false}) {
    const Place place({1}, {1, last() ? 2 : -1});
    double out[2] = {1, 2}, in[2];
    isohalo_request r = nullptr;
    const int count = rank() == 0 ? -1 : 1;
    int code = blocking ? isohalo_neighbor_alltoall(out, count, MPI_DOUBLE, in, 1, MPI_DOUBLE, place.iso)
                        : isohalo_ineighbor_alltoall(out, count, MPI_DOUBLE, in, 1, MPI_DOUBLE, place.iso, &r);
    if (r) code = isohalo_wait(&r);
    EXPECT_NE(code, MPI_SUCCESS);
    const int list[2] = {1, -1};
    isohalo_neighborhood good = nullptr;
    ASSERT_EQ(isohalo_neighborhood_create(place.setting.cart, 2, list, &good), MPI_SUCCESS);
    for (int n = 0; n < 3; ++n) {
      out[0] = out[1] = 10 * rank() + n;
      ASSERT_EQ(isohalo_neighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, good), MPI_SUCCESS)
          << isohalo_error_text();
      EXPECT_EQ(in[0], 10 * ((rank() + ranks() - 1) % ranks()) + n);
    }
    isohalo_neighborhood_free(&good);
  }
}

/// A type that was not committed is found only when messages are posted. (It is not received: MPICH 4.0 leaks a
/// handle for each receive of a derived type that is cancelled.)
TEST(GivingUp, UncommittedType) {
  if (ranks() == 1) return;
  const Place place({1}, {1});
  EXPECT_EQ(place.exchange(Form::blocking, kBlock, kBlock), MPI_SUCCESS);
  const Mapped out(2 * kBlock), in(2 * kBlock);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(kBlock / 16, 16, 32, MPI_BYTE, &type);
  if (!last()) MPI_Type_commit(&type);
  if (!last()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const int code = isohalo_neighbor_alltoall(out.get(), 1, type, in.get(), kBlock, MPI_BYTE, place.iso);
  EXPECT_TRUE(code != MPI_SUCCESS || (!last() && ranks() > 2));
  MPI_Type_free(&type);
}

/// The first operation under algorithms that differ: an error or not, but no hang.
TEST(GivingUp, DifferentAlgorithmsAtFirst) {
  if (ranks() == 1) return;
  for (const int one : {ISOHALO_AUTO, ISOHALO_DIRECT, ISOHALO_COMBINING, ISOHALO_LOGARITHMIC}) {
    const Place place({1}, {1, 2, 3});
    if (last()) isohalo_neighborhood_set_algorithm(place.iso, static_cast<isohalo_algorithm>(one));
    place.exchange(Form::blocking, kBlock, kBlock);
    isohalo_neighborhood_set_algorithm(place.iso, ISOHALO_DIRECT);
    EXPECT_EQ(place.exchange(Form::blocking, kBlock, kBlock), MPI_SUCCESS) << isohalo_error_text();
  }
}

/// A rank that has completed leaves, and makes another communicator with some of the others: late notices must not
/// reach operations there.
TEST(GivingUp, LateNoticesStayWhereTheyBelong) {
  if (ranks() < 4) return;
  double out = 1, in = 0;
  {
    const Place place({0}, {1});  // the last rank waits for the one before it alone
    EXPECT_EQ(place.exchange(Form::blocking, 8, 8), MPI_SUCCESS);
    if (rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    isohalo_neighbor_alltoall(&out, 1, rank() == 0 ? MPI_DATATYPE_NULL : MPI_DOUBLE, &in, 1, MPI_DOUBLE, place.iso);
  }
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() < 2, rank(), &half);
  int n = 0;
  MPI_Comm_size(half, &n);
  const int periodic = 1, list = 1;
  std::array<MPI_Comm, 4> carts{};
  std::array<isohalo_neighborhood, 4> isos{};
  for (std::size_t k = 0; k < carts.size(); ++k) {
    MPI_Comm first = MPI_COMM_NULL;  // has a context that was free; the next one is the duplicate of the cart
    MPI_Comm_dup(half, &first);
    MPI_Cart_create(half, 1, &n, &periodic, 0, &carts[k]);
    MPI_Comm_free(&first);
    MPI_Comm_set_errhandler(carts[k], MPI_ERRORS_RETURN);
    ASSERT_EQ(isohalo_neighborhood_create(carts[k], 1, &list, &isos[k]), MPI_SUCCESS);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (int turn = 0; turn < 3; ++turn)
    for (const auto iso : isos) {
      if (last())
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that the others look for notices
      EXPECT_EQ(isohalo_neighbor_alltoall(&out, 1, MPI_DOUBLE, &in, 1, MPI_DOUBLE, iso), MPI_SUCCESS)
          << isohalo_error_text();
    }
  for (std::size_t k = 0; k < carts.size(); ++k) {
    isohalo_neighborhood_free(&isos[k]);
    MPI_Comm_free(&carts[k]);
  }
  MPI_Comm_free(&half);
}

/// More memory than there is, on one rank.
TEST(GivingUp, OutOfMemory) {
  if (ranks() == 1) return;
  const Place place({1}, {1, -1});
  MPI_Datatype large = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(1 << 20, MPI_BYTE, &large);
  MPI_Type_commit(&large);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &op);
  const Mapped out(1 << 20), in(1 << 20);
  const int code = isohalo_neighbor_reduce(out.get(), in.get(), last() ? 2147483647 : 1, large, op, place.iso);
  EXPECT_TRUE(class_of(code) == MPI_ERR_NO_MEM || (ranks() > 3 && code == MPI_SUCCESS)) << isohalo_error_text();
  MPI_Op_free(&op);
  MPI_Type_free(&large);
}

/// Nobody looks at buffers of neighbors that are not there.
TEST(GivingUp, NotForBuffersOfAbsentNeighbors) {
  const Place place({0}, {1});
  double out = rank(), in = -1;
  const bool first = rank() == 0;
  EXPECT_EQ(isohalo_neighbor_alltoall(last() ? nullptr : &out, 1, MPI_DOUBLE, first ? nullptr : &in, 1, MPI_DOUBLE,
                                      place.iso),
            MPI_SUCCESS)
      << isohalo_error_text();
  EXPECT_EQ(in, first ? -1 : rank() - 1);
}

/// An algorithm that would need more phases than there are tags for is not chosen.
TEST(GivingUp, NotForLongOffsets) {
  int dims[5] = {ranks(), 1, 1, 1, 1}, periods[5] = {1, 1, 1, 1, 1};
  MPI_Comm cart = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 5, dims, periods, 0, &cart);
  std::vector<int> list;
  for (int k = 0; k < 6; ++k)
    for (int j = 0; j < 5; ++j) list.push_back((1 << 30) + 1234567 * k + j);
  isohalo_neighborhood iso = nullptr;
  ASSERT_EQ(isohalo_neighborhood_create(cart, 6, list.data(), &iso), MPI_SUCCESS);
  std::vector<std::int64_t> out(6, rank()), in(6, -1);
  EXPECT_EQ(isohalo_neighbor_alltoall(out.data(), 1, MPI_INT64_T, in.data(), 1, MPI_INT64_T, iso), MPI_SUCCESS)
      << isohalo_error_text();
  for (std::size_t k = 0; k < 6; ++k) {
    const int n = ranks(), away = list[5 * k] % n;
    EXPECT_EQ(in[k], (rank() - away + n) % n);
  }
  isohalo_neighborhood_free(&iso);
  MPI_Comm_free(&cart);
}

}  // namespace
}  // namespace isohalo::test
