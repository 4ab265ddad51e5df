#pragma once
/// All ranks leave with the same verdict: nobody throws alone, nobody waits for a rank that has left.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "datatypes/error.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// Runs `work`; what it threw, or null. Local.
std::unique_ptr<Error> error_of(const std::function<void()>& work);

/// Runs `work` on every rank; if it threw an exception on any, throws the error of the lowest such rank on all of
/// them (UsageError, RunError or Error, by its exit code), with that rank named unless it is rank 0 (which does the
/// work that only one rank does). `work` must not communicate. Collective.
void agreed(const Communicator& comm, const std::function<void()>& work);

/// The same of work that only rank 0 does. Collective.
void on_root(const Communicator& comm, const std::function<void()>& work);

/// The same for a verdict already known: `error` is null on ranks where all is well. Collective.
void agree(const Communicator& comm, const Error* error);

/// What `make()` returns, made on all ranks or on none: see `agreed`. For memory, which one rank alone may lack,
/// when something collective follows. Collective.
template <class Make>
auto made_on_all(const Communicator& comm, Make&& make) {
  std::optional<decltype(make())> made;
  agreed(comm, [&] { made.emplace(make()); });
  return std::move(*made);
}

/// An argument of a collective call: its name, and its value as text that is equal for equal values.
struct Argument {
  std::string name, value;
};

/// The name of a type in C++.
std::string type_text(const std::type_info& type);

/// Numbers, flags, .. as text: "3 4 19".
template <class List>
std::string text_of_list(const List& list) {
  std::string text;
  for (const auto& value : list) text += (text.empty() ? "" : " ") + std::to_string(value);
  return text;
}

/// Compares the arguments that all ranks gave to `call` ("CartesianDomain"). Where they differ it throws
/// UsageError, the same on all ranks, which names the first rank that differs from rank 0, the first such argument
/// and both values. `error`: what this rank found wrong with its own, or null; then that of the lowest such rank is
/// thrown on all, as by `agree`. One allreduce of a fingerprint when all is well. Collective.
void agree_same(const Communicator& comm, const std::string& call, const std::vector<Argument>& arguments,
                const Error* error = nullptr);

/// Errors of arguments, handles and sizes are always found, on the rank that makes them. Arguments that differ
/// between ranks where they must be equal, in functions that do not communicate, are found only at the check level
/// "communication": on in Debug builds and when the environment has ISOHALO_CHECK=communication, off with
/// ISOHALO_CHECK=local. Equal on all ranks. Throws UsageError for another word. Local.
bool checks_communication();

}  // namespace isohalo
