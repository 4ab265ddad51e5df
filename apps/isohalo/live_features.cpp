/// The features of MPI that the library stands on, tried one by one without the library: what fails here explains
/// what fails in the transports.

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "apps/isohalo/live_check.hpp"
#include "datatypes/datatype.hpp"
#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "datatypes/region.hpp"
#include "framework/mpi/progress.hpp"

namespace isohalo {

namespace {

/// The ring of all ranks: each sends to the next and receives from the one before.
struct Ring {
  explicit Ring(const Communicator& c)
      : comm(c), next((c.rank() + 1) % c.size()), before((c.rank() + c.size() - 1) % c.size()) {}
  const Communicator& comm;
  int next, before;

  /// Sends `from` to the next rank while that of the rank before arrives in `to`. Collective.
  void pass(const void* from, int count, MPI_Datatype type, void* to, int to_count, MPI_Datatype to_type) const {
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const int tag = comm.take_tags(1);
    mpi_check(MPI_Irecv(to, to_count, to_type, before, tag, comm.get(), &r[0]), "MPI_Irecv", comm.get());
    mpi_check(MPI_Isend(from, count, type, next, tag, comm.get(), &r[1]), "MPI_Isend", comm.get());
    comm.wait(r, "ring");
  }
};

/// A value of its own for each rank and place.
std::int64_t value_of(int rank, std::int64_t place) {
  return (rank + 1) * std::int64_t{1000003} + place;
}

std::string wrong_text(int rank, const std::string& what, std::int64_t expected, std::int64_t found) {
  return fmt::format("rank {}: {} should be {}, found {}", rank, what, expected, found);
}

/// 6 x 7 x 8 elements in C order or with the dimensions' order reversed.
struct Brick {
  explicit Brick(bool reversed) : stride(reversed ? Index<3>{1, 6, 42} : Index<3>{56, 8, 1}), data(336, -1) {}
  std::int64_t& at(const Index<3>& i) {
    return data[static_cast<std::size_t>(i[0] * stride[0] + i[1] * stride[1] + i[2] * stride[2])];
  }
  Index<3> stride;
  std::vector<std::int64_t> data;
  static constexpr Box<3> box{{0, 0, 0}, {6, 7, 8}};
};

/// A thin face, a column, a prism of triangles and a tetrahedron: the parts of a halo.
std::vector<Region<3>> regions() {
  const auto cut = [](const Box<3>& box, const PerDim<std::int8_t, 3>& side) {
    Region<3> r{box, side, {}, 1, 3};
    for (int j = 0; j < 3; ++j) r.edge[j] = side[j] > 0 ? box.low[j] : box.high[j];
    return r;
  };
  return {Region<3>::whole({{1, 2, 6}, {6, 7, 8}}), Region<3>::whole({{0, 3, 2}, {6, 4, 3}}),
          cut({{1, 1, 1}, {5, 4, 4}}, {0, 1, -1}), cut({{2, 2, 2}, {5, 5, 5}}, {-1, 1, 1})};
}

/// A region leaves an array of one layout by its datatype and enters another of another layout, in place, against
/// the same cells packed by MPI_Pack.
void check_datatypes(const Ring& ring, LiveRow& row, bool broken) {
  const int me = ring.comm.rank();
  for (const auto& region : regions()) {
    Brick from(false), to(true);
    for_each_cell(Brick::box, [&](const Index<3>& i) { from.at(i) = value_of(me, linear_index(Brick::box, i)); });
    const Datatype out = region_type<3>(region, {0, 0, 0}, from.stride, MPI_INT64_T);
    const Datatype in = region_type<3>(region, {0, 0, 0}, to.stride, MPI_INT64_T);
    ring.pass(from.data.data(), 1, out.get(), to.data.data(), 1, in.get());
    if (broken) to.at({0, 0, 0}) = 7;
    for_each_cell(Brick::box, [&](const Index<3>& i) {
      const std::int64_t expected =
          region.contains(i) ? value_of(ring.before, linear_index(Brick::box, i)) : std::int64_t{-1};
      row.check(to.at(i) == expected, [&] {
        return wrong_text(me, fmt::format("case {}, element {}", row.cases, to_string<3>(i)), expected, to.at(i));
      });
    });
    std::vector<std::int64_t> packed(static_cast<std::size_t>(region.cells())), arrived(packed.size(), -1);
    MPI_Count at = 0;
    const auto bytes = static_cast<MPI_Count>(packed.size() * sizeof packed[0]);
    mpi_check(mpi::pack(from.data.data(), 1, out.get(), packed.data(), bytes, &at, ring.comm.get()), "MPI_Pack_c",
              ring.comm.get());
    row.check(at == bytes, [&] { return wrong_text(me, "bytes packed", bytes, at); });
    ring.pass(packed.data(), static_cast<int>(bytes), MPI_PACKED, arrived.data(), static_cast<int>(packed.size()),
              MPI_INT64_T);
    for (std::size_t k = 0; k < packed.size(); ++k) {
      const std::int64_t expected = packed[k] - value_of(me, 0) + value_of(ring.before, 0);
      row.check(arrived[k] == expected, [&] {
        return wrong_text(me, fmt::format("case {}, packed element {}", row.cases, k), expected, arrived[k]);
      });
    }
    ++row.cases;
  }
}

/// Messages of one tag, empty ones among them, must arrive in the order of their sends; so must those of the
/// largest tag.
void check_order(const Ring& ring, LiveRow& row, bool broken) {
  constexpr int kMessages = 60;
  const int me = ring.comm.rank();
  int *limit = nullptr, found = 0;
  mpi_check(MPI_Comm_get_attr(ring.comm.get(), MPI_TAG_UB, static_cast<void*>(&limit), &found),
            "MPI_Comm_get_attr");
  for (const int tag : {ring.comm.take_tags(1), found ? *limit : 32767}) {
    std::vector<std::vector<std::int64_t>> out(kMessages), in(kMessages);
    std::vector<MPI_Request> requests;
    for (int m = 0; m < kMessages; ++m) {
      in[static_cast<std::size_t>(m)].assign(static_cast<std::size_t>(m) * 37 % 400, -1);
      auto& part = in[static_cast<std::size_t>(m)];
      mpi_check(MPI_Irecv(part.data(), static_cast<int>(part.size()), MPI_INT64_T, ring.before, tag,
                          ring.comm.get(), &requests.emplace_back()),
                "MPI_Irecv", ring.comm.get());
    }
    for (int m = 0; m < kMessages; ++m) {
      auto& part = out[static_cast<std::size_t>(m)];
      part.assign(static_cast<std::size_t>(m) * 37 % 400, value_of(me, m));
      mpi_check(MPI_Isend(part.data(), static_cast<int>(part.size()), MPI_INT64_T, ring.next, tag, ring.comm.get(),
                          &requests.emplace_back()),
                "MPI_Isend", ring.comm.get());
    }
    ring.comm.wait(requests, "messages of one tag");
    if (broken) std::swap(in[1][0], in[2][0]);
    for (int m = 0; m < kMessages; ++m)
      for (const std::int64_t x : in[static_cast<std::size_t>(m)])
        row.check(x == value_of(ring.before, m), [&] {
          return wrong_text(me, fmt::format("tag {}, message {}", tag, m), value_of(ring.before, m), x);
        });
    ++row.cases;
  }
}

/// Messages whose size and sender are not known beforehand: MPI_Improbe and MPI_Imrecv_c.
void check_probes(const Ring& ring, LiveRow& row, bool broken) {
  const int me = ring.comm.rank(), tag = ring.comm.take_tags(1);
  for (const int length : {0, 1, 5000}) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(length), value_of(me, length));
    MPI_Request sent = MPI_REQUEST_NULL, received = MPI_REQUEST_NULL;
    mpi_check(mpi::isend(out.data(), length, MPI_INT64_T, ring.next, tag, ring.comm.get(), &sent), "MPI_Isend_c",
              ring.comm.get());
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    wait_until(
        [&] {
          int found = 0;
          mpi_check(MPI_Improbe(MPI_ANY_SOURCE, tag, ring.comm.get(), &found, &message, &status), "MPI_Improbe",
                    ring.comm.get());
          return found != 0;
        },
        ring.comm.spins());
    MPI_Count elements = -1;
    mpi_check(mpi::get_elements(&status, MPI_INT64_T, &elements), "MPI_Get_elements_c", ring.comm.get());
    if (broken) ++elements;
    row.check(elements == length, [&] { return wrong_text(me, "length of a probed message", length, elements); });
    row.check(status.MPI_SOURCE == ring.before,
              [&] { return wrong_text(me, "sender of a probed message", ring.before, status.MPI_SOURCE); });
    std::vector<std::int64_t> in(static_cast<std::size_t>(elements), -1);
    mpi_check(mpi::imrecv(in.data(), elements, MPI_INT64_T, &message, &received), "MPI_Imrecv_c", ring.comm.get());
    MPI_Request both[2] = {sent, received};
    ring.comm.wait(both, "probed message");
    in.resize(static_cast<std::size_t>(length), -1);
    for (const std::int64_t x : in)
      row.check(x == value_of(ring.before, length),
                [&] { return wrong_text(me, "a probed message", value_of(ring.before, length), x); });
    ++row.cases;
    ring.comm.barrier();  // the next rank must not see two of them
  }
}

/// Minima of signed keys, sums that wrap, maxima of numbers, gathered and broadcast values.
void check_collectives(const Ring& ring, LiveRow& row, bool broken) {
  const int me = ring.comm.rank(), ranks = ring.comm.size();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const auto expect = [&](const char* what, std::int64_t expected, std::int64_t found) {
    if (broken && row.cases == 0) found = -found;
    row.check(found == expected, [&] { return wrong_text(me, what, expected, found); });
    ++row.cases;
  };
  // Keys of both signs, of which the bits as unsigned numbers would be ordered otherwise.
  expect("MPI_MIN of signed keys", -ranks, ring.comm.min(me % 2 ? me : me - ranks));
  expect("MPI_MIN with the least key", kLeast, ring.comm.min(me == ranks - 1 ? kLeast : me));
  expect("MPI_MAX of signed keys", ranks - 1, ring.comm.max(me % 2 ? -me - 1 : ranks - 1));
  std::uint64_t sum = 0;
  for (int r = 0; r < ranks; ++r) sum += ~std::uint64_t{0} / 3 * 2 + static_cast<std::uint64_t>(r);
  expect("MPI_SUM that wraps", static_cast<std::int64_t>(sum),
         static_cast<std::int64_t>(ring.comm.sum(~std::uint64_t{0} / 3 * 2 + static_cast<std::uint64_t>(me))));
  std::vector<double> most(33);
  for (std::size_t k = 0; k < most.size(); ++k) most[k] = me == static_cast<int>(k) % ranks ? 2.5 : -1e300;
  ring.comm.allreduce(most.data(), static_cast<int>(most.size()), MPI_DOUBLE, MPI_MAX);
  for (const double x : most) expect("MPI_MAX of numbers, in halves", 5, static_cast<std::int64_t>(2 * x));
  std::string text = me == ranks - 1 ? std::string(5000, 'x') : "";
  ring.comm.broadcast(text, ranks - 1);
  expect("bytes broadcast", 5000, static_cast<std::int64_t>(text.size()));
  std::vector<std::int64_t> all(static_cast<std::size_t>(ranks), -1);
  const std::int64_t mine = value_of(me, 0);
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Iallgather(&mine, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, ring.comm.get(), &request),
            "MPI_Iallgather", ring.comm.get());
  ring.comm.wait(request, "MPI_Iallgather");
  for (int r = 0; r < ranks; ++r) expect("a value gathered", value_of(r, 0), all[static_cast<std::size_t>(r)]);
  std::int64_t folded[2] = {3, -4};
  const std::int64_t other[2] = {-5, 6};
  mpi_check(MPI_Reduce_local(other, folded, 2, MPI_INT64_T, MPI_MIN), "MPI_Reduce_local", ring.comm.get());
  expect("MPI_Reduce_local", -9, folded[0] + folded[1]);
}

}  // namespace

void check_mpi_features(MPI_Comm user, LiveReport& report) {
  const Communicator comm = Communicator::of(user);
  const Ring ring(comm);
  const auto run = [&](const char* name, auto& check) {
    LiveRow& row = report.add("MPI", name);
    naming_place(name, [&] { check(ring, row, report.broken(name)); });
  };
  run("datatypes", check_datatypes);
  run("message_order", check_order);
  run("probes", check_probes);
  run("collectives", check_collectives);
}

}  // namespace isohalo
