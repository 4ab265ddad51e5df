#include "framework/run/output_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "datatypes/error.hpp"

namespace isohalo {

namespace fs = std::filesystem;

fs::path OutputDirectory::file(std::int64_t step, const std::string& suffix) const {
  return path_ / fmt::format("step_{:08d}{}", step, suffix);
}

fs::path OutputDirectory::picture(const std::string& field, std::int64_t step) const {
  return path_ / fmt::format("{}_{:08d}.png", field, step);
}

std::vector<std::int64_t> OutputDirectory::steps() const {
  std::vector<std::int64_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.size() < 16 || name.rfind("step_", 0) != 0 || entry.path().extension() != ".h5") continue;
    std::int64_t step = -1;
    const char* const end = name.data() + name.size() - 3;
    const auto [at, error] = std::from_chars(name.data() + 5, end, step);
    if (error == std::errc{} && at == end && step >= 0) found.push_back(step);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

void OutputDirectory::make_writable() const {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error || !fs::is_directory(path_))
    throw UsageError("output.directory " + path_.string() +
                     " cannot be made: " + (error ? error.message() : std::string("a file has that name")));
  const fs::path probe = path_ / ".isohalo_probe";
  const bool good = static_cast<bool>(std::ofstream(probe) << "x" << std::flush);
  fs::remove(probe, error);
  if (!good) throw UsageError("output.directory " + path_.string() + " cannot be written to: choose another");
}

void OutputDirectory::remove(std::int64_t step) const {
  std::error_code ignored;
  for (const char* suffix : {".h5", ".json", ".xmf"}) fs::remove(file(step, suffix), ignored);
}

void OutputDirectory::remove_all_checkpoints() const {
  std::error_code ignored;
  fs::remove(path_ / "latest.h5", ignored);
  fs::remove(trail(), ignored);
  for (std::int64_t s : steps()) remove(s);
}

void OutputDirectory::set_latest(std::int64_t step) const {
  const fs::path link = path_ / "latest.h5", fresh = path_ / "latest.h5.tmp";
  std::error_code error;
  fs::remove(fresh, error);
  fs::create_symlink(checkpoint(step).filename(), fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) throw RunError("cannot point " + link.string() + " at the new checkpoint: " + error.message());
}

void OutputDirectory::delete_beyond(std::int64_t keep, std::int64_t newest) const {
  if (keep <= 0) return;
  std::int64_t kept = 0;
  for (std::int64_t s : steps())
    if (s <= newest && ++kept > keep) remove(s);
}

}  // namespace isohalo
