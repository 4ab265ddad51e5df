#include "framework/io/temporary_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "datatypes/error.hpp"
#include "framework/io/file_structure.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/mpi/fault_point.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo::detail {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kPatience{3}, kForEver{std::chrono::hours(24 * 365)};
constexpr double kMib = 1 << 20;

fs::path directory_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// Throws RunError when a file of this process may not have so many bytes.
void check_limit(const fs::path& file, std::int64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  if (static_cast<rlim_t>(bytes) > limit.rlim_cur)
    throw RunError(
        fmt::format("{} may need {:.6f} MiB, a file of this process may have {:.6f} MiB: raise the limit "
                    "(ulimit -f)",
                    file.string(), static_cast<double>(bytes) / kMib, static_cast<double>(limit.rlim_cur) / kMib));
}

/// Lets every descriptor of the file that this process holds lead to an empty file in memory.
void lead_to_memory(std::uint64_t device, std::uint64_t inode) noexcept {
  const Descriptor memory(memfd_create("isohalo", MFD_CLOEXEC));
  if (!memory) return;
  const auto most = sysconf(_SC_OPEN_MAX);
  for (int fd = 3; fd < most && fd < (1 << 20); ++fd) {
    struct stat found {};
    if (fd != memory.get() && fstat(fd, &found) == 0 && found.st_dev == device && found.st_ino == inode)
      dup3(memory.get(), fd, O_CLOEXEC);
  }
}

/// Whether all ranks come here within that time.
bool all_arrive(const Communicator& comm, std::chrono::seconds patience) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(comm.get(), &request) != MPI_SUCCESS) return false;
  const auto start = std::chrono::steady_clock::now();
  Backoff backoff(comm.spins());
  for (int done = 0;;) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done) return true;
    if (std::chrono::steady_clock::now() - start > patience) return false;
    backoff.pause();
  }
}

/// What decides the bytes of the file is the same for every driver. Data begin at multiples of kAlignment.
H5Handle access_list() {
  constexpr hsize_t kAlignment = 64, kFromBytes = 1;
  H5Handle list = h5_own(H5Pcreate(H5P_FILE_ACCESS), "file access");
  h5_check(H5Pset_libver_bounds(list.get(), H5F_LIBVER_V18, H5F_LIBVER_V110), "file version");
  h5_check(H5Pset_fclose_degree(list.get(), H5F_CLOSE_STRONG), "file close degree");
  h5_check(H5Pset_alignment(list.get(), kFromBytes, kAlignment), "file alignment");
  return list;
}

H5Handle creation_list() {
  H5Handle list = h5_own(H5Pcreate(H5P_FILE_CREATE), "file creation");
  h5_check(H5Pset_obj_track_times(list.get(), 0), "file times");
  return list;
}

}  // namespace

void publish_on_disk(NewFile& made, const fs::path& file) {
  fault_point("rename");
  made.publish();
  fault_point("directory_fsync");
  flush_to_disk(directory_of(file));
}

H5Handle make_memory_file() {
  constexpr std::size_t kGrowth = std::size_t{1} << 20;
  const H5Handle access = access_list(), creation = creation_list();
  h5_check(H5Pset_fapl_core(access.get(), kGrowth, 0), "file in memory");
  // The name is nobody's: nothing is opened.
  return h5_own(H5Fcreate("memory", H5F_ACC_TRUNC, creation.get(), access.get()), "file in memory");
}

std::string bytes_of_memory_file(const H5Handle& file) {
  h5_check(H5Fflush(file.get(), H5F_SCOPE_GLOBAL), "flush in memory");
  std::string all(static_cast<std::size_t>(h5_check(H5Fget_file_image(file.get(), nullptr, 0), "file in memory")),
                  '\0');
  h5_check(H5Fget_file_image(file.get(), all.data(), all.size()), "file in memory");
  // HDF5 1.10 takes the mark of an open file out of the first block, but leaves the checksum that was made with it.
  constexpr std::size_t kSummed = 44;
  const std::uint32_t sum = metadata_checksum({reinterpret_cast<const std::uint8_t*>(all.data()), kSummed});
  for (std::size_t k = 0; k < 4; ++k) all[kSummed + k] = static_cast<char>(sum >> 8 * k & 0xff);
  return all;
}

void check_room(const fs::path& file, std::int64_t bytes) {
  check_limit(file, bytes);
  std::error_code error;
  const auto space = fs::space(directory_of(file), error);
  if (!error && static_cast<std::uintmax_t>(bytes) > space.available)
    throw RunError(
        fmt::format("cannot write {}: it needs {:.6f} MiB, the disk has {:.6f} MiB free (earlier "
                    "checkpoints are kept)",
                    file.string(), static_cast<double>(bytes) / kMib, static_cast<double>(space.available) / kMib));
}

void agreed_write(const Communicator& comm, const std::function<void()>& work) {
  const std::unique_ptr<Error> mine = error_of(work);
  if (!all_arrive(comm, mine ? kPatience : kForEver))
    throw MpiError(MPI_ERR_IO, mine ? mine->what() : "waiting for the other ranks after a write failed");
  agree(comm, mine.get());
}

TemporaryFile::TemporaryFile(const fs::path& file, const Communicator& comm, std::int64_t most)
    : final_(file), comm_(comm) {
  make();
  H5Handle access, creation;
  agreed(comm, [&] {
    access = access_list();
    h5_check(H5Pset_fapl_mpio(access.get(), comm.get(), MPI_INFO_NULL), "parallel file access");
    creation = creation_list();
  });
  // MPI takes what stands before a ':' for the name of a kind of file system.
  const std::string opened = (path_.native().find(':') == std::string::npos ? "" : "ufs:") + path_.native();
  bool open = false;
  try {
    agreed(comm, [&] {
      file_ = h5_own(H5Fcreate(opened.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()),
                     "cannot create " + final_.string());
      struct stat status {};
      if (stat(path_.c_str(), &status) == 0) device_ = status.st_dev, inode_ = status.st_ino;
    });
    open = true;
    agreed(comm, [&] { reserve(most); });
  } catch (...) {
    if (!open) file_.release();  // closing is collective, and MPI opens a file on all ranks or on none
    give_up();
    throw;
  }
}

/// Does this name lead to rank 0's new file on every rank? In another process namespace (a container) a descriptor
/// of rank 0 is no file, or somebody else's. Collective.
bool TemporaryFile::leads_to_new_file(const std::string& name) const {
  struct stat made {
  }, found{};
  if (made_ && fstat(made_->descriptor(), &made) != 0) made.st_ino = 0;
  std::array<std::uint64_t, 2> file{made.st_dev, made.st_ino};
  comm_.broadcast(file.data(), sizeof file, 0);
  const bool here = stat(name.c_str(), &found) == 0 && found.st_dev == file[0] && found.st_ino == file[1];
  return comm_.min(here) != 0;
}

/// Rank 0 makes the file, so that nobody else's is opened; all ranks learn its name.
void TemporaryFile::make() {
  const auto close_and_name = [this] {
    made_->close(false);
    return made_->path().string();
  };
  std::string name;
  const bool one_node = comm_.ranks_on_node() == comm_.size();
  agreed(comm_, [&] {
    fault_point("create");
    if (comm_.rank() != 0) return;
    made_.emplace(final_);
    name = one_node ? fmt::format("/proc/{}/fd/{}", getpid(), made_->descriptor()) : close_and_name();
  });
  comm_.broadcast(name, 0);
  by_descriptor_ = one_node && leads_to_new_file(name);
  if (one_node && !by_descriptor_) {
    on_root(comm_, [&] { name = close_and_name(); });
    comm_.broadcast(name, 0);
  }
  path_ = name;
}

TemporaryFile::~TemporaryFile() {
  if (!published_) give_up();
}

void TemporaryFile::give_up() noexcept {
  if (file_) {
    rlimit before{};
    const bool limited = getrlimit(RLIMIT_FSIZE, &before) == 0;
    const rlimit highest{before.rlim_max, before.rlim_max};
    if (limited) setrlimit(RLIMIT_FSIZE, &highest);
    lead_to_memory(device_, inode_);
    // Nobody closes, nobody removes before all descriptors lead elsewhere. Ranks that do not come are stuck.
    if (all_arrive(comm_, kPatience))
      file_.close();
    else
      file_.release();
    if (limited) setrlimit(RLIMIT_FSIZE, &before);
  }
  made_.reset();
}

void TemporaryFile::reserve(std::int64_t most) const {
  fault_point("reserve");
  check_limit(final_, most);
  if (comm_.rank() != 0) return;
  const Descriptor file(open(path_.c_str(), O_WRONLY | O_CLOEXEC | (by_descriptor_ ? 0 : O_NOFOLLOW)));
  const int why = file && fallocate(file.get(), FALLOC_FL_KEEP_SIZE, 0, most) == 0 ? 0 : errno;
  // Some file systems cannot; a full one shows itself in the writes then.
  if (why != 0 && why != EOPNOTSUPP && why != ENOSYS)
    throw RunError(fmt::format("room for {:.6f} MiB: {}", static_cast<double>(most) / kMib, reason(why)));
}

void TemporaryFile::close() {
  agreed_write(comm_, [&] {
    h5_check(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "flush of " + final_.string());
    fault_point("close");
  });
  agreed_write(comm_, [&] {
    h5_check(H5Fclose(file_.release()), "close of " + final_.string());
    fault_point("closed");
  });
}

void TemporaryFile::publish() {
  on_root(comm_, [&] {
    fault_point("fsync");
    // What was reserved beyond the end is given back.
    if (truncate(path_.c_str(), static_cast<off_t>(fs::file_size(path_))) != 0) throw RunError(reason());
    flush_to_disk(made_->path());
    publish_on_disk(*made_, final_);
  });
  published_ = true;
}

}  // namespace isohalo::detail
