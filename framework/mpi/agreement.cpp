#include "framework/mpi/agreement.hpp"

#include <limits>
#include <new>

namespace isohalo {

void agree(const Communicator& comm, const Error* error) {
  const std::int64_t nobody = std::numeric_limits<std::int64_t>::max();
  const std::int64_t first = comm.min(error ? comm.rank() : nobody);
  if (first == nobody) return;
  const int root = static_cast<int>(first);
  std::string text = error ? error->what() : "";
  std::int64_t code = error ? static_cast<std::int64_t>(error->code()) : 0;
  comm.broadcast(text, root);
  comm.broadcast(&code, sizeof code, root);
  if (root > 0 && text.rfind("rank ", 0) != 0) text = "rank " + std::to_string(root) + ": " + text;
  throw Error(static_cast<ExitCode>(code), text);
}

std::unique_ptr<Error> error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return std::make_unique<Error>(e);
  } catch (const std::bad_alloc&) {
    return std::make_unique<RunError>("out of memory");
  } catch (const std::exception& e) {
    return std::make_unique<RunError>(e.what());
  }
  return nullptr;
}

void agreed(const Communicator& comm, const std::function<void()>& work) {
  agree(comm, error_of(work).get());
}

void agree_same(const Communicator& comm, std::uint64_t fingerprint, const std::string& what) {
  std::uint64_t extremes[2] = {fingerprint, ~fingerprint};  // the maximum of the complement is the minimum's
  comm.allreduce(extremes, 2, MPI_UINT64_T, MPI_MAX);
  if (extremes[0] != ~extremes[1]) throw UsageError(what + " differs between ranks: pass the same on all of them");
}

}  // namespace isohalo
