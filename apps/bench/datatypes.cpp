/// `isohalo bench datatypes`: the types of halo regions against the list of blocks that MPI offers for any shape:
/// how large the description is, how long it takes to make, to pack with MPI_Pack, to send; and our own packing.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/bench/benchmarks.hpp"
#include "apps/bench/timing.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/halo/strided_copy.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/run/machine.hpp"

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
    bytes += description_bytes(part);
    MPI_Count n[4];
    int kind = 0;
    mpi_check(MPI_Type_get_envelope_c(part, &n[0], &n[1], &n[2], &n[3], &kind), "MPI_Type_get_envelope_c");
    if (kind != MPI_COMBINER_NAMED) MPI_Type_free(&part);
  }
  return bytes;
}

/// A block with ghosts on all sides, and a region of it.
struct Shape {
  std::string name;
  Region<3> region;
};

struct Side {
  std::int64_t bytes = 0;  ///< of the description
  double build_us = 0, pack_us = 0, send_us = 0;
};

struct DatatypeFigures {
  std::string name;
  std::int64_t cells = 0;
  Side region, indexed;
  double our_pack_us = 0;
  bool right = true;
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
  using Clock = std::chrono::steady_clock;
  const auto seconds = [&](int count) {
    const auto start = Clock::now();
    for (int k = 0; k < count; ++k) f();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const int count = static_cast<int>(std::clamp(0.002 / (seconds(1) + 1e-9), 1.0, 1e5));
  std::vector<double> times;
  for (int r = 0; r < 7; ++r) times.push_back(seconds(count) / count * 1e6);
  return median(times);
}

/// Microseconds per exchange in a ring of all ranks, of the slowest one.
double ring_us(const Communicator& comm, std::byte* from, std::byte* to, MPI_Datatype type) {
  const int up = (comm.rank() + 1) % comm.size(), down = (comm.rank() + comm.size() - 1) % comm.size();
  constexpr int count = 5;
  std::vector<double> times;
  for (int r = 0; r < 7; ++r)
    times.push_back(
        timed(comm,
              [&] {
                for (int k = 0; k < count; ++k) {
                  MPI_Request q[2];
                  mpi_check(MPI_Irecv(to, 1, type, down, 0, comm.get(), &q[0]), "MPI_Irecv", comm.get());
                  mpi_check(MPI_Isend(from, 1, type, up, 0, comm.get(), &q[1]), "MPI_Isend", comm.get());
                  comm.wait(q, "bench datatypes");
                }
              }) /
        count * 1e6);
  return median(times);
}

DatatypeFigures measure(const Communicator& comm, const Shape& shape, const ArrayRef<double, 3>& from,
                        const ArrayRef<double, 3>& to) {
  const ErasedArray<3> a = erase(from);
  DatatypeFigures f{shape.name, shape.region.cells(), {}, {}, 0, true};
  std::vector<ShiftedBox<3>> boxes;
  shape.region.for_each_box([&](const Box<3>& b) { boxes.push_back({b}); });
  const BoxPacker<3> packer(boxes);
  std::vector<double> ours(static_cast<std::size_t>(f.cells)), theirs(ours.size());
  f.our_pack_us = typical_us([&] { packer.pack(a, reinterpret_cast<std::byte*>(ours.data())); });
  std::vector<double> sorted = ours;
  std::sort(sorted.begin(), sorted.end());
  const auto side = [&](auto&& make) {
    Side s;
    const Datatype type = make();
    s.bytes = description_bytes(type.get());
    s.build_us = typical_us([&] { make(); });
    const int bytes = static_cast<int>(f.cells * 8);
    s.pack_us = typical_us([&] {
      int at = 0;
      mpi_check(MPI_Pack(from.data, 1, type.get(), theirs.data(), bytes, &at, comm.get()), "MPI_Pack", comm.get());
    });
    std::sort(theirs.begin(), theirs.end());  // all values differ, and the types have orders of their own
    f.right = f.right && theirs == sorted;
    s.send_us = ring_us(comm, a.data, reinterpret_cast<std::byte*>(to.data), type.get());
    for (const auto& b : boxes)  // all ranks hold the same values
      for_each_cell(b.box, [&](const Index<3>& i) { f.right = f.right && to.at(i) == from.at(i); });
    return s;
  };
  f.region = side([&] { return region_type<3>(shape.region, from.owned.low, from.stride, MPI_DOUBLE); });
  f.indexed = side([&] { return indexed_type(a, shape.region); });
  f.right = comm.min(f.right) == 1;
  return f;
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

void print(const DatatypeFigures& f) {
  fmt::print("{:<28} {:>7} {:>8} {:>9} {:>8.2f} {:>8.2f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f}{}\n", f.name,
             f.cells, f.region.bytes, f.indexed.bytes, f.region.build_us, f.indexed.build_us, f.our_pack_us,
             f.region.pack_us, f.indexed.pack_us, f.region.send_us, f.indexed.send_us, f.right ? "" : " WRONG");
}

nlohmann::ordered_json json_of(const DatatypeFigures& f) {
  const auto side = [](const Side& s) {
    return nlohmann::ordered_json{
        {"bytes", s.bytes}, {"build_us", s.build_us}, {"mpi_pack_us", s.pack_us}, {"exchange_us", s.send_us}};
  };
  return {{"region", f.name},
          {"cells", f.cells},
          {"type", side(f.region)},
          {"indexed", side(f.indexed)},
          {"our_pack_us", f.our_pack_us},
          {"right", f.right}};
}

}  // namespace

ExitCode bench_datatypes(MPI_Comm user, bool json) {
  const Communicator comm = Communicator::of(user);
  constexpr std::int64_t n = 128;
  const Box<3> block{{0, 0, 0}, {n, n, n}};
  std::vector<double> one(static_cast<std::size_t>(adopted_size(block, 1))), two(one.size());
  const auto from = adopt(one.data(), block, 1), to = adopt(two.data(), block, 1);
  for_each_cell(block, [&](const Index<3>& i) { from.at(i) = static_cast<double>(linear_index(block, i)) + 1; });
  bool right = true;
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  if (comm.rank() == 0 && !json)
    fmt::print(
        "{}\nblock of {}^3 float64, {} ranks; bytes of the description, then microseconds; type, then indexed\n"
        "{:<28} {:>7} {:>18} {:>17} {:>8} {:>17} {:>17}\n",
        machine_text(), n, comm.size(), "region", "cells", "description", "build", "our pack", "MPI_Pack",
        "exchange");
  for (const std::int64_t k : {2, 4, 16})
    for (const auto& shape : shapes(n, k)) {
      const DatatypeFigures f = measure(comm, shape, from, to);
      right = right && f.right;
      if (comm.rank() == 0 && !json) print(f);
      all.push_back(json_of(f));
    }
  if (comm.rank() == 0 && json)
    fmt::print(
        "{}\n",
        nlohmann::ordered_json(
            {{"benchmark", "datatypes"}, {"machine", machine_text()}, {"ranks", comm.size()}, {"regions", all}})
            .dump(2));
  return right ? ExitCode::fine : ExitCode::different;
}

}  // namespace isohalo
