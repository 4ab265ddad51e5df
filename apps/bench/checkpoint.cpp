/// `isohalo bench checkpoint`: our checkpoints, digests included, against MPI-IO's collective calls with the same
/// bytes from contiguous memory. Both flush to disk before they end.

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/files.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/report.hpp"
#include "datatypes/mpi_check.hpp"

namespace isohalo {

namespace {

/// The opponent: this rank's rows, back to back, at their place in the file.
struct PlainFile {
  std::string name;
  std::vector<double> rows;
  MPI_Offset at = 0;

  int count() const { return static_cast<int>(rows.size()); }
  void write(MPI_Comm comm) const {
    MPI_File f = MPI_FILE_NULL;
    mpi_check(MPI_File_open(comm, name.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f),
              "MPI_File_open");
    mpi_check(MPI_File_write_at_all(f, at, rows.data(), count(), MPI_DOUBLE, MPI_STATUS_IGNORE),
              "MPI_File_write_at_all");
    mpi_check(MPI_File_sync(f), "MPI_File_sync");
    mpi_check(MPI_File_close(&f), "MPI_File_close");
  }
  void read(MPI_Comm comm) {
    MPI_File f = MPI_FILE_NULL;
    mpi_check(MPI_File_open(comm, name.c_str(), MPI_MODE_RDONLY, MPI_INFO_NULL, &f), "MPI_File_open");
    mpi_check(MPI_File_read_at_all(f, at, rows.data(), count(), MPI_DOUBLE, MPI_STATUS_IGNORE),
              "MPI_File_read_at_all");
    mpi_check(MPI_File_close(&f), "MPI_File_close");
  }
};

/// Seconds of both; every other round begins with the second, since the first of two writes leaves the disk busy.
template <class A, class B>
std::vector<double> in_turn(const Communicator& comm, int round, const A& a, const B& b) {
  if (round % 2 == 0) {
    const double first = timed(comm, a);
    return {first, timed(comm, b)};
  }
  const double second = timed(comm, b);
  return {timed(comm, a), second};
}

}  // namespace

ExitCode bench_checkpoint(MPI_Comm user, const BenchFileOptions& options) {
  const Communicator comm = Communicator::of(user);
  DomainOptions<2> slabs;
  slabs.process_grid = PerDim<int, 2>{comm.size(), 1};
  const CartesianDomain<2> domain(user, {options.mib * 32, 4096}, slabs);
  const BenchDirectory directory(comm, options.directory);
  const Field<double, 2> u = random_field(domain);
  Field<double, 2> back("back", domain.owned(), {1, 1}, {1, 1});
  PlainFile plain{directory.file("plain").string(), {}, linear_index(domain.global(), domain.owned().low) * 8};
  for_each_cell(domain.owned(), [&](const Index<2>& i) { plain.rows.push_back(u.at(i)); });
  const auto file = directory.file("checkpoint.h5");
  const std::vector<FieldHandle<2>> out{{"u", "1", "state", u.ref()}}, in{{"u", "1", "state", back.ref()}};
  const auto remove = [&] {  // both write new files
    comm.barrier();
    std::error_code ignored;
    if (comm.rank() == 0) std::filesystem::remove(file, ignored), std::filesystem::remove(plain.name, ignored);
    comm.barrier();
  };
  Turns write, read;
  for (int k = 0; k <= options.repeats; ++k) {  // the first round warms up
    remove();
    const auto written = in_turn(
        comm, k, [&] { write_checkpoint<2>(file, domain, bench_meta(domain), out); },
        [&] { plain.write(comm.get()); });
    const auto was_read = in_turn(
        comm, k, [&] { read_checkpoint_fields<2>(file, read_checkpoint_meta(file, comm), domain, in); },
        [&] { plain.read(comm.get()); });
    if (k > 0) write.add(written), read.add(was_read);
  }
  std::int64_t wrong = 0, at = 0;
  for_each_cell(domain.owned(), [&](const Index<2>& i) {
    wrong += back.at(i) != u.at(i) || plain.rows[static_cast<std::size_t>(at++)] != u.at(i);
  });
  const bool right = comm.max(wrong) == 0;
  const double gigabytes = static_cast<double>(options.mib) * (1 << 20) / 1e9;
  Json j = report_of("checkpoint");
  j.update({{"ranks", comm.size()}, {"mib", options.mib}, {"repeats", options.repeats}});
  for (const auto& [name, turns] : {std::pair{"write", &write}, std::pair{"read", &read}})
    j[name] = {{"isohalo_gb_per_s", gigabytes / turns->middle(0)},
               {"mpi_io_gb_per_s", gigabytes / turns->middle(1)},
               {"ratio", turns->ratio(1, 0)}};
  j["right"] = right;
  return print_report(user, options.json, j, right);
}

}  // namespace isohalo
