/// What a program may do around its collectives: communicators that come and go in any order, messages that stay
/// under way, processes that are forked, a rank that has no room, and MPI_Abort. Knows MPI alone, but for the guard
/// of MPI_Finalize, as client.cpp does. usage: preload_hostile communicators COUNT SEED | traffic COUNT SEED |
/// fork COUNT PROGRAM | full | fill COUNT SEED | waiting COUNT | abort

#include <mpi.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "apps/common/finalize_guard.hpp"

namespace {

int failures = 0, rank = 0, ranks = 1;
using Random = std::mt19937;

void expect(bool ok, const char* what, long call) {
  if (!ok && ++failures <= 5) std::fprintf(stderr, "rank %d: FAILED: %s, call %ld\n", rank, what, call);
}

int below(Random& random, int n) {
  return static_cast<int>(random() % static_cast<unsigned>(n));
}

/// One collective of a kind and length that `k` decides, with a root that moves on.
void collective(MPI_Comm comm, long k) {
  int me = 0, size = 1;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &size);
  const int lengths[] = {1, 3, 100, 1000, 5000, 40000}, root = static_cast<int>(k % size);
  const auto n = static_cast<std::size_t>(lengths[k / 7 % 6]);
  const int count = static_cast<int>(n);
  std::vector<double> mine(n), result(n, -1);
  for (std::size_t i = 0; i < n; ++i) mine[i] = me + static_cast<double>(i % 17);
  const auto sums = [&](std::size_t i) { return size * (size - 1) / 2 + size * static_cast<double>(i % 17); };
  const auto right = [&](auto&& of) {
    for (std::size_t i = 0; i < n; ++i)
      if (result[i] != of(i)) return false;
    return true;
  };
  if (k % 4 == 0) {
    MPI_Allreduce(mine.data(), result.data(), count, MPI_DOUBLE, MPI_SUM, comm);
    expect(right(sums), "MPI_Allreduce", k);
  } else if (k % 4 == 1) {
    if (me == root) result = mine;
    MPI_Bcast(result.data(), count, MPI_DOUBLE, root, comm);
    expect(right([&](std::size_t i) { return root + static_cast<double>(i % 17); }), "MPI_Bcast", k);
  } else if (k % 4 == 2) {
    MPI_Reduce(mine.data(), result.data(), count, MPI_DOUBLE, MPI_SUM, root, comm);
    expect(me != root || right(sums), "MPI_Reduce", k);
  } else {
    std::vector<int> all(static_cast<std::size_t>(size), -1);
    MPI_Allgather(&me, 1, MPI_INT, all.data(), 1, MPI_INT, comm);
    for (int r = 0; r < size; ++r) expect(all[static_cast<std::size_t>(r)] == r, "MPI_Allgather", k);
    MPI_Barrier(comm);
  }
}

/// Made of the world or of another by each way there is; MPI_COMM_NULL where this rank is in none. All ranks of the
/// world draw alike.
MPI_Comm make(const std::vector<MPI_Comm>& held, Random& same, int tag) {
  const MPI_Comm of = held[static_cast<std::size_t>(below(same, static_cast<int>(held.size())))];
  const int how = below(same, 4), draw = below(same, 1000);
  MPI_Comm made = MPI_COMM_NULL;
  if (of == MPI_COMM_NULL) return made;
  int me = 0, size = 1;
  MPI_Comm_rank(of, &me);
  MPI_Comm_size(of, &size);
  if (how == 0) MPI_Comm_dup(of, &made);
  if (how == 1) MPI_Comm_split(of, 0, size - me, &made);  // reversed
  if (how == 2)
    MPI_Comm_split(of, me % 2 == draw % 2 ? 1 : draw % 3 ? 2 : MPI_UNDEFINED, (me * 7 + draw) % 5, &made);
  if (how == 3) {  // some of them, rotated, interleaved with those that are not in it
    std::vector<int> members;
    for (int r = 0; r < size; ++r)
      if (const int place = (r + draw) % size; size < 3 || place % 3 != draw % 3) members.push_back(place);
    if (std::find(members.begin(), members.end(), me) == members.end()) return made;
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    MPI_Comm_group(of, &all);
    MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some);
    MPI_Comm_create_group(of, some, tag, &made);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
  }
  return made;
}

void communicators(long count, unsigned seed) {
  Random same(seed);
  std::vector<MPI_Comm> held{MPI_COMM_WORLD};
  for (long k = 0; k < count; ++k) {
    const int most = 9, what = below(same, 10);
    if (what == 0 && held.size() < most) {
      held.push_back(make(held, same, static_cast<int>(k % 1000)));
    } else if (what == 1 && held.size() > 1) {
      const auto gone = held.begin() + 1 + below(same, static_cast<int>(held.size()) - 1);
      if (*gone != MPI_COMM_NULL) MPI_Comm_free(&*gone);
      held.erase(gone);
    } else if (const MPI_Comm comm = held[static_cast<std::size_t>(below(same, static_cast<int>(held.size())))];
               comm != MPI_COMM_NULL) {
      collective(comm, k);
    }
  }
  std::shuffle(held.begin() + 1, held.end(), same);
  for (std::size_t i = 1; i < held.size(); ++i)
    if (held[i] != MPI_COMM_NULL) MPI_Comm_free(&held[i]);
}

/// Messages to and from every other rank, from a few bytes to what MPI does not send before it is asked for.
class Traffic {
 public:
  Traffic(long number, Random& same) : number_(number) {
    std::vector<std::size_t> lengths;  // of what each rank gets
    for (int r = 0; r < ranks; ++r) lengths.push_back(std::size_t{1} << (2 * below(same, 9)));
    for (int other = 0; other < ranks; ++other) {
      if (other == rank) continue;
      in_.emplace_back(lengths[static_cast<std::size_t>(rank)], -1);
      out_.emplace_back(lengths[static_cast<std::size_t>(other)]);
      for (std::size_t i = 0; i < out_.back().size(); ++i) out_.back()[i] = word(rank, i);
      from_.push_back(other);
    }
    requests_.resize(2 * from_.size() + 2, MPI_REQUEST_NULL);
  }
  void start() {
    const int tag = static_cast<int>(number_ % 1000);
    for (std::size_t m = 0; m < from_.size(); ++m)
      MPI_Irecv(in_[m].data(), static_cast<int>(in_[m].size()), MPI_INT, from_[m], tag, MPI_COMM_WORLD,
                &requests_[2 * m]);
    for (std::size_t m = 0; m < from_.size(); ++m)
      MPI_Isend(out_[m].data(), static_cast<int>(out_[m].size()), MPI_INT, from_[m], tag, MPI_COMM_WORLD,
                &requests_[2 * m + 1]);
    // Collectives of MPI's that are under way with them.
    MPI_Iallreduce(&one_, &sum_, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests_[2 * from_.size()]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests_[2 * from_.size() + 1]);
  }
  /// Ranks complete them in different orders.
  void end() {
    if (rank % 2) {
      MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    } else {
      for (std::size_t m = requests_.size(); m-- > 0;) MPI_Wait(&requests_[m], MPI_STATUS_IGNORE);
    }
    for (std::size_t m = 0; m < from_.size(); ++m)
      for (std::size_t i = 0; i < in_[m].size(); ++i)
        if (in_[m][i] != word(from_[m], i)) return expect(false, "a message under way", number_);
    expect(sum_ == ranks, "MPI_Iallreduce under way", number_);
  }

 private:
  int word(int of, std::size_t i) const {
    return static_cast<int>((number_ * 31 + of * 7 + static_cast<long>(i)) % 99991);
  }
  long number_;
  int one_ = 1, sum_ = 0;
  std::vector<std::vector<int>> in_, out_;
  std::vector<int> from_;
  std::vector<MPI_Request> requests_;
};

/// Collectives while messages and collectives of MPI's of several starts are under way, some completed before and
/// some after the next start.
void traffic(long count, unsigned seed) {
  Random same(seed);
  std::vector<std::unique_ptr<Traffic>> under_way;
  for (long k = 0; k < count; ++k) {
    const int what = below(same, 12);
    if (what == 0 && under_way.size() < 4) {
      under_way.push_back(std::make_unique<Traffic>(k, same));
      under_way.back()->start();
    } else if (what == 1 && !under_way.empty()) {
      const auto which = under_way.begin() + below(same, static_cast<int>(under_way.size()));
      (*which)->end();
      under_way.erase(which);
    } else {
      if (same() % 64 == static_cast<unsigned>(rank)) usleep(200);
      collective(MPI_COMM_WORLD, k);
    }
  }
  for (auto& t : under_way) t->end();
}

/// Between collectives a rank starts processes, which share what it has mapped, end at once or become another
/// program.
void forks(long count, const char* program) {
  for (long k = 0; k < count; ++k) {
    collective(MPI_COMM_WORLD, k);
    if (k % ranks != rank) continue;
    pid_t child = 0;
    char* const words[] = {const_cast<char*>(program), nullptr};
    if (k / ranks % 3 == 0) {
      posix_spawn(&child, program, nullptr, nullptr, words, environ);
    } else if ((child = fork()) == 0) {
      if (k / ranks % 3 == 1) execv(program, words);
      _exit(k / ranks % 3 == 1 ? 127 : 0);
    }
    if (k % 2) collective(MPI_COMM_SELF, k);
    int status = -1;
    expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child process", k);
  }
}

/// One rank alone has no room for more files: all of them leave the calls to MPI. (With no more memory MPI itself
/// ends.)
void full() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  rlimit before{RLIM_INFINITY, RLIM_INFINITY};
  getrlimit(RLIMIT_NOFILE, &before);
  const std::filesystem::directory_iterator files("/proc/self/fd");
  const rlimit now{static_cast<rlim_t>(std::distance(begin(files), end(files))) - 1, before.rlim_max};
  if (rank == ranks - 1) setrlimit(RLIMIT_NOFILE, &now);
  MPI_Barrier(copy);
  if (rank == ranks - 1) setrlimit(RLIMIT_NOFILE, &before);
  for (long k = 0; k < 50; ++k) collective(copy, k);
  MPI_Comm_free(&copy);
}

/// Rank 0 takes all room that is left in /dev/shm; then communicators come and go.
void fill(long count, unsigned seed) {
  const char* const filler = "/dev/shm/filler";
  if (rank == 0) {
    std::FILE* const file = std::fopen(filler, "wx");
    const std::vector<char> page(4096, 'f');
    std::setvbuf(file, nullptr, _IONBF, 0);
    while (std::fwrite(page.data(), 1, page.size(), file) == page.size()) {
    }
    std::fclose(file);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  communicators(count, seed);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) std::remove(filler);
}

/// A rank that waits in a collective has messages that it has not asked for, and one to send that MPI has not sent
/// yet.
void waiting(long count) {
  std::vector<int> data(std::size_t{1} << 20), got(data.size());
  const int n = static_cast<int>(data.size());
  for (long k = 0; k < count; ++k) {
    std::fill(data.begin(), data.end(), static_cast<int>(k));
    int word = 0;
    if (rank == 0) {
      MPI_Request sent = MPI_REQUEST_NULL;
      MPI_Isend(data.data(), n, MPI_INT, 1, 1, MPI_COMM_WORLD, &sent);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Wait(&sent, MPI_STATUS_IGNORE);
    } else {
      if (rank == 1) {
        MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Recv(got.data(), n, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(got == data, "a message to a rank that waits", k);
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
}

void aborts() {
  for (long k = 0;; ++k) {
    if (k == 300 && rank == ranks - 1) MPI_Abort(MPI_COMM_WORLD, 42);
    collective(MPI_COMM_WORLD, k);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  isohalo::guard_finalize();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string mode = words.empty() ? "" : words[0];
  const auto number = [&](std::size_t i) { return words.size() > i ? std::atol(words[i].c_str()) : 1; };
  if (mode == "communicators") communicators(number(1), static_cast<unsigned>(number(2)));
  if (mode == "traffic") traffic(number(1), static_cast<unsigned>(number(2)));
  if (mode == "fork") forks(number(1), argv[3]);
  if (mode == "full") full();
  if (mode == "fill") fill(number(1), static_cast<unsigned>(number(2)));
  if (mode == "waiting") waiting(number(1));
  if (mode == "abort") aborts();
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all ? 1 : 0;
}
