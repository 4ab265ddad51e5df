#pragma once
/// What the harnesses share. Each defines `fuzz_one`; libFuzzer, or replay_main.cpp under any compiler, calls it
/// through the usual entry point. An input may be refused by an Error of ours; anything else that is thrown, and
/// any property that does not hold, ends the process.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "datatypes/error.hpp"

namespace isohalo::fuzz {

/// Tries one input.
void fuzz_one(std::string_view input);

/// True when `work` was not refused. Errors without a text, and refusals that are no usage errors, are findings.
inline bool accepted(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const UsageError& e) {
    if (std::string_view(e.what()).empty()) std::abort();
  } catch (const Error& e) {  // agreed errors keep their code alone
    if (e.code() != ExitCode::usage || std::string_view(e.what()).empty()) throw;
  }
  return false;
}

/// A property that must hold whatever the input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

/// A file of this process in memory, with these bytes; written again at every call.
std::filesystem::path scratch_file(std::string_view name, std::string_view bytes);

/// MPI for this process alone. libFuzzer leaves without `finalize`.
void initialize();
void finalize();

}  // namespace isohalo::fuzz
