#pragma once
/// Helpers of the MPI tests. Each rank prints its own failures; the job fails when any rank's test failed.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>

#include "datatypes/error.hpp"

namespace isohalo::test {

inline int rank() {
  int r = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  return r;
}
inline int ranks() {
  int n = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  return n;
}

/// True when `ok` is true on all ranks; to be called by all of them before anything that would leave some behind.
bool all_ranks_ok(bool ok);

/// Files that this process has open; 0 where the system does not say.
inline std::ptrdiff_t open_files() {
  std::error_code ignored;
  const std::filesystem::directory_iterator all("/proc/self/fd", ignored);
  return std::distance(begin(all), end(all));
}

/// `f` must throw a usage error, and `part` be in its text.
template <class F>
void expect_refusal(const std::string& part, F&& f) {
  ASSERT_FALSE(part.empty()) << "an empty text is in every error";
  std::string text;
  try {
    f();
  } catch (const Error& e) {
    if (e.code() == ExitCode::usage) text = e.what();
  }
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in \"" << text << "\"";
}

/// A small deterministic generator for test cases, the same on all ranks.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// low <= result <= high
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  double real(double low, double high) {
    return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53);
  }

 private:
  std::uint64_t state_;
};

}  // namespace isohalo::test
