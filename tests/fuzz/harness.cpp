#include "tests/fuzz/harness.hpp"

#include <mpi.h>
#include <unistd.h>

#include <fstream>

namespace isohalo::fuzz {

namespace fs = std::filesystem;

namespace {

/// A directory that goes with the process, in memory where there is such a place.
class Scratch {
 public:
  Scratch() {
    const fs::path memory = "/dev/shm";
    directory_ = (fs::is_directory(memory) ? memory : fs::temp_directory_path()) /
                 ("isohalo_fuzz_" + std::to_string(getpid()));
    if (!fs::create_directory(directory_)) std::abort();
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  const fs::path& directory() const { return directory_; }

 private:
  fs::path directory_;
};

const Scratch& scratch() {
  static const Scratch one;
  return one;
}

}  // namespace

fs::path scratch_file(std::string_view name, std::string_view bytes) {
  const fs::path file = scratch().directory() / name;
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out) std::abort();
  return file;
}

void initialize() {
  static const bool once = [] {
    MPI_Init(nullptr, nullptr);
    scratch();
    return true;
  }();
  (void)once;
}

void finalize() {
  MPI_Finalize();
}

}  // namespace isohalo::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  isohalo::fuzz::initialize();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  isohalo::fuzz::fuzz_one(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
