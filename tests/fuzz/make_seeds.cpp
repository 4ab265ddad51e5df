/// Small checkpoints of every kind, as seeds for the harness of files: usage: make_seeds DIRECTORY

#include <mpi.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "datatypes/error.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/hdf5.hpp"

namespace {

using namespace isohalo;
namespace fs = std::filesystem;

template <int D>
CheckpointMeta meta_of(const Index<D>& shape) {
  CheckpointMeta m;
  std::string list;
  for (const std::int64_t n : shape) {
    m.shape.push_back(n);
    m.origin.push_back(0);
    m.spacing.push_back(1.0 / static_cast<double>(n));
    m.periodic.push_back(1);
    m.tile.push_back(16);
    list += (list.empty() ? "[" : ", ") + std::to_string(n);
  }
  m.boundary_low = m.boundary_high = "[\"periodic\"]";
  m.step = m.residual_step = 3;
  m.dt = 0.25;
  m.time = 0.75;
  m.tree_version = 1;
  m.config = "domain.shape = " + list + "]\n";
  return m;
}

template <class T, int D>
void write(const fs::path& file, const Index<D>& shape, const std::vector<std::string>& names) {
  const CartesianDomain<D> domain(MPI_COMM_WORLD, shape);
  std::vector<std::vector<T>> fields;
  std::vector<FieldHandle<D>> handles;
  for (const auto& name : names) {
    auto& memory = fields.emplace_back(static_cast<std::size_t>(domain.owned().cells()));
    const ArrayRef<T, D> f = adopt(memory.data(), domain.owned(), 0);
    for_each_cell(domain.owned(), [&](const Index<D>& i) {
      f.at(i) = static_cast<T>(linear_index(domain.global(), i) + static_cast<std::int64_t>(name.size()));
    });
    handles.push_back({name, "1", "state", f});
  }
  write_checkpoint<D>(file, domain, meta_of<D>(shape), handles);
}

/// Puts chunked data in the place of field u.
void make_chunked(const fs::path& file) {
  const H5Handle h = h5_own(H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open");
  std::vector<double> data(35);
  {
    const H5Handle set = h5_own(H5Dopen2(h.get(), "fields/u", H5P_DEFAULT), "open");
    h5_check(H5Dread(set.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data()), "read");
    const hsize_t extents[2] = {5, 7}, chunk[2] = {2, 3};
    const H5Handle space = h5_own(H5Screate_simple(2, extents, nullptr), "space");
    const H5Handle creation = h5_own(H5Pcreate(H5P_DATASET_CREATE), "properties");
    h5_check(H5Pset_chunk(creation.get(), 2, chunk), "chunk");
    const H5Handle other = h5_own(
        H5Dcreate2(h.get(), "fields/v", H5T_IEEE_F64LE, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
        "set");
    h5_check(H5Dwrite(other.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data()), "write");
    for (const char* name : {"units", "role", "digest"})
      write_attribute(other.get(), name, read_attribute<std::string>(set.get(), name));
    for (const char* name : {"min", "max"}) write_attribute(other.get(), name, read_attribute<double>(set.get(), name));
    write_attribute(other.get(), "nan_count", read_attribute<std::int64_t>(set.get(), "nan_count"));
  }
  h5_check(H5Ldelete(h.get(), "fields/u", H5P_DEFAULT), "delete");
  h5_check(H5Lmove(h.get(), "fields/v", h.get(), "fields/u", H5P_DEFAULT, H5P_DEFAULT), "move");
}

/// A copy with one byte changed in each block of the list of names that begins with `signature`: HDF5 1.10.8 then
/// frees addresses that it never set, when names are read in their order (found by the harness).
void damage_list(const fs::path& file, const fs::path& copy, const std::string& signature) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::size_t found = 0;
  for (auto at = bytes.find(signature); at != std::string::npos; at = bytes.find(signature, at + 1), ++found)
    bytes.at(at + 20) ^= 1;
  if (found == 0) throw RunError(file.string() + ": no block " + signature);
  std::ofstream(copy, std::ios::binary) << bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  MPI_Init(&argc, &argv);
  const fs::path directory = argv[1];
  fs::create_directories(directory);
  write<double, 1>(directory / "line.h5", {9}, {"u"});
  write<double, 2>(directory / "plane.h5", {5, 7}, {"u", "r", "p"});
  write<float, 3>(directory / "brick.h5", {2, 3, 4}, {"u"});
  write<std::uint8_t, 2>(directory / "life.h5", {6, 5}, {"u"});
  write<double, 4>(directory / "four.h5", {2, 1, 3, 2}, {"u"});
  write<double, 2>(directory / "many.h5", {2, 2}, {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"});
  for (const char* block : {"FRHP", "FHDB", "BTLF"})  // head and body of the heap of names, leaf of its index
    damage_list(directory / "many.h5", directory / (std::string("damaged_") + block + ".h5"), block);
  write<double, 2>(directory / "chunked.h5", {5, 7}, {"u"});
  make_chunked(directory / "chunked.h5");
  MPI_Finalize();
  return 0;
}
