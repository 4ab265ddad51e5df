#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/isohalo/commands.hpp"
#include "datatypes/printable.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/field_reader.hpp"
#include "framework/mpi/agreement.hpp"

namespace isohalo {

namespace {

/// A Python literal of any text: a string where the text is UTF-8 (JSON's escapes are Python's, and so are ours),
/// else bytes. Plain ASCII would need pairs of surrogates in JSON, which Python takes for two characters.
std::string quoted(const std::string& text) {
  try {
    return printable(nlohmann::json(text).dump());
  } catch (const nlohmann::json::type_error&) {
    std::string bytes = "b\"";
    for (const char c : text) bytes += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    return bytes + "\"";
  }
}

/// Python that loads each field into the dictionary `fields`: by NumPy alone where the data lies in one run of the
/// file, by h5py otherwise.
std::string numpy_lines(const std::string& file, const StoredCheckpoint& s) {
  const H5Quiet quiet;
  const std::string path = quoted(std::filesystem::absolute(file).string());
  std::string lines = "import numpy as np\nfields = {}\n", h5py;
  for (const StoredField& f : s.fields) {
    const std::string name = quoted(f.name);
    const FieldReader reader(file, f.name);
    std::string shape;
    for (std::int64_t n : f.shape) shape += fmt::format("{}, ", n);
    const std::string type = f.type == "float64" ? "<f8" : f.type == "float32" ? "<f4" : "u1";
    if (reader.offset() >= 0) {
      lines += fmt::format("fields[{}] = np.memmap({}, dtype=\"{}\", mode=\"r\", offset={}, shape=({}))\n", name,
                           path, type, reader.offset(), shape);
    } else {
      h5py = "import h5py\n";
      lines += fmt::format("fields[{0}] = h5py.File({1}, \"r\")[\"fields\"][{0}][...]\n", name, path);
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
    on_root(c, [&] { lines = numpy_lines(file, s); });
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
  fmt::print("file            {}\nformat          isohalo {}.{}, complete\n", printable(file), s.major, s.minor);
  fmt::print("grid            {} cells, spacing {}, origin {}\n", list(m.shape), list(m.spacing), list(m.origin));
  fmt::print("boundary        low {}, high {}\n", printable(m.boundary_low), printable(m.boundary_high));
  fmt::print("time            step {}{}\n", m.step,
             m.dt > 0 ? fmt::format(", t = {:.17g}, dt = {:.17g}", m.time, m.dt) : "");
  fmt::print("residual        {:.17g} (S = {:.17g}, step {}, method {}, tree {}, tile {})\n", m.residual,
             m.change_sum, m.residual_step, printable(m.method), m.tree_version, list(m.tile));
  for (const auto& f : s.fields)
    fmt::print("field           {}: {} {}{}, {}, digest {}, min {:.17g}, max {:.17g}, NaN {}\n", printable(f.name),
               f.type, list(f.shape), f.face < 0 ? "" : fmt::format(" on faces of dimension {}", f.face),
               printable(f.role), hex_digest(f.digest), f.min, f.max, f.nan_count);
  std::istringstream config(m.config);
  for (std::string line; std::getline(config, line);) fmt::print("config          {}\n", printable(line));
  return ExitCode::fine;
}

}  // namespace isohalo
