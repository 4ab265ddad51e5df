#include "framework/preload/handled.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "datatypes/mpi_check.hpp"
#include "framework/mpi/launcher.hpp"
#include "framework/mpi/progress.hpp"
#include "framework/preload/process_mpi.hpp"
#include "framework/preload/settings.hpp"

namespace isohalo::preload {

namespace {

/// Threads may count at once; one of them may then be lost.
struct Count {
  std::atomic<std::uint64_t> value{0};
  void add(std::uint64_t n) { value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  operator std::uint64_t() const { return value.load(std::memory_order_relaxed); }
};

struct Counts {
  Count handled, bytes, bytes_passed_on;
  std::array<Count, kReasons.size()> passed_on;
};
std::array<Counts, kFunctions.size()> counts;

/// What a communicator carries.
struct State {
  std::unique_ptr<ClusterCollectives> collectives;
  Reason reason = Reason::memory;  ///< when there are none
};

/// The communicator of the last call, because the next one is often on the same.
MPI_Comm last_comm = MPI_COMM_NULL;
State* last_state = nullptr;

int forget(MPI_Comm, int, void* value, void*) {
  if (last_comm != MPI_COMM_NULL) last_comm = MPI_COMM_NULL;
  delete static_cast<State*>(value);
  return MPI_SUCCESS;
}

/// Why this rank wants no call to be handled, or nothing. Threads that call MPI at the same time are left to it.
std::optional<Reason> unwilling() {
  static const std::optional<Reason> why = []() -> std::optional<Reason> {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    if (switched_off()) return Reason::off;
    if (level == MPI_THREAD_MULTIPLE) return Reason::threads;
    return std::nullopt;
  }();
  return why;
}

/// Which of these are so on all ranks? Collective.
std::array<int, 2> on_all(MPI_Comm comm, bool a, bool b) {
  std::array<int, 2> all{a, b};
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallreduce(MPI_IN_PLACE, all.data(), 2, MPI_INT, MPI_MIN, comm, &request), "MPI_Iallreduce");
  wait_all(std::span(&request, 1), 20, "an agreement");
  return all;
}

/// Errors are codes as long as it lives, whatever the caller's error handler does with them.
class ErrorsReturn {
 public:
  explicit ErrorsReturn(MPI_Comm comm) : comm_(comm) {
    mpi_check(MPI_Comm_get_errhandler(comm, &callers_), "MPI_Comm_get_errhandler");
    mpi_check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  ~ErrorsReturn() {
    MPI_Comm_set_errhandler(comm_, callers_);
    if (callers_ != MPI_ERRORS_ARE_FATAL && callers_ != MPI_ERRORS_RETURN && callers_ != MPI_ERRORS_ABORT)
      MPI_Errhandler_free(&callers_);
  }
  ErrorsReturn(const ErrorsReturn&) = delete;
  ErrorsReturn& operator=(const ErrorsReturn&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler callers_ = MPI_ERRHANDLER_NULL;
};

/// How often to look at a flag before giving the core away: hardly, where the launcher says that ranks outnumber
/// the cores. For the ranks of a communicator NodeCollectives finds that out itself.
int spins() {
  const char* const here = detail::launched_here();
  return here && std::atoi(here) > sysconf(_SC_NPROCESSORS_ONLN) ? 5 : NodeCollectivesOptions{}.spins;
}

std::unique_ptr<State> make_state(MPI_Comm comm) {
  auto state = std::make_unique<State>();
  int inter = 0, size = 1;
  mpi_check(MPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter");
  mpi_check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  if (inter || size == 1) {
    state->reason = inter ? Reason::intercommunicator : Reason::alone;
    return state;
  }
  const ErrorsReturn errors(comm);
  // Ranks may have asked for different thread levels, or got other settings.
  const char* const here = detail::launched_here();
  const auto why = unwilling();
  const auto [willing, apart] = on_all(comm, !why, here && std::atoi(here) == 1);
  if (!willing) {
    state->reason = why.value_or(Reason::others);
  } else if (apart) {  // each on a compute node of its own
    state->reason = Reason::nodes;
  } else {
    static const NodeCollectivesOptions options = options_of_settings(spins());
    const bool one = detail::launched_on_one_node(comm);
    state->collectives = (one ? ClusterCollectives::make_on_one_node : ClusterCollectives::make)(comm, options);
    if (state->collectives && state->collectives->nodes() == size) {  // nothing is shared
      state->collectives.reset();
      state->reason = Reason::nodes;
    }
  }
  return state;
}

/// MPI ends by a name that this library does not have, as Fortran's mpi_f08 ends it.
int end(MPI_Comm, int, void*, void*) {
  report();
  return MPI_SUCCESS;
}

int key_for(MPI_Comm_delete_attr_function* deletes) {
  int key = MPI_KEYVAL_INVALID;
  mpi_check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deletes, &key, nullptr), "MPI_Comm_create_keyval");
  return key;
}

/// Throws MpiError.
State* state_of(MPI_Comm comm) {
  const bool threads = unwilling() == Reason::threads;  // several may come here at once
  if (comm == last_comm && !threads) return last_state;
  static const int key = [] {
    if (report_wanted()) mpi_check(MPI_Comm_set_attr(MPI_COMM_SELF, key_for(end), nullptr), "MPI_Comm_set_attr");
    return key_for(forget);
  }();
  void* value = nullptr;
  int found = 0;
  mpi_check(MPI_Comm_get_attr(comm, key, static_cast<void*>(&value), &found), "MPI_Comm_get_attr");
  auto* state = static_cast<State*>(value);
  if (!found) {
    std::unique_ptr<State> made;
    try {
      made = make_state(comm);
    } catch (const std::exception&) {  // as where MPI has no more communicators: not to be tried again in each call
      made = std::make_unique<State>();
      made->reason = Reason::memory;
    }
    mpi_check(MPI_Comm_set_attr(comm, key, made.get()), "MPI_Comm_set_attr");
    state = made.release();
  }
  if (threads) return state;
  last_comm = comm;
  return last_state = state;
}

}  // namespace

ClusterCollectives* collectives_for(MPI_Comm comm, Function function) noexcept {
  Reason reason = Reason::arguments;
  if (comm != MPI_COMM_NULL && mpi_is_active()) {
    try {
      State* const state = state_of(comm);
      if (state->collectives) return state->collectives.get();
      reason = state->reason;
    } catch (...) {  // no communicator, or MPI in trouble: it shall say so itself
      reason = Reason::arguments;
    }
  }
  count_passed_on(function, reason);
  return nullptr;
}

void count_handled(Function function, std::uint64_t bytes) noexcept {
  Counts& c = counts[static_cast<std::size_t>(function)];
  c.handled.add(1);
  c.bytes.add(bytes);
}

void count_passed_on(Function function, Reason reason) noexcept {
  counts[static_cast<std::size_t>(function)].passed_on[static_cast<std::size_t>(reason)].add(1);
}

void count_bytes_passed_on(Function function, std::uint64_t bytes) noexcept {
  counts[static_cast<std::size_t>(function)].bytes_passed_on.add(bytes);
}

void report() {
  static bool done = false;
  if (process_mpi().rank != 0 || !report_wanted() || std::exchange(done, true)) return;
  std::string line = "{\"isohalo_mpi\": {";
  for (std::size_t f = 0; f < counts.size(); ++f) {
    const Counts& c = counts[f];
    line += std::string(f ? ", " : "") + "\"" + kFunctions[f] + "\": {\"handled\": " + std::to_string(c.handled) +
            ", \"bytes\": " + std::to_string(c.bytes) + ", \"passed_on\": {";
    bool first = true;
    for (std::size_t r = 0; r < kReasons.size(); ++r) {
      if (c.passed_on[r] == 0) continue;
      line += std::string(first ? "" : ", ") + "\"" + kReasons[r] + "\": " + std::to_string(c.passed_on[r]);
      first = false;
    }
    line += "}, \"bytes_passed_on\": " + std::to_string(c.bytes_passed_on) + "}";
  }
  std::fprintf(stderr, "%s}}\n", line.c_str());
}

}  // namespace isohalo::preload
