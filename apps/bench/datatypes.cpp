/// `isohalo bench datatypes`: the types of halo regions against the list of blocks that MPI offers for any shape:
/// how large the description is, how long it takes to make and to pack with MPI_Pack; and our own packing.

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/report.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/halo/strided_copy.hpp"
#include "framework/mpi/communicator.hpp"

namespace isohalo {

namespace {

/// Bytes of the arguments that describe a type, those that it is made of included.
std::int64_t description_bytes(MPI_Datatype type) {
  MPI_Count integers = 0, addresses = 0, large = 0, types = 0;
  int combiner = 0;
  mpi_check(MPI_Type_get_envelope_c(type, &integers, &addresses, &large, &types, &combiner),
            "MPI_Type_get_envelope_c");
  if (combiner == MPI_COMBINER_NAMED) return 0;
  std::vector<int> i(static_cast<std::size_t>(integers));
  std::vector<MPI_Aint> a(static_cast<std::size_t>(addresses));
  std::vector<MPI_Count> c(static_cast<std::size_t>(large));
  std::vector<MPI_Datatype> t(static_cast<std::size_t>(types));
  mpi_check(
      MPI_Type_get_contents_c(type, integers, addresses, large, types, i.data(), a.data(), c.data(), t.data()),
      "MPI_Type_get_contents_c");
  std::int64_t bytes = integers * 4 + (addresses + large) * 8 + types * 8;
  for (MPI_Datatype part : t) {
    const std::int64_t of_part = description_bytes(part);
    bytes += of_part;
    if (of_part > 0) MPI_Type_free(&part);  // named types, which have none, may not be freed
  }
  return bytes;
}

/// A block with ghosts on all sides, and a region of it.
struct Shape {
  std::string name;
  Region<3> region;
};

/// One block per row of the region: what MPI_Type_indexed asks for.
Datatype indexed_type(const ErasedArray<3>& a, const Region<3>& region) {
  std::vector<int> lengths;
  std::vector<MPI_Aint> places;
  region.for_each_box([&](const Box<3>& b) {
    for_each_row(b, [&](const Index<3>& row) {
      lengths.push_back(static_cast<int>(b.extent(2)));
      places.push_back(a.cell(row) - a.data);
    });
  });
  MPI_Datatype t = MPI_DATATYPE_NULL;
  mpi_check(
      MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), MPI_DOUBLE, &t),
      "MPI_Type_create_hindexed");
  return Datatype::adopt(t);
}

/// Microseconds per call, the median of 7 rounds of about 2 ms.
template <class F>
double typical_us(F&& f) {
  const int count = calls_in(0.002, looped_calls(1, f), 1e5);
  return 1e6 * median_of(7, [&] { return looped_calls(count, f); });
}

Json measure(const Communicator& comm, const Shape& shape, const ArrayRef<double, 3>& from) {
  const ErasedArray<3> a = erase(from);
  const std::int64_t cells = shape.region.cells();
  bool right = true;
  std::vector<ShiftedBox<3>> boxes;
  shape.region.for_each_box([&](const Box<3>& b) { boxes.push_back({b}); });
  const BoxPacker<3> packer(boxes);
  std::vector<double> ours(static_cast<std::size_t>(cells)), theirs(ours.size());
  const double our_pack_us = typical_us([&] { packer.pack(a, reinterpret_cast<std::byte*>(ours.data())); });
  std::vector<double> sorted = ours;
  std::sort(sorted.begin(), sorted.end());
  const auto side = [&](auto&& make) {
    const Datatype type = make();
    const double build_us = typical_us([&] { make(); });
    const double pack_us = typical_us([&] {
      int at = 0;
      mpi_check(MPI_Pack(from.data, 1, type.get(), theirs.data(), static_cast<int>(cells * 8), &at, comm.get()),
                "MPI_Pack", comm.get());
    });
    std::sort(theirs.begin(), theirs.end());  // all values differ, and the types have orders of their own
    right = right && theirs == sorted;
    return Json{{"bytes", description_bytes(type.get())}, {"build_us", build_us}, {"mpi_pack_us", pack_us}};
  };
  Json row{{"region", shape.name}, {"cells", cells}};
  row["type"] = side([&] { return region_type<3>(shape.region, from.owned.low, from.stride, MPI_DOUBLE); });
  row["indexed"] = side([&] { return indexed_type(a, shape.region); });
  row["our_pack_us"] = our_pack_us;
  row["right"] = comm.min(right) == 1;
  return row;
}

std::vector<Shape> shapes(std::int64_t n, std::int64_t k) {
  const Box<3> face_x{{0, 0, n - k}, {n, n, n}}, face_y{{0, n - k, 0}, {n, n, n}}, face_z{{n - k, 0, 0}, {n, n, n}};
  const auto cut = [&](const Box<3>& box, const PerDim<std::int8_t, 3>& side) {
    Region<3> r = Region<3>::whole(box);
    r.side = side;
    r.budget = k;
    for (int j = 0; j < 3; ++j) r.edge[j] = side[j] > 0 ? box.low[j] : box.high[j];
    return r;
  };
  const std::string depth = ", depth " + std::to_string(k);
  return {{"box, columns" + depth, Region<3>::whole(face_x)},
          {"box, rows" + depth, Region<3>::whole(face_y)},
          {"box, planes" + depth, Region<3>::whole(face_z)},
          {"triangle" + depth, cut({{0, 0, 0}, {1, k, k}}, {0, 1, 1})},
          {"prism along rows" + depth, cut({{0, 0, 0}, {k, k, n}}, {1, 1, 0})},
          {"prism across rows" + depth, cut({{0, 0, 0}, {n, k, k}}, {0, 1, 1})},
          {"tetrahedron" + depth, cut({{0, 0, 0}, {k, k, k}}, {1, 1, 1})}};
}

}  // namespace

ExitCode bench_datatypes(MPI_Comm user, const BenchOptions& options) {
  const Communicator comm = Communicator::of(user);
  constexpr std::int64_t n = 128;
  const Box<3> block{{0, 0, 0}, {n, n, n}};
  std::vector<double> values(static_cast<std::size_t>(adopted_size(block, 1)));
  const auto from = adopt(values.data(), block, 1);
  for_each_cell(block, [&](const Index<3>& i) { from.at(i) = static_cast<double>(linear_index(block, i)) + 1; });
  Json report = report_of("datatypes");
  report.update({{"ranks", comm.size()}, {"cells_per_dimension", n}});
  for (const std::int64_t k : {2, 4, 16})
    for (const auto& shape : shapes(n, k)) report["regions"].push_back(measure(comm, shape, from));
  return print_report(user, options.json, report, all_true(report["regions"], "right"));
}

}  // namespace isohalo
