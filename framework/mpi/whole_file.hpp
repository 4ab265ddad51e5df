#pragma once
/// The one way in which this project makes files: under a name that nobody can foresee, never through a link, never
/// into a file that is there; a file has its name only when it is complete. On one rank; errors name the file and
/// the reason.

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace isohalo {

/// An open file, closed with its owner; negative: none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& o) noexcept : number_(std::exchange(o.number_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(number_, o.number_);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  /// False, with errno, when the system says only now that something failed.
  bool close() {
    const int number = std::exchange(number_, -1);
    return number < 0 || ::close(number) == 0;
  }

 private:
  int number_;
};

/// What the system says of an error.
std::string reason(int error = errno);

/// FILE.<16 random hex digits>.tmp. Throws RunError.
std::filesystem::path temporary_name(const std::filesystem::path& file);

/// A file in the making beside `file`, removed with its owner unless it is published. All functions throw RunError
/// with the system's reason alone.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& file);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();
  /// Where it is until it is published.
  const std::filesystem::path& path() const { return temporary_; }
  /// By which it is open until `close`.
  int descriptor() const { return descriptor_.get(); }
  void write(std::string_view bytes);
  /// Closes it: network file systems report a full disk only then. `flush`: everything is on disk afterwards.
  void close(bool flush);
  /// Gives the file its name; the former file of that name is gone. A link of that name is replaced, not followed.
  /// Refuses what somebody has put in the place of the file meanwhile.
  void publish();

 private:
  std::filesystem::path file_, temporary_;
  Descriptor descriptor_;
  std::uint64_t device_ = 0, inode_ = 0;
};

/// fsync of a directory or file. Throws RunError.
void flush_to_disk(const std::filesystem::path& path);

/// Writes `bytes` and gives them the name. Throws RunError; then the former file of that name is as it was and the
/// temporary one is gone. Not flushed to disk. Refuses a name that is a link, a device or anything but a file.
void write_whole(const std::filesystem::path& file, std::string_view bytes);

/// Appends to the file, which is made if there is none. Throws RunError, also for links and devices; then the file
/// has its former length.
void append_whole(const std::filesystem::path& file, std::string_view bytes);

/// The bytes of a file that is no link and no device; nothing when there is none. Throws RunError.
std::string read_whole(const std::filesystem::path& file);

}  // namespace isohalo
