#pragma once
/// The file that becomes a checkpoint. Private to framework/io.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "framework/io/hdf5.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/mpi/whole_file.hpp"

namespace isohalo::detail {

/// Gives a complete file its name, which is on disk on return. Throws RunError. On one rank.
void publish_on_disk(NewFile& made, const std::filesystem::path& file);

/// Throws RunError when the disk has no room for `bytes` more beside `file`, or when this process may not write
/// files of that size. Local.
void check_room(const std::filesystem::path& file, std::int64_t bytes);

/// `agreed` for collective calls of HDF5 that write. A rank with an error leaves them while others may wait for it
/// for ever (measured, HDF5 1.10.8). It waits for them some seconds and then throws its error, not agreed, as an
/// MpiError.
void agreed_write(const Communicator& comm, const std::function<void()>& work);

/// An HDF5 file in the memory of the calling rank, laid out as a TemporaryFile would be; and its bytes, to be asked
/// for when everything is written and all other handles are closed. Throw RunError.
H5Handle make_memory_file();
std::string bytes_of_memory_file(const H5Handle& file);

/// A parallel HDF5 file under a name that nobody knows before. All functions but `get` are collective and throw
/// errors that are agreed. Unless it is published the file is removed with its owner.
///
/// So that no rank meets a full disk alone, room for the whole file is reserved before anything is written; and a
/// file that is given up is closed into memory, because closing writes as well.
class TemporaryFile {
 public:
  /// Beside `file`, whose name it gets in the end. `most`: bytes that it will not exceed.
  TemporaryFile(const std::filesystem::path& file, const Communicator& comm, std::int64_t most);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  hid_t get() const { return file_.get(); }
  /// To be called when everything is written and all other handles are closed.
  void close();
  /// Flushes the closed file to disk and gives it its name.
  void publish();

 private:
  void make();
  bool leads_to_new_file(const std::string& name) const;
  void reserve(std::int64_t most) const;
  void give_up() noexcept;

  std::filesystem::path final_;
  std::filesystem::path path_;  ///< by which the ranks open it
  bool by_descriptor_ = false;  ///< that path is rank 0's descriptor, in whose place nobody can put anything
  std::uint64_t device_ = 0, inode_ = 0;  ///< of the open file
  std::optional<NewFile> made_;           ///< on rank 0, which makes the file that all open
  const Communicator& comm_;
  H5Handle file_;
  bool published_ = false;
};

}  // namespace isohalo::detail
