/// Memory that other processes map: seen by both, alive while mapped, and private where the system does not play
/// along.

#include "framework/shm/shared_memory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

using SharedVector = std::vector<std::int64_t, SharedAllocator<std::int64_t>>;

SharedAddress address_of(const void* place) {
  SharedAddress a;
  EXPECT_TRUE(SharedMemory::find(place, a));
  return a;
}

/// The address that the rank before this one on a ring passes on. Collective.
SharedAddress passed_on(const SharedAddress& mine) {
  const int p = test::ranks(), me = test::rank();
  SharedAddress got;
  MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, (me + 1) % p, 0, &got, sizeof got, MPI_BYTE, (me + p - 1) % p, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return got;
}

TEST(SharedMemory, BothSidesSeeWhatEitherWrites) {
  const int p = test::ranks(), me = test::rank();
  SharedVector cells(1000, me);
  const MappedMemory before(passed_on(address_of(&cells[10])));
  const SharedAddress place = passed_on(address_of(&cells[10]));
  ASSERT_TRUE(test::all_ranks_ok(before.mapped()));
  auto* const theirs = reinterpret_cast<std::int64_t*>(before.data() + place.offset);
  EXPECT_EQ(theirs[0], (me + p - 1) % p);
  MPI_Barrier(MPI_COMM_WORLD);
  theirs[5] = 100 + me;
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(cells[15], 100 + (me + 1) % p);
}

TEST(SharedMemory, IsForThisUserAlone) {
  const SharedVector cells(1000, 1);
  struct stat file {};
  ASSERT_EQ(fstat(static_cast<int>(address_of(cells.data()).descriptor), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0600u);
  EXPECT_EQ(file.st_uid, geteuid());
}

TEST(SharedMemory, StaysMappedWhenTheOwnerFreesIt) {
  const int p = test::ranks(), me = test::rank();
  auto cells = std::make_unique<SharedVector>(5000, 7 * me);
  const SharedAddress place = passed_on(address_of(cells->data()));
  const MappedMemory theirs(place);
  ASSERT_TRUE(test::all_ranks_ok(theirs.mapped()));
  MPI_Barrier(MPI_COMM_WORLD);
  const void* const gone = cells->data();
  cells.reset();
  SharedAddress none;
  EXPECT_FALSE(SharedMemory::find(gone, none));
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(reinterpret_cast<const std::int64_t*>(theirs.data())[4999], 7 * ((me + p - 1) % p));
  EXPECT_FALSE(MappedMemory(place).mapped());  // the name is gone, or means another file
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(SharedMemory, IsZeroedAndHasASerialNumberOfItsOwn) {
  std::int64_t last = 0;
  for (int k = 0; k < 50; ++k) {
    const SharedMemory memory(10000);
    for (int i = 0; i < 10000; ++i) ASSERT_EQ(memory.data()[i], std::byte{0});
    memory.data()[k] = std::byte{1};
    const SharedAddress a = address_of(memory.data() + 9999);
    EXPECT_EQ(a.offset, 9999);
    EXPECT_GT(a.serial, last);
    last = a.serial;
  }
}

TEST(SharedMemory, ForeignPlacesAreNotFoundAndWrongNamesNotMapped) {
  const SharedMemory memory(100);
  int local = 0;
  SharedAddress a;
  EXPECT_FALSE(SharedMemory::find(&local, a));
  EXPECT_FALSE(SharedMemory::find(nullptr, a));
  const SharedAddress good = address_of(memory.data());
  EXPECT_TRUE(MappedMemory(good).mapped());
  for (auto field :
       {&SharedAddress::inode, &SharedAddress::device, &SharedAddress::bytes, &SharedAddress::descriptor}) {
    SharedAddress wrong = good;
    wrong.*field += 1000;
    EXPECT_FALSE(MappedMemory(wrong).mapped());
  }
}

TEST(SharedMemory, IsPrivateWhereFilesMayNotBeSoLarge) {
  std::signal(SIGXFSZ, SIG_DFL);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit small = old;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    const SharedMemory memory(2 << 20);
    memory.data()[(2 << 20) - 1] = std::byte{1};
    SharedAddress a;
    EXPECT_FALSE(SharedMemory::find(memory.data(), a));
  }
  setrlimit(RLIMIT_FSIZE, &old);
}

}  // namespace
}  // namespace isohalo
