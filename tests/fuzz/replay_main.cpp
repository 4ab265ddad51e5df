/// Runs a harness without libFuzzer, under any compiler: on every file of the directories given, and on a number of
/// changed copies of each, the same in every run.
///
/// usage: replay CHANGES DIRECTORY..

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "datatypes/mix.hpp"
#include "tests/fuzz/harness.hpp"

extern "C" int LLVMFuzzerInitialize(int*, char***);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" __attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                                                     std::size_t most, unsigned seed);
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace fs = std::filesystem;

namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return isohalo::mix64(state_ += isohalo::kGolden); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }

 private:
  std::uint64_t state_;
};

Random& random_numbers() {
  static Random one(1);
  return one;
}

std::vector<std::uint8_t> bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Leaves the input behind when it ends the process.
void keep_input(const std::vector<std::uint8_t>& bytes) {
  if (const char* file = std::getenv("ISOHALO_FUZZ_LAST")) {
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

void run(const std::vector<std::uint8_t>& bytes) {
  keep_input(bytes);
  // A copy on the heap of exactly this size, so that a read beyond it can be noticed.
  const std::vector<std::uint8_t> exact(bytes);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

/// Changes, removes, repeats or inserts a few bytes: libFuzzer's own, when this is no libFuzzer program.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most) {
  Random& random = random_numbers();
  std::vector<std::uint8_t> bytes(data, data + size);
  for (std::size_t n = 1 + random.below(4); n > 0; --n) {
    const std::size_t at = random.below(bytes.size() + 1), length = 1 + random.below(8);
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto room = static_cast<std::size_t>(bytes.end() - from);
    static constexpr std::uint8_t kTelling[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', '"', '=', '[', '.', '\n', ','};
    switch (random.below(4)) {
      case 0:
        bytes.insert(from, length, kTelling[random.below(std::size(kTelling))]);
        break;
      case 1:
        bytes.erase(from, from + static_cast<std::ptrdiff_t>(std::min(length, room)));
        break;
      case 2:
        if (room > 0) *from ^= static_cast<std::uint8_t>(1u << random.below(8));
        break;
      default:
        if (room > 0) *from = kTelling[random.below(std::size(kTelling))];
    }
  }
  bytes.resize(std::min(bytes.size(), most));
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s CHANGES DIRECTORY..\n", argv[0]);
    return 2;
  }
  LLVMFuzzerInitialize(&argc, &argv);
  const long changes = std::strtol(argv[1], nullptr, 10);
  long inputs = 0, changed = 0;
  for (int k = 2; k < argc; ++k) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(argv[k])) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      const auto seed = bytes_of(file);
      run(seed);
      ++inputs;
      auto bytes = seed;
      for (long n = 0; n < changes; ++n, ++changed) {
        if (n % 8 == 0) bytes = seed;  // changes of changes, but not too far away
        const std::size_t most = seed.size() + 64;
        std::size_t size = bytes.size();
        bytes.resize(std::max(most, size));
        size = LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(bytes.data(), size, most,
                                                                 static_cast<unsigned>(random_numbers().next()))
                                       : LLVMFuzzerMutate(bytes.data(), size, most);
        bytes.resize(size);
        run(bytes);
      }
    }
  }
  isohalo::fuzz::finalize();
  if (inputs == 0) {
    std::fprintf(stderr, "there is no input\n");
    return 1;
  }
  std::printf("%ld inputs, %ld changed ones, no finding\n", inputs, changed);
  return 0;
}
