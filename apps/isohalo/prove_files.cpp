#include "apps/isohalo/prove_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>

#include "apps/isohalo/compare_report.hpp"
#include "datatypes/printable.hpp"

namespace isohalo {

namespace fs = std::filesystem;

namespace {

/// The first byte that two files do not have in common, -1 when they are the same.
std::int64_t first_difference(const fs::path& a, const fs::path& b) {
  std::ifstream x(a, std::ios::binary), y(b, std::ios::binary);
  for (const auto* stream : {&x, &y})
    if (!*stream) throw RunError("cannot read " + (stream == &x ? a : b).string());
  std::vector<char> p(1 << 20), q(1 << 20);
  for (std::int64_t at = 0;;) {
    x.read(p.data(), static_cast<std::streamsize>(p.size()));
    y.read(q.data(), static_cast<std::streamsize>(q.size()));
    const auto here = std::min(x.gcount(), y.gcount());
    const auto different = std::mismatch(p.begin(), p.begin() + here, q.begin()).first - p.begin();
    if (different < here || x.gcount() != y.gcount()) return at + different;
    if (here == 0) return -1;
    at += here;
  }
}

/// What differs within two files, as text; or why that cannot be said.
std::string inside(const fs::path& a, const fs::path& b, const Communicator& comm) {
  try {
    if (a.extension() == ".h5") return comparison_text(compare_checkpoints(a, b, comm));
    if (a.extension() == ".txt")
      return digest_logs_text(compare_digest_logs(read_digest_log(a), read_digest_log(b)));
  } catch (const Error& e) {
    return printable(e.what()) + "\n";
  }
  return "";
}

std::string target_of(const fs::path& link) {
  std::error_code error;
  return fs::read_symlink(link, error).string();
}

std::optional<FileDifference> difference(const std::string& name, const fs::path& a, const fs::path& b,
                                         const Communicator& comm) {
  if (fs::is_symlink(a) || fs::is_symlink(b)) {
    if (target_of(a) == target_of(b)) return std::nullopt;
    return FileDifference{name + " leads elsewhere", fmt::format("{}: to \"{}\" against \"{}\"\n", printable(name),
                                                                 printable(target_of(a)), printable(target_of(b)))};
  }
  if (a.extension() == ".json") return std::nullopt;
  const std::int64_t at = first_difference(a, b);
  if (at < 0) return std::nullopt;
  return FileDifference{name + " differs",
                        fmt::format("{}: {} against {} bytes, first different byte {}\n{}", printable(name),
                                    fs::file_size(a), fs::file_size(b), at, inside(a, b, comm))};
}

}  // namespace

Stamps stamps_of(const fs::path& directory) {
  Stamps stamps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    struct stat s {};
    if (lstat(entry.path().c_str(), &s) == 0)
      stamps[entry.path().filename().string()] =
          fmt::format("{} {} {}", s.st_ino, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
  }
  return stamps;
}

std::map<std::string, fs::path> files_left(const fs::path& directory, const Stamps& former) {
  std::map<std::string, fs::path> files;
  const Stamps now = stamps_of(directory);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    const auto before = former.find(name);
    if (before != former.end() && now.contains(name) && now.at(name) == before->second) continue;
    if (name[0] != '.' && (entry.is_symlink() || entry.is_regular_file())) files[name] = entry.path();
  }
  return files;
}

std::vector<FileDifference> differing_files(const std::map<std::string, fs::path>& a,
                                            const std::map<std::string, fs::path>& b, const Communicator& comm) {
  std::vector<FileDifference> found;
  for (const auto& [name, file] : a) {
    const auto other = b.find(name);
    if (other == b.end())
      found.push_back({name + " is missing", ""});
    else if (const auto d = difference(name, file, other->second, comm))
      found.push_back(*d);
  }
  for (const auto& [name, file] : b)
    if (!a.contains(name)) found.push_back({name + " is additional", ""});
  return found;
}

}  // namespace isohalo
