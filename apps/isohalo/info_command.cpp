#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/isohalo/commands.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/field_reader.hpp"
#include "framework/mpi/agreement.hpp"

namespace isohalo {

namespace {

/// A Python literal of a file name: a string where the name is UTF-8 (JSON's escapes are Python's), else bytes.
std::string quoted(const std::string& name) {
  try {
    return nlohmann::json(name).dump(-1, ' ', true);
  } catch (const nlohmann::json::type_error&) {
    std::string bytes = "b\"";
    for (const char c : name) bytes += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    return bytes + "\"";
  }
}

/// Python that loads each field: by NumPy alone where the data lies in one run of the file, by h5py otherwise.
std::string numpy_lines(const std::string& file, const StoredCheckpoint& s) {
  const H5Quiet quiet;
  const std::string path = quoted(std::filesystem::absolute(file).string());
  std::string lines = "import numpy as np\n", h5py;
  for (const auto& f : s.fields) {
    const FieldReader reader(file, f.name);
    std::string shape;
    for (std::int64_t n : f.shape) shape += fmt::format("{}, ", n);
    const std::string type = f.type == "float64" ? "<f8" : f.type == "float32" ? "<f4" : "u1";
    if (reader.offset() >= 0) {
      lines += fmt::format("{} = np.memmap({}, dtype=\"{}\", mode=\"r\", offset={}, shape=({}))\n", f.name, path,
                           type, reader.offset(), shape);
    } else {
      h5py = "import h5py\n";
      lines += fmt::format("{} = h5py.File({}, \"r\")[\"fields/{}\"][...]\n", f.name, path, f.name);
    }
  }
  return h5py + lines;
}

}  // namespace

ExitCode info_command(MPI_Comm comm, const std::string& file, bool numpy) {
  const Communicator c = Communicator::of(comm);
  const StoredCheckpoint s = read_checkpoint_meta(file, c);
  if (numpy) {
    std::string lines;
    agreed(c, [&] {
      if (c.rank() == 0) lines = numpy_lines(file, s);
    });
    if (c.rank() == 0) fmt::print("{}", lines);
    return ExitCode::fine;
  }
  if (c.rank() != 0) return ExitCode::fine;
  const auto list = [](const auto& v) {
    std::string text;
    for (const auto& x : v) text += (text.empty() ? "" : " x ") + fmt::format("{}", x);
    return text;
  };
  const CheckpointMeta& m = s.meta;
  fmt::print("file            {}\nformat          isohalo {}.{}, complete\n", file, s.major, s.minor);
  fmt::print("grid            {} cells, spacing {}, origin {}\n", list(m.shape), list(m.spacing), list(m.origin));
  fmt::print("boundary        low {}, high {}\n", m.boundary_low, m.boundary_high);
  fmt::print("time            step {}, t = {:.17g}, dt = {:.17g}\n", m.step, m.time, m.dt);
  fmt::print("residual        {:.17g} (S = {:.17g}, step {}, method {}, tree {}, tile {})\n", m.residual,
             m.change_sum, m.residual_step, m.method, m.tree_version, list(m.tile));
  for (const auto& f : s.fields)
    fmt::print("field           {}: {} {}, {}, digest {}, min {:.17g}, max {:.17g}, NaN {}\n", f.name, f.type,
               list(f.shape), f.role, hex_digest(f.digest), f.min, f.max, f.nan_count);
  std::istringstream config(m.config);
  for (std::string line; std::getline(config, line);) fmt::print("config          {}\n", line);
  return ExitCode::fine;
}

}  // namespace isohalo
