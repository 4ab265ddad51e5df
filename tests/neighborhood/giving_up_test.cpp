/// Operations that cannot go on, with blocks so large that MPI reads them where they lie: when all ranks have their
/// error, MPI has let go of the buffers, and they may be unmapped.

#include <gtest/gtest.h>
#include <sys/mman.h>

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

}  // namespace
}  // namespace isohalo::test
