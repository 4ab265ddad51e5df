/// Every bit of a checkpoint flipped in turn: the file is refused by name, or everything that is loaded has the
/// bits of the good file.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

#include "datatypes/error.hpp"
#include "framework/halo/field.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/digest_log.hpp"
#include "framework/io/hdf5.hpp"
#include "framework/io/xdmf.hpp"
#include "tests/mpi_main.hpp"

namespace isohalo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBitsEach = 256;  // flipped by one process: HDF5 may leave damaged files open

CheckpointMeta some_meta() {
  CheckpointMeta m;
  m.shape = {5, 3};
  m.origin = {-1.0, 0.5};
  m.spacing = {0.2, 0.25};
  m.periodic = {0, 1};
  m.boundary_low = "[\"neumann\", \"periodic\"]";
  m.boundary_high = "[{fixed = 2}, \"periodic\"]";
  m.step = 12;
  m.dt = 0.01;
  m.time = 12 * 0.01;
  m.random_seed = 3;
  m.tree_version = 1;
  m.tile = {8, 128};
  m.change_sum = 0.75;
  m.residual = 0.1;
  m.residual_step = 12;
  m.config = "domain.shape = [5, 3]\nsolver.kind = \"heat\"\n";
  return m;
}

/// Everything that a restart takes from the file, bit by bit.
std::string loaded(const fs::path& file, const CartesianDomain<2>& domain) {
  const StoredCheckpoint c = read_checkpoint_meta(file);
  const auto u = Field<double, 2>("u", domain.owned(), {}, {});
  read_checkpoint_fields<2>(file, c, domain, {{"u", "1", "state", u.ref()}});
  std::ostringstream all;
  const auto whole = [&](std::int64_t v) { all << v << ' '; };
  const auto real = [&](double v) { all << std::bit_cast<std::uint64_t>(v) << ' '; };
  const auto text = [&](const std::string& v) { all << v.size() << ':' << v << ' '; };
  const CheckpointMeta& m = c.meta;
  for (const auto* list : {&m.shape, &m.periodic, &m.tile})
    for (std::int64_t v : *list) whole(v);
  for (const auto* list : {&m.origin, &m.spacing})
    for (double v : *list) real(v);
  for (const auto* t : {&m.boundary_low, &m.boundary_high, &m.method, &m.config}) text(*t);
  for (std::int64_t v :
       {c.major, c.minor, m.step, m.random_seed, m.random_counter, m.tree_version, m.residual_step})
    whole(v);
  for (double v : {m.time, m.dt, m.change_sum, m.residual}) real(v);
  for (const auto& f : c.fields) {
    for (const auto* t : {&f.name, &f.units, &f.role, &f.type}) text(*t);
    for (std::int64_t v : f.shape) whole(v);
    whole(static_cast<std::int64_t>(f.digest));
    whole(f.nan_count);
    real(f.min);
    real(f.max);
  }
  for_each_cell(domain.owned(), [&](const Index<2>& i) { real(u.ref().at(i)); });
  return all.str();
}

void put(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

enum Outcome : char { refused = 'r', harmless = 'h', other_bits = 'o', unnamed = 'u' };

Outcome outcome(const fs::path& file, const CartesianDomain<2>& domain, const std::string& expected) {
  try {
    return loaded(file, domain) == expected ? harmless : other_bits;
  } catch (const Error& e) {
    const std::string text = e.what();
    return e.code() == ExitCode::usage && text.rfind(file.string(), 0) == 0 ? refused : unnamed;
  }
}

/// One letter per bit from `first` on, found in a process of its own; fewer when that died or hung.
std::string outcomes(const fs::path& directory, const CartesianDomain<2>& domain, const std::string& bytes,
                     const std::string& expected, std::size_t first) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    h5_be_quiet();
    for (std::size_t bit = first; bit < std::min(first + kBitsEach, 8 * bytes.size()); ++bit) {
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      const fs::path file = directory / ("bit_" + std::to_string(bit) + ".h5");
      put(file, damaged);
      const char letter = outcome(file, domain, expected);
      fs::remove(file);
      if (write(ends[1], &letter, 1) != 1) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string letters;
  for (char letter = 0; read(ends[0], &letter, 1) == 1;) letters += letter;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return letters;
}

TEST(CheckpointDamage, EveryBitIsFoundOrMeansNothing) {
  const fs::path directory = fs::temp_directory_path() / ("isohalo_damage_" + std::to_string(getpid()));
  fs::create_directories(directory);
  const CartesianDomain<2> domain(MPI_COMM_WORLD, {5, 3}, {});
  const auto u = Field<double, 2>("u", domain.owned(), {}, {});
  double next = 0.125;
  for_each_cell(domain.owned(), [&](const Index<2>& i) { u.ref().at(i) = next *= -1.5; });
  const fs::path good = directory / "good.h5";
  write_checkpoint<2>(good, domain, some_meta(), {{"u", "1", "state", u.ref()}});
  std::ostringstream all;
  all << std::ifstream(good, std::ios::binary).rdbuf();
  const std::string bytes = all.str(), expected = loaded(good, domain);

  std::string found;
  while (found.size() < 8 * bytes.size()) {
    const std::size_t before = found.size();
    found += outcomes(directory, domain, bytes, expected, before);
    const std::size_t here = std::min(before + kBitsEach, 8 * bytes.size());
    ASSERT_EQ(found.size(), here) << "bit " << found.size() % 8 << " of byte " << found.size() / 8
                                  << " flipped: the reader crashed or hung";
  }
  std::size_t unused = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const std::string letters = found.substr(8 * at, 8);
    EXPECT_TRUE(letters == std::string(8, refused) || letters == std::string(8, harmless))
        << "byte " << at << ", a letter per bit: " << letters;
    unused += letters[0] == harmless;
  }
  std::printf("%zu bytes, %zu of them mean nothing\n", bytes.size(), unused);
  EXPECT_LT(unused, bytes.size() / 2);
  fs::remove_all(directory);
}

TEST(DigestLog, OneThatCannotBeReadHasNotEnded) {
  try {
    read_digest_log("/proc/self/mem");  // opens; its first byte cannot be read
    FAIL() << "nothing thrown";
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("/proc/self/mem cannot be read to its end"), std::string::npos) << e.what();
  }
}

TEST(Xdmf, NamesAreXmlText) {
  CheckpointMeta m = some_meta();
  StoredField f;
  f.name = "a\"<b>&\n";
  f.type = "float64";
  f.shape = m.shape;
  const std::string text = xdmf_text("step&1.h5", m, {f});
  EXPECT_NE(text.find("Attribute Name=\"a&quot;&lt;b&gt;&amp;?\""), text.npos) << text;
  EXPECT_NE(text.find(">step&amp;1.h5:/fields/a&quot;&lt;b&gt;&amp;?<"), text.npos) << text;
}

}  // namespace
}  // namespace isohalo
