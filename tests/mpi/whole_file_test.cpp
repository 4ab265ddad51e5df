/// Files in the making: names from the system's random numbers, and never what somebody has put under such a name.

#include "framework/mpi/whole_file.hpp"

#include <gtest/gtest.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>

#include "tests/mpi_main.hpp"

namespace {
bool foreseen = false;  ///< the system's random numbers are what an attacker would need them to be
std::uint64_t next_number = 0;
int calls = 0;
}  // namespace

extern "C" ssize_t getrandom(void* to, std::size_t bytes, unsigned) {
  ++calls;
  std::uint64_t number = foreseen ? 7 : ++next_number;
  std::memcpy(to, &number, std::min(bytes, sizeof number));
  return static_cast<ssize_t>(bytes);
}

namespace isohalo {
namespace {

namespace fs = std::filesystem;

class Directory {
 public:
  Directory() {
    char name[] = "/tmp/isohalo_files_XXXXXX";
    path = mkdtemp(name);
  }
  ~Directory() { fs::remove_all(path); }
  fs::path path;
};

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(NewFile, NamesAreTheSystemsRandomNumbers) {
  std::set<std::string> names;
  const int before = calls;
  for (int k = 0; k < 100; ++k) names.insert(temporary_name("a.h5").string());
  EXPECT_EQ(names.size(), 100u);
  EXPECT_EQ(calls - before, 100);
  EXPECT_EQ(names.begin()->size(), std::string("a.h5.0123456789abcdef.tmp").size());
}

TEST(NewFile, TakesNothingThatIsThere) {
  const Directory dir;
  const fs::path victim = dir.path / "victim", file = dir.path / "a.json";
  std::ofstream(victim) << "mine";
  foreseen = true;
  const fs::path name = temporary_name(file);
  fs::create_symlink(victim, name);
  EXPECT_THROW(NewFile{file}, RunError);  // a link to a file
  EXPECT_THROW(write_whole(file, "theirs"), RunError);
  fs::remove(name);
  fs::create_symlink(dir.path / "nowhere", name);
  EXPECT_THROW(write_whole(file, "theirs"), RunError);  // a link to no file
  fs::remove(name);
  fs::create_hard_link(victim, name);
  EXPECT_THROW(write_whole(file, "theirs"), RunError);
  fs::remove(name);
  EXPECT_EQ(text_of(victim), "mine");
  EXPECT_FALSE(fs::exists(dir.path / "nowhere"));
  EXPECT_FALSE(fs::exists(file));
  write_whole(file, "theirs");
  foreseen = false;
  EXPECT_EQ(text_of(file), "theirs");
}

TEST(NewFile, IsNotExchangedBeforeItHasItsName) {
  const Directory dir;
  const fs::path victim = dir.path / "victim", file = dir.path / "a.json";
  std::ofstream(victim) << "mine";
  NewFile made(file);
  made.write("theirs");
  fs::remove(made.path());
  fs::create_symlink(victim, made.path());
  EXPECT_THROW(made.publish(), RunError);
  EXPECT_FALSE(fs::exists(fs::symlink_status(file)));
  EXPECT_EQ(text_of(victim), "mine");
}

TEST(AppendWhole, FollowsNoLink) {
  const Directory dir;
  const fs::path victim = dir.path / "victim", log = dir.path / "digests.txt";
  std::ofstream(victim) << "mine";
  fs::create_symlink(victim, log);
  test::expect_refusal("symbolic link", [&] {
    try {
      append_whole(log, "line\n");
    } catch (const RunError& e) {
      throw UsageError(e.what());
    }
  });
  EXPECT_EQ(text_of(victim), "mine");
}

}  // namespace
}  // namespace isohalo
