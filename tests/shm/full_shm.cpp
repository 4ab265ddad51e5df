/// No shared memory when plans are made, or a /dev/shm that fills up afterwards: see full_shm.sh.

#include <fcntl.h>
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "apps/common/probe_field.hpp"
#include "framework/shm/node_slots.hpp"

using namespace isohalo;

namespace {

constexpr const char* kFiller = "/dev/shm/filler";

/// Rank 0 takes all room that is left.
void fill(const Communicator& comm) {
  if (comm.rank() == 0) {
    const int file = open(kFiller, O_WRONLY | O_CREAT | O_EXCL, 0600);
    const std::vector<char> page(4096);
    while (write(file, page.data(), page.size()) > 0) {
    }
    close(file);
  }
  comm.barrier();
}

/// Files may be no larger than so much: then there is no shared memory for channels.
void limit_files(rlim_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
}

/// Wrong cells after an exchange; on all ranks.
template <class Plan>
std::int64_t wrong(const CartesianDomain<2>& domain, Plan& plan, detail::ProbeField<double, 2>& field, int number) {
  const detail::NeededCells<2> needed(domain, StencilShape<2>::moore(1), 2);
  field.refill(number);
  plan.exchange(field.ref());
  std::int64_t n = 0;
  field.for_each_wrong(needed, [&](const Index<2>&, double, double) { ++n; });
  return domain.comm().max(n);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const bool before = argc > 1 && std::strcmp(argv[1], "before") == 0;
  int failures = 0;
  {
    DomainOptions<2> o;
    o.periodic = {true, true};
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    o.process_grid = {{ranks, 1}};
    const CartesianDomain<2> domain(MPI_COMM_WORLD, {96, 4096}, o);  // messages of 100 KB
    const Communicator& comm = domain.comm();
    const auto expect = [&](bool ok, const char* what) {
      if (ok) return;
      ++failures;
      std::fprintf(stderr, "rank %d: FAILED: %s\n", comm.rank(), what);
    };
    HaloOptions<2> options;
    options.exchange = Exchange::shared;
    HaloPlan<2> forced(domain, StencilShape<2>::moore(1), 2, options), chosen(domain, StencilShape<2>::moore(1), 2);
    detail::ProbeField<double, 2> plain(domain, forced, 0, detail::ProbeLayout::plain),
        mapped(domain, forced, 0, detail::ProbeLayout::shared);
    comm.barrier();
    if (before) limit_files(1 << 16);
    expect(wrong(domain, forced, plain, 1) == 0, "shared: wrong ghosts");
    expect(wrong(domain, chosen, plain, 2) == 0, "auto: wrong ghosts");
    auto slots = NodeSlots::make(comm, 40000);
    expect((slots != nullptr) != before, "slots");
    expect(forced.choice().used == (before ? Exchange::coalesced_packed : Exchange::shared), "the way used");
    if (!before) fill(comm);
    for (int round = 3; round < 8; ++round) {
      expect(wrong(domain, forced, plain, round) == 0, "shared, later");
      expect(wrong(domain, forced, mapped, round) == 0, "shared, in place");
      expect(wrong(domain, chosen, plain, round) == 0, "auto, later");
    }
    if (slots) {
      std::memset(slots->mine(), 1, 40000);
      slots->begin();
      std::memset(slots->mine(), 1, 40000);
    }
    if (before) {  // there is room again: new lists may have channels
      limit_files(RLIM_INFINITY);
      HaloPlan<2> later(domain, StencilShape<2>::moore(1), 2, options);
      expect(wrong(domain, later, plain, 9) == 0 && later.choice().used == Exchange::shared, "room again");
    }
    comm.barrier();
    if (comm.rank() == 0) unlink(kFiller);
  }
  MPI_Finalize();
  return failures ? 1 : 0;
}
