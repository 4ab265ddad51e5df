#pragma once
/// All ranks leave with the same verdict: nobody throws alone, nobody waits for a rank that has left.

#include <functional>
#include <memory>

#include "datatypes/error.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo {

/// Runs `work`; what it threw, or null. Local.
std::unique_ptr<Error> error_of(const std::function<void()>& work);

/// Runs `work` on every rank; if it threw an exception on any, throws the error of the lowest such rank on all of
/// them, with that rank named unless it is rank 0 (which does the work that only one rank does). `work` must not
/// communicate. Collective.
void agreed(const Communicator& comm, const std::function<void()>& work);

/// The same for a verdict already known: `error` is null on ranks where all is well. Collective.
void agree(const Communicator& comm, const Error* error);

/// The same; throws an E (MPI's own errors stay what they are).
template <class E>
void agree_as(const Communicator& comm, const Error* error) {
  try {
    agree(comm, error);
  } catch (const MpiError&) {
    throw;
  } catch (const Error& e) {
    throw E(e.what());
  }
}

/// Throws UsageError on all ranks unless `fingerprint` is the same on all of them; `what` names it. Collective.
void agree_same(const Communicator& comm, std::uint64_t fingerprint, const std::string& what);

}  // namespace isohalo
