#pragma once
/// Files that users name, looked at before a library opens them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "datatypes/error.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/mpi/whole_file.hpp"

namespace isohalo {

/// A regular file, open for reading until its owner ends. All functions are local and throw UsageError with the
/// file's name and the reason.
class ReadableFile {
 public:
  /// Throws for what is no regular file or cannot be read. Never waits, for a pipe either.
  explicit ReadableFile(const std::filesystem::path& file);
  int descriptor() const { return descriptor_.get(); }
  /// Bytes that it has now.
  std::int64_t size() const;
  /// Fills `to` from byte `at`.
  void read(std::int64_t at, void* to, std::size_t bytes) const;

 private:
  std::string name_;
  Descriptor descriptor_;
};

/// Throws as `ReadableFile` does.
inline void refuse_unreadable(const std::filesystem::path& file) {
  ReadableFile{file};
}

/// Runs `work`. Whatever Error it throws becomes a UsageError that begins with the file's name.
template <class F>
auto naming(const std::filesystem::path& file, F&& work) {
  try {
    return work();
  } catch (const Error& e) {
    const std::string text = e.what();
    throw UsageError(text.starts_with(file.string()) ? text : file.string() + ": " + text);
  }
}

/// The file that a symbolic link of this name leads to now, for all ranks and for as long as it is read: latest.h5
/// may move on meanwhile. Other names stay as they are. Collective.
std::filesystem::path pinned(const std::filesystem::path& file, const Communicator& comm);

}  // namespace isohalo
