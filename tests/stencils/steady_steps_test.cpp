/// Steps do no hidden work: once the first ones are made, no step of a shipped solver allocates memory, and on the
/// host none copies or fills a view, or fences but behind a kernel.

#include <execinfo.h>
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "apps/bench/input_solver.hpp"
#include "tests/mpi_main.hpp"
#include "tests/stencils/every_solver.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ISOHALO_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(ISOHALO_SANITIZED) || \
    !defined(__GLIBC__)
#define ISOHALO_COUNTS_ALLOCATIONS 0
#else
#define ISOHALO_COUNTS_ALLOCATIONS 1
#endif

namespace {

/// What happened since `count` was set.
struct Tally {
  std::atomic<bool> count{false};
  std::atomic<int> allocations{0};
  std::array<void*, 12> where{};  ///< of the first
  int frames = 0;

  void allocated() {
    if (!count || allocations++ > 0) return;
    count = false;  // of what backtrace itself takes
    frames = backtrace(where.data(), static_cast<int>(where.size()));
    count = true;
  }
};
Tally tally;

}  // namespace

#if ISOHALO_COUNTS_ALLOCATIONS
// All of C++, in whichever library; of C only the calls of this program, since MPI has its own ways.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
extern char __executable_start, etext;
}

namespace {
void count_call_from(const void* caller) {
  if (caller >= static_cast<const void*>(&__executable_start) && caller < static_cast<const void*>(&etext))
    tally.allocated();
}
}  // namespace

extern "C" {
void* malloc(std::size_t n) {
  count_call_from(__builtin_return_address(0));
  return __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t size) {
  count_call_from(__builtin_return_address(0));
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t n) {
  count_call_from(__builtin_return_address(0));
  return __libc_realloc(p, n);
}
int posix_memalign(void** p, std::size_t alignment, std::size_t n) {
  count_call_from(__builtin_return_address(0));
  *p = __libc_memalign(alignment, n);
  return *p ? 0 : ENOMEM;
}
void* aligned_alloc(std::size_t alignment, std::size_t n) {
  count_call_from(__builtin_return_address(0));
  return __libc_memalign(alignment, n);
}
}

void* operator new(std::size_t n) {
  tally.allocated();
  if (void* const p = __libc_malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t n, std::align_val_t alignment) {
  tally.allocated();
  if (void* const p = __libc_memalign(static_cast<std::size_t>(alignment), n)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
#endif

namespace isohalo {
namespace {

/// Where the first allocation was, as offsets in the program for addr2line.
[[maybe_unused]] std::string first_place() {
  std::string text = "the first one from:";
  char** const symbols = backtrace_symbols(tally.where.data(), tally.frames);
  for (int k = 2; symbols && k < tally.frames; ++k) text += std::string("\n  ") + symbols[k];
  std::free(symbols);
  return text;
}

/// What Kokkos tells its tools.
struct Events {
  int kernels = 0, fences = 0, copies = 0, allocations = 0;
};
Events events;

namespace tools = Kokkos::Tools::Experimental;
using Space = Kokkos::Profiling::SpaceHandle;

void listen(bool on) {
  events = {};
  if (on) {
    tools::set_begin_parallel_for_callback(
        [](const char*, const std::uint32_t, std::uint64_t*) { ++events.kernels; });
    tools::set_allocate_data_callback(
        [](const Space, const char*, const void* const, const std::uint64_t) { ++events.allocations; });
    tools::set_begin_deep_copy_callback(
        [](Space, const char*, const void*, Space, const char*, const void*, std::uint64_t) { ++events.copies; });
  } else {
    tools::set_begin_parallel_for_callback(nullptr);
    tools::set_allocate_data_callback(nullptr);
    tools::set_begin_deep_copy_callback(nullptr);
  }
#if KOKKOS_VERSION >= 40000  // older ones do not tell
  if (on)
    tools::set_begin_fence_callback([](const char*, const std::uint32_t, std::uint64_t*) { ++events.fences; });
  else
    tools::set_begin_fence_callback(nullptr);
#endif
}

template <int D>
void step_and_look(Solver<D>& solver, int depth) {
  for (int k = 0; k < 3; ++k) {
    solver.advance(depth + 1, false);  // whole blocks of steps, and parts of them
    solver.advance(2 * depth, true);
    solver.advance(1, true);
  }
}

/// `copies`: of views, where values go from one memory to another.
template <int D>
void expect_no_hidden_work(const std::string& text, int depth, bool copies = false) {
  InputSolver<D> solver(MPI_COMM_WORLD, text);
  solver->advance(20 * depth, false);  // an exchange is chosen, and whether sweeps overlap it
  step_and_look(*solver, depth);
#if ISOHALO_COUNTS_ALLOCATIONS
  tally.allocations = 0;
  tally.count = true;
  step_and_look(*solver, depth);
  tally.count = false;
  EXPECT_EQ(tally.allocations, 0) << first_place();
#endif
  listen(true);  // apart from that, since tools are told with strings of their own
  step_and_look(*solver, depth);
  const Events seen = events;
  listen(false);
  EXPECT_GT(seen.kernels, 0);
  EXPECT_EQ(seen.allocations, 0);
  if (!copies) {
    EXPECT_EQ(seen.copies, 0);
  }
#if KOKKOS_VERSION >= 40000
  EXPECT_GT(seen.fences, 0);
  if (!copies) {
    EXPECT_LE(seen.fences, seen.kernels);
  }
#endif
}

std::string grid_text(const std::string& shape, int depth) {
  return "domain.shape = " + shape + "\nparallel.halo_depth = " + std::to_string(depth) + "\nrun.steps = 1\n";
}

/// What the other tests rely on.
TEST(SteadySteps, HiddenWorkIsSeen) {
#if ISOHALO_COUNTS_ALLOCATIONS
  tally.allocations = 0;
  tally.count = true;
  operator delete(operator new(8));
  void* volatile memory = std::malloc(8);
  std::free(memory);
  const std::string label = std::string("isohalo::") + std::to_string(test::ranks()) + " ranks";  // 16 characters
  tally.count = false;
  EXPECT_GE(tally.allocations, 3) << label;
#endif
  listen(true);
  Kokkos::View<double*, Kokkos::HostSpace> a("a", 10), b("b", 10);
  Kokkos::deep_copy(a, b);
  const Events seen = events;
  listen(false);
  EXPECT_EQ(seen.allocations, 2);
  EXPECT_GE(seen.copies, 1);
}

TEST(SteadySteps, AllocateNothing) {
  for (const SolverText& s : all_solvers())
    for (const int depth : {1, 3}) {
      SCOPED_TRACE(s.text + "depth " + std::to_string(depth));
      expect_no_hidden_work<2>(grid_text("[130, 205]", depth) + s.text, depth);
      ASSERT_TRUE(test::all_ranks_ok(!testing::Test::HasFatalFailure()));
    }
}

TEST(SteadySteps, AllocateNothingHoweverTheyAreCarriedOut) {
  const std::string heat = kFixed + kRandom + "solver.kind = \"heat\"\n";
  const std::string cube = "solver.kind = \"heat\"\n" + kRandom;
  for (const int depth : {1, 3}) {
    expect_no_hidden_work<3>(grid_text("[21, 24, 33]", depth) + cube, depth);
    expect_no_hidden_work<2>(grid_text("[520, 600]", depth) + heat, depth);  // several time tiles
    for (const std::string& exchange : exchange_names()) {
      SCOPED_TRACE(exchange);
      expect_no_hidden_work<2>(grid_text("[61, 45]", depth) + "parallel.exchange = \"" + exchange + "\"\n" + heat,
                               depth);
    }
  }
  for (const char* reduction : {"tree", "binary_tree", "exact"}) {
    SCOPED_TRACE(reduction);
    expect_no_hidden_work<2>(grid_text("[61, 45]", 1) + "parallel.reduction = \"" + reduction + "\"\n" + heat, 1);
  }
}

TEST(SteadySteps, AllocateNothingOnDevices) {
  for (const SolverText& s : all_solvers())
    for (const int depth : {1, 3}) {
      SCOPED_TRACE(s.text + "depth " + std::to_string(depth));
      expect_no_hidden_work<2>(grid_text("[130, 205]", depth) + "parallel.space = \"device\"\n" + s.text, depth,
                               true);
    }
}

TEST(SteadySteps, EverySolverIsHere) {
  std::set<std::string> here;
  for (const SolverText& s : all_solvers()) here.insert(s.kind);
  const SolverKinds kinds = shipped_solvers();
  for (const auto& [kind, maker] : kinds.of<2>()) EXPECT_TRUE(here.contains(kind)) << kind;
}

TEST(SteadySteps, AllocationsAreCounted) {
  if (!ISOHALO_COUNTS_ALLOCATIONS)
    GTEST_SKIP() << "only those of Kokkos were: a sanitizer, or another C library, has malloc for itself";
}

TEST(SteadySteps, FenceBehindKernelsOnly) {
#if KOKKOS_VERSION < 40000
  GTEST_SKIP() << "this Kokkos does not tell tools about fences: 4.0 or newer does";
#endif
}

}  // namespace
}  // namespace isohalo
