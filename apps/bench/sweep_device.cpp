/// `isohalo bench sweep --space device`: steps on Kokkos' default execution space, against copying the same memory
/// there.

#include <fmt/format.h>

#include <Kokkos_Core.hpp>
#include <cstring>

#include "apps/bench/input_solver.hpp"
#include "apps/bench/sweep_measure.hpp"
#include "framework/neighborhood/offsets.hpp"
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
    return timed(comm,
                 [&] {
                   for (std::int64_t k = 0; k < times; ++k) Kokkos::deep_copy(DeviceSpace(), to_, from_);
                   DeviceSpace().fence();
                 }) /
           static_cast<double>(times);
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

/// `arrays`: those that a step must read, and write.
template <int D>
SweepFigures measure(MPI_Comm user, const std::string& name, const std::string& text, double arrays, int repeats) {
  SweepFigures f;
  f.name = name;
  f.type = "float64";
  f.same_bits = differences<D>(user, text, 5) == 0;
  InputSolver<D> ours(user, on_space(text, "device"));
  const CartesianDomain<D>& domain = ours.domain();
  const Communicator& comm = domain.comm();
  const double cells = static_cast<double>(domain.global().cells());
  DeviceCopy copy(domain.owned().cells() * static_cast<std::int64_t>(sizeof(double)));
  ours->advance(4, false), copy.seconds(comm, 4);
  const double once = timed(comm, [&] { ours->advance(4, false); }) / 4;
  const auto steps = static_cast<std::int64_t>(std::clamp(0.25 / once, 4.0, 1000.0));
  std::vector<double> a, c, r, of_copy, cost;
  for (int k = 0; k < repeats; ++k) {
    a.push_back(timed(comm, [&] { ours->advance(steps, false); }) / static_cast<double>(steps));
    c.push_back(copy.seconds(comm, steps));
    r.push_back(timed(comm,
                      [&] {
                        for (std::int64_t s = 0; s < steps; ++s) ours->advance(1, true);
                      }) /
                static_cast<double>(steps));
    of_copy.push_back(c.back() * 0.5 * arrays / a.back());
    cost.push_back(r.back() / a.back());
  }
  f.shape = shape_string<D>(domain.global().extents());
  f.ranks = comm.size();
  f.ours = cells / median(a) / 1e6, f.with_residual = cells / median(r) / 1e6;
  f.bytes = arrays * sizeof(double);
  f.gb_per_s = f.ours * 1e6 * f.bytes / 1e9;
  f.copied = cells * 2 * sizeof(double) / median(c) / 1e9;
  f.of_copy = median(of_copy), f.residual_cost = median(cost);
  return f;
}

constexpr const char* kHeat = "solver = {kind = \"heat\", kappa = 1.0, dt = 0.05}\n";

template <int D>
std::string box_text() {
  std::string offsets, weights;
  const Offsets<D> all = moore<D>(1, Self::include);
  for (std::size_t k = 0; k < all.size(); ++k) {
    offsets += (k ? ", " : "") + list_text<D>(all[k]);
    weights += (k ? ", " : "") +
               Config::canonical(1.0 / static_cast<double>(all.size()) + 0.0001 * static_cast<double>(k));
  }
  return fmt::format("solver = {{kind = \"stencil\", offsets = [{}], weights = [{}], dt = 1.0}}\n", offsets,
                     weights);
}

std::string fields_text(std::string grid, std::initializer_list<const char*> fields) {
  grid = grid.substr(0, grid.find("initial.kind"));
  for (const char* name : fields) grid += fmt::format("initial.{}.kind = \"random\"\n", name);
  return grid;
}

}  // namespace

std::vector<SweepFigures> measure_device_steps(const SweepOrder& order) {
  int ranks = 1;
  MPI_Comm_size(order.comm, &ranks);
  std::vector<SweepFigures> all;
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, const auto& shape, double arrays, const auto& text_of) {
    constexpr int D = static_cast<int>(std::tuple_size_v<std::remove_cvref_t<decltype(shape)>>);
    names.push_back(name);
    if (order.wants(name))
      all.push_back(
          measure<D>(order.comm, name, text_of(grid_text<D>(shape, ranks, "\"periodic\"")), arrays, order.repeats));
  };
  const std::int64_t n2 = order.size ? order.size : 16384, n3 = order.size ? order.size : 512;
  add("2d-5pt", Index<2>{n2, n2}, 2, [](const std::string& grid) { return grid + kHeat; });
  add("3d-7pt", Index<3>{n3, n3, n3}, 2, [](const std::string& grid) { return grid + kHeat; });
  add("2d-9pt", Index<2>{n2, n2}, 2, [](const std::string& grid) { return grid + box_text<2>(); });
  add("3d-27pt", Index<3>{n3, n3, n3}, 2, [](const std::string& grid) { return grid + box_text<3>(); });
  add("3d-upwind", Index<3>{n3, n3, n3}, 2, [](const std::string& grid) {
    return grid +
           "solver = {kind = \"advection\", method = \"upwind\", dt = 0.25, v0 = 0.7, v1 = -0.4, v2 = 0.7}\n";
  });
  add("3d-wave", Index<3>{n3, n3, n3}, 3,
      [](const std::string& grid) { return grid + "solver = {kind = \"wave\", c = 0.9, dt = 0.5}\n"; });
  add("gray_scott", Index<2>{n2, n2 / 2}, 4, [](const std::string& grid) {
    return fields_text(grid, {"u", "v"}) + "solver = {kind = \"gray_scott\", dt = 0.1}\n";
  });
  add("3d-acoustics", Index<3>{n3, n3, n3}, 8, [](const std::string& grid) {
    return fields_text(grid, {"p", "v0", "v1", "v2"}) +
           "solver = {kind = \"acoustics\", density = 1.25, bulk_modulus = 0.75, dt = 0.5}\n";
  });
  if (all.empty())
    throw UsageError(fmt::format("bench sweep --space device: no such case; there are {}", fmt::join(names, ", ")));
  return all;
}

}  // namespace isohalo
