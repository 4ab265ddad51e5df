#include "framework/mpi/agreement.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>
#include <string_view>

namespace isohalo {

namespace {

[[noreturn]] void throw_by_code(ExitCode code, const std::string& text) {
  if (code == ExitCode::usage) throw UsageError(text);
  if (code == ExitCode::failure) throw RunError(text);
  throw Error(code, text);
}

/// Of an exception that is not ours: fmt does not say where it prints to, Kokkos adds a stack behind the first
/// line.
std::string reason_of(const std::exception& e) {
  std::string text = e.what();
  constexpr std::string_view of_fmt = "cannot write to file";
  if (text.starts_with(of_fmt)) text.replace(0, of_fmt.size(), "cannot write to standard output or error");
  return text.substr(0, text.find('\n'));
}

}  // namespace

void agree(const Communicator& comm, const Error* error) {
  comm.get();  // throws after MPI_Finalize, on one rank too
  const std::int64_t nobody = std::numeric_limits<std::int64_t>::max();
  const std::int64_t first = comm.min(error ? comm.rank() : nobody);
  if (first == nobody) return;
  const int root = static_cast<int>(first);
  std::string text = error ? error->what() : "";
  std::int64_t code = error ? static_cast<std::int64_t>(error->code()) : 0;
  comm.broadcast(text, root);
  comm.broadcast(&code, sizeof code, root);
  if (root > 0 && text.rfind("rank ", 0) != 0) text = "rank " + std::to_string(root) + ": " + text;
  throw_by_code(static_cast<ExitCode>(code), text);
}

std::unique_ptr<Error> error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return std::make_unique<Error>(e);
  } catch (const std::bad_alloc&) {
    return std::make_unique<RunError>("out of memory");
  } catch (const std::exception& e) {
    return std::make_unique<RunError>(reason_of(e));
  }
  return nullptr;
}

void agreed(const Communicator& comm, const std::function<void()>& work) {
  agree(comm, error_of(work).get());
}

void on_root(const Communicator& comm, const std::function<void()>& work) {
  agreed(comm, [&] {
    if (comm.rank() == 0) work();
  });
}

namespace {

const Argument& argument(const std::vector<Argument>& list, std::size_t k) {
  static const Argument none{"number of arguments", "no more"};
  return k < list.size() ? list[k] : none;
}

/// What of a long value shows that it differs from another.
std::string shortened(const std::string& value, const std::string& other) {
  constexpr std::size_t most = 60, before = 20;
  if (value.size() <= most) return value;
  const auto differs = std::mismatch(value.begin(), value.end(), other.begin(), other.end()).first;
  const auto at = static_cast<std::size_t>(differs - value.begin());
  const std::size_t from = at + before <= most ? 0 : std::min(at - before, value.size() - most);
  return (from > 0 ? ".." : "") + value.substr(from, most) + (from + most < value.size() ? ".." : "");
}

/// Every rank gets rank 0's arguments, one after the other, and says whether its own is another.
[[noreturn]] void throw_difference(const Communicator& comm, const std::vector<Argument>& mine) {
  const std::int64_t nobody = comm.size(), most = comm.max(static_cast<std::int64_t>(mine.size()));
  for (std::size_t k = 0; k < static_cast<std::size_t>(most); ++k) {
    std::string name = argument(mine, k).name, value = argument(mine, k).value;
    comm.broadcast(name, 0);
    comm.broadcast(value, 0);
    const bool same = name == argument(mine, k).name && value == argument(mine, k).value;
    const std::int64_t first = comm.min(same ? nobody : comm.rank());
    if (first == nobody) continue;
    std::string other = argument(mine, k).value;
    comm.broadcast(other, static_cast<int>(first));
    if (k == 0) {
      throw UsageError("ranks make different things: rank 0 " + value + ", rank " + std::to_string(first) + " " +
                       other + ": make the same in the same order on all of them");
    }
    throw UsageError(mine.front().value + ": argument \"" + name + "\" differs between ranks: rank 0 has \"" +
                     shortened(value, other) + "\", rank " + std::to_string(first) + " has \"" +
                     shortened(other, value) + "\": pass the same on all of them");
  }
  throw UsageError(mine.front().value + ": the arguments differ between ranks: pass the same on all of them");
}

}  // namespace

std::string type_text(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                     std::free);
  return plain ? plain.get() : type.name();
}

void agree_same(const Communicator& comm, const std::string& call, const std::vector<Argument>& arguments,
                const Error* error) {
  if (comm.size() == 1) {
    agree(comm, error);
    return;
  }
  std::vector<Argument> mine{{"call", call}};
  mine.insert(mine.end(), arguments.begin(), arguments.end());
  std::string all;
  for (const Argument& a : mine)
    for (const std::string* text : {&a.name, &a.value}) all += std::to_string(text->size()) + " " + *text;
  const auto number = static_cast<std::int64_t>(std::hash<std::string_view>()(all));
  std::int64_t most[3] = {number, ~number, error != nullptr};  // the largest complement is that of the smallest
  comm.allreduce(most, 3, MPI_INT64_T, MPI_MAX);
  if (most[2] != 0) agree(comm, error);
  if (most[0] != ~most[1]) throw_difference(comm, mine);
}

bool checks_communication() {
  static const bool checks = [] {
    const char* const word = std::getenv("ISOHALO_CHECK");
    if (!word) {
#ifdef NDEBUG
      return false;
#else
      return true;
#endif
    }
    const std::string level = word;
    if (level != "local" && level != "communication")
      throw UsageError("ISOHALO_CHECK is \"" + level + "\": use local or communication");
    return level == "communication";
  }();
  return checks;
}

}  // namespace isohalo
