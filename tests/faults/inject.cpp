/// Breaks the isohalo command where a test asks for it. Linked, together with the objects of the command, into the
/// tests' program `isohalo_faulty` alone.
///
///   ISOHALO_FAULT = ACTION:KEY=VALUE:..[;ACTION:..]
///
/// ACTION is what happens the `nth` time (default 1) that rank `rank` (a number or `all`, default 0) passes the
/// place `at`: kill (SIGKILL of rank `victim`, default the rank itself), signal (`number`, to `victim`), throw (a
/// RunError of this rank), exhaust (std::bad_alloc), limit (no file may grow beyond `bytes`), fill (the file system
/// of the directory `in` is filled up, blocks and names). Each writes one line "injected: .." to standard error.
///
///   ISOHALO_MOST_ALONE = BYTES       checkpoints of more field data are written by all ranks together
///   ISOHALO_NO_PROC = 1              symbolic links of /proc cannot be read

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "datatypes/error.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/mpi/fault_point.hpp"

namespace {

namespace fs = std::filesystem;

using Keys = std::map<std::string, std::string>;

[[noreturn]] void give_up(const std::string& why) {
  const std::string text = "isohalo_faulty: " + why + "\n";
  [[maybe_unused]] const auto ignored = write(2, text.data(), text.size());
  std::_Exit(99);
}

long number(const Keys& keys, const std::string& key, long otherwise) {
  const auto found = keys.find(key);
  if (found == keys.end()) return otherwise;
  long value = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [at, error] = std::from_chars(found->second.data(), end, value);
  if (error != std::errc{} || at != end) give_up(key + " = " + found->second + " is no number");
  return value;
}

struct Fault {
  std::string action, at;
  Keys keys;
  long passed = 0;
};

std::vector<Fault>& faults() {
  static std::vector<Fault> list;
  return list;
}

/// The launcher's number of this process, 0 without a launcher.
long own_rank() {
  const char* text = std::getenv("PMI_RANK");
  return text ? std::atol(text) : 0;
}

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

/// The process of another rank: a child of the same launcher's proxy.
pid_t process_of(long rank) {
  if (rank == own_rank()) return getpid();
  const std::string sought = std::string("PMI_RANK=") + std::to_string(rank) + '\0';
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string status = contents(entry.path() / "stat");
    const auto after = status.rfind(')');
    if (after == std::string::npos) continue;
    char state = 0;
    pid_t parent = 0;
    std::istringstream(status.substr(after + 1)) >> state >> parent;
    if (parent == getppid() && ('\0' + contents(entry.path() / "environ")).find('\0' + sought) != std::string::npos)
      return static_cast<pid_t>(std::stol(name));
  }
  give_up("there is no rank " + std::to_string(rank));
}

/// Until no byte and no name fits any more.
void fill_up(const std::string& directory) {
  static const std::vector<char> zeros(std::size_t{1} << 16);
  const std::string filler = directory + "/filler_";
  const int fd = open((filler + "data").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd < 0) give_up("cannot fill " + directory);
  for (std::size_t bytes = zeros.size(); bytes > 0;)
    if (write(fd, zeros.data(), bytes) != static_cast<ssize_t>(bytes)) bytes /= 2;
  close(fd);
  for (int k = 0; k < 100000; ++k) {
    const int empty = open((filler + std::to_string(k)).c_str(), O_WRONLY | O_CREAT, 0600);
    if (empty < 0) return;
    close(empty);
  }
  give_up(directory + " is too large to be filled");
}

void act(const Fault& f) {
  const std::string text = "injected: " + f.action + " at " + f.at + "\n";
  [[maybe_unused]] const auto ignored = write(2, text.data(), text.size());
  const auto victim = [&] { return process_of(number(f.keys, "victim", own_rank())); };
  if (f.action == "kill") {
    kill(victim(), SIGKILL);
  } else if (f.action == "signal") {
    kill(victim(), static_cast<int>(number(f.keys, "number", SIGTERM)));
  } else if (f.action == "throw") {
    throw isohalo::RunError("injected error at " + f.at);
  } else if (f.action == "exhaust") {
    throw std::bad_alloc();
  } else if (f.action == "limit") {
    const auto bytes = static_cast<rlim_t>(number(f.keys, "bytes", 0));
    const rlimit limit{bytes, RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) give_up("cannot limit the size of files");
  } else {
    fill_up(f.keys.at("in"));
  }
}

void on_place(const char* place) {
  for (Fault& f : faults())
    if (f.at == place && ++f.passed == number(f.keys, "nth", 1)) act(f);
}

/// Sets the hook before main when there is something to inject on this rank.
const bool installed = [] {
  if (const char* const bytes = std::getenv("ISOHALO_MOST_ALONE")) isohalo::detail::most_alone = std::atol(bytes);
  const char* const text = std::getenv("ISOHALO_FAULT");
  if (!text) return false;
  std::istringstream all(text);
  for (std::string one; std::getline(all, one, ';');) {
    Fault f;
    std::istringstream words(one);
    std::getline(words, f.action, ':');
    for (std::string word; std::getline(words, word, ':');) {
      const auto equals = word.find('=');
      if (equals == std::string::npos) give_up("\"" + word + "\" is no KEY=VALUE");
      f.keys[word.substr(0, equals)] = word.substr(equals + 1);
    }
    static const std::string known[] = {"kill", "signal", "throw", "exhaust", "limit", "fill"};
    if (std::find(std::begin(known), std::end(known), f.action) == std::end(known))
      give_up("\"" + f.action + "\" is no action");
    if (f.action == "fill" && !f.keys.contains("in")) give_up("fill needs in=DIRECTORY");
    f.at = f.keys["at"];
    if (f.keys["rank"] == "all" || (f.keys["rank"].empty() && own_rank() == 0) ||
        (!f.keys["rank"].empty() && number(f.keys, "rank", 0) == own_rank()))
      faults().push_back(f);
  }
  if (!faults().empty()) isohalo::detail::fault_hook = on_place;
  return true;
}();

}  // namespace

/// The C library's, taken before it by the dynamic linker.
extern "C" ssize_t readlink(const char* path, char* to, std::size_t size) noexcept {
  if (std::getenv("ISOHALO_NO_PROC") && std::string(path).starts_with("/proc/")) {
    errno = ENOENT;
    return -1;
  }
  return readlinkat(AT_FDCWD, path, to, size);
}
