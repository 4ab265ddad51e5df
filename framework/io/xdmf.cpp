#include "framework/io/xdmf.hpp"

#include <fmt/format.h>

#include "datatypes/printable.hpp"

namespace isohalo {

namespace {

/// The mesh whose cells the values of these fields are, all of one shape.
std::string grid_text(const std::string& name, const std::string& h5_name, const CheckpointMeta& meta,
                      const std::vector<std::int64_t>& shape, const std::vector<double>& origin,
                      const std::vector<StoredField>& fields) {
  const std::size_t d = shape.size();
  std::vector<std::int64_t> nodes;
  for (std::int64_t n : shape) nodes.push_back(n + 1);
  std::string s = fmt::format(
      "  <Grid Name=\"{}\" GridType=\"Uniform\">\n"
      "   <Time Value=\"{:.17g}\"/>\n"
      "   <Topology TopologyType=\"{}DCoRectMesh\" Dimensions=\"{}\"/>\n"
      "   <Geometry GeometryType=\"{}\">\n"
      "    <DataItem Dimensions=\"{}\" NumberType=\"Float\" Precision=\"8\" Format=\"XML\">{:.17g}</DataItem>\n"
      "    <DataItem Dimensions=\"{}\" NumberType=\"Float\" Precision=\"8\" Format=\"XML\">{:.17g}</DataItem>\n"
      "   </Geometry>\n",
      name, meta.dt > 0 ? meta.time : static_cast<double>(meta.step), d, fmt::join(nodes, " "),
      d == 2 ? "ORIGIN_DXDY" : "ORIGIN_DXDYDZ", d, fmt::join(origin, " "), d, fmt::join(meta.spacing, " "));
  for (const auto& f : fields) {
    const std::string field = xml_text(f.name);
    s += fmt::format(
        "   <Attribute Name=\"{}\" AttributeType=\"Scalar\" Center=\"Cell\">\n"
        "    <DataItem Dimensions=\"{}\" NumberType=\"{}\" Precision=\"{}\" "
        "Format=\"HDF\">{}:/fields/{}</DataItem>\n"
        "   </Attribute>\n",
        field, fmt::join(f.shape, " "), f.type == "uint8" ? "UChar" : "Float",
        f.type == "float64"   ? 8
        : f.type == "float32" ? 4
                              : 1,
        xml_text(h5_name), field);
  }
  return s + "  </Grid>\n";
}

}  // namespace

std::string xdmf_text(const std::string& h5_name, const CheckpointMeta& meta,
                      const std::vector<StoredField>& fields) {
  const std::size_t d = meta.shape.size();
  if (d != 2 && d != 3) return "";
  std::vector<StoredField> in_cells;
  std::string on_faces;
  for (const auto& f : fields) {
    if (f.face < 0) {
      in_cells.push_back(f);
      continue;
    }
    const auto j = static_cast<std::size_t>(f.face);
    std::vector<double> origin = meta.origin;
    origin[j] -= 0.5 * meta.spacing[j];
    on_faces += grid_text("isohalo " + xml_text(f.name), h5_name, meta, f.shape, origin, {f});
  }
  return "<?xml version=\"1.0\" ?>\n<Xdmf Version=\"3.0\">\n <Domain>\n" +
         grid_text("isohalo", h5_name, meta, meta.shape, meta.origin, in_cells) + on_faces +
         " </Domain>\n</Xdmf>\n";
}

}  // namespace isohalo
