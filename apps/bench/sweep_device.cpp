/// `isohalo bench sweep --space device`: steps on Kokkos' default execution space, against copying the same memory
/// there.

#include <fmt/format.h>

#include <Kokkos_Core.hpp>
#include <cstring>

#include "apps/bench/input_solver.hpp"
#include "apps/bench/sweep_measure.hpp"
#include "stencils/device/device_field.hpp"

namespace isohalo {

namespace {

/// Copies so many bytes within the memory of the device.
class DeviceCopy {
 public:
  explicit DeviceCopy(std::int64_t bytes)
      : from_("from", static_cast<std::size_t>(bytes)), to_("to", static_cast<std::size_t>(bytes)) {}
  /// Seconds of one of so many copies, on all ranks at once. Collective.
  double seconds(const Communicator& comm, std::int64_t times) {
    const double all = timed(comm, [&] {
      for (std::int64_t k = 0; k < times; ++k) Kokkos::deep_copy(DeviceSpace(), to_, from_);
      DeviceSpace().fence();
    });
    return all / static_cast<double>(times);
  }

 private:
  Kokkos::View<char*, DeviceSpace::memory_space> from_, to_;
};

std::string on_space(const std::string& grid, const std::string& space) {
  return grid + "parallel.space = \"" + space + "\"\n";
}

/// Cells of all fields, and change sums, that differ after so many steps on the host and on the device. Collective.
template <int D>
std::int64_t differences(MPI_Comm user, const std::string& text, std::int64_t steps) {
  InputSolver<D> host(user, on_space(text, "host")), device(user, on_space(text, "device"));
  const double sum = host->advance(steps, true), same = device->advance(steps, true);
  const auto there = device->fields(), here = host->fields();
  std::int64_t wrong = std::memcmp(&sum, &same, sizeof(double)) != 0;
  for (std::size_t f = 0; f < there.size(); ++f) {
    const auto a = std::get<ArrayRef<double, D>>(there[f].array), b = std::get<ArrayRef<double, D>>(here[f].array);
    for_each_cell(host.domain().owned(),
                  [&](const Index<D>& i) { wrong += std::memcmp(&a.at(i), &b.at(i), sizeof(double)) != 0; });
  }
  return host.domain().comm().max(wrong);
}

/// `arrays` as in sweep_row.
template <int D>
Json measure(const SweepOrder& order, const std::string& name, const std::string& text, double arrays) {
  const bool same_bits = differences<D>(order.comm, text, 5) == 0;
  InputSolver<D> ours(order.comm, on_space(text, "device"));
  const CartesianDomain<D>& domain = ours.domain();
  const Communicator& comm = domain.comm();
  DeviceCopy copy(domain.owned().cells() * static_cast<std::int64_t>(sizeof(double)));
  ours->advance(4, false), copy.seconds(comm, 4);
  const std::int64_t steps = steps_to_time(timed(comm, [&] { ours->advance(4, false); }) / 4, 4, 1000);
  const Turns turns(order.repeats,
                    {[&] { return copy.seconds(comm, steps); },
                     [&] { return timed(comm, [&] { ours->advance(steps, false); }) / static_cast<double>(steps); },
                     [&] { return timed_calls(comm, steps, [&] { ours->advance(1, true); }); }});
  Json row = sweep_row<double, D>(name, domain, turns, arrays, same_bits);
  row["residual_cost"] = turns.ratio(2, kOurs);
  return row;
}

}  // namespace

void measure_device_steps(SweepOrder& order) {
  const auto add = [&](const std::string& name, const auto& shape, double arrays, const std::string& solver) {
    constexpr int D = static_cast<int>(std::tuple_size_v<std::remove_cvref_t<decltype(shape)>>);
    order.cases.add(name, [&order, name, shape, arrays, solver] {
      order.rows.push_back(
          measure<D>(order, name, grid_text<D>(order.comm, shape, kPeriodicSide) + solver, arrays));
    });
  };
  const std::int64_t n2 = order.cells(16384), n3 = order.cells(512);
  const Index<2> plane{n2, n2};
  const Index<3> cube{n3, n3, n3};
  const std::string one = kRandomField, heat = one + kHeat;
  add("2d-5pt", plane, 2, heat);
  add("3d-7pt", cube, 2, heat);
  add("2d-9pt", plane, 2, one + stencil_text<2>(moore<2>(1, Self::include)));
  add("3d-27pt", cube, 2, one + stencil_text<3>(moore<3>(1, Self::include)));
  add("3d-upwind", cube, 2,
      one + "solver = {kind = \"advection\", method = \"upwind\", dt = 0.25, v0 = 0.7, v1 = -0.4, v2 = 0.7}\n");
  add("3d-wave", cube, 3, one + "solver = {kind = \"wave\", c = 0.9, dt = 0.5}\n");
  add("gray_scott", Index<2>{n2, n2 / 2}, 4,
      random_text({"u", "v"}) + "solver = {kind = \"gray_scott\", dt = 0.1}\n");
  add("3d-acoustics", cube, 8,
      random_text({"p", "v0", "v1", "v2"}) +
          "solver = {kind = \"acoustics\", density = 1.25, bulk_modulus = 0.75, dt = 0.5}\n");
  order.cases.measure("bench sweep --space device");
}

}  // namespace isohalo
