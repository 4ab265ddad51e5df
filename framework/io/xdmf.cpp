#include "framework/io/xdmf.hpp"

#include <fmt/format.h>

#include "datatypes/printable.hpp"

namespace isohalo {

std::string xdmf_text(const std::string& h5_name, const CheckpointMeta& meta,
                      const std::vector<StoredField>& fields) {
  const std::size_t d = meta.shape.size();
  if (d != 2 && d != 3) return "";
  std::vector<std::int64_t> nodes;
  for (std::int64_t n : meta.shape) nodes.push_back(n + 1);
  std::string s = fmt::format(
      "<?xml version=\"1.0\" ?>\n<Xdmf Version=\"3.0\">\n <Domain>\n  <Grid Name=\"isohalo\" "
      "GridType=\"Uniform\">\n"
      "   <Time Value=\"{:.17g}\"/>\n"
      "   <Topology TopologyType=\"{}DCoRectMesh\" Dimensions=\"{}\"/>\n"
      "   <Geometry GeometryType=\"{}\">\n"
      "    <DataItem Dimensions=\"{}\" NumberType=\"Float\" Precision=\"8\" Format=\"XML\">{:.17g}</DataItem>\n"
      "    <DataItem Dimensions=\"{}\" NumberType=\"Float\" Precision=\"8\" Format=\"XML\">{:.17g}</DataItem>\n"
      "   </Geometry>\n",
      meta.dt > 0 ? meta.time : static_cast<double>(meta.step), d, fmt::join(nodes, " "),
      d == 2 ? "ORIGIN_DXDY" : "ORIGIN_DXDYDZ", d, fmt::join(meta.origin, " "), d, fmt::join(meta.spacing, " "));
  for (const auto& f : fields) {
    const std::string name = xml_text(f.name);
    s += fmt::format(
        "   <Attribute Name=\"{}\" AttributeType=\"Scalar\" Center=\"Cell\">\n"
        "    <DataItem Dimensions=\"{}\" NumberType=\"{}\" Precision=\"{}\" "
        "Format=\"HDF\">{}:/fields/{}</DataItem>\n"
        "   </Attribute>\n",
        name, fmt::join(f.shape, " "), f.type == "uint8" ? "UChar" : "Float",
        f.type == "float64"   ? 8
        : f.type == "float32" ? 4
                              : 1,
        xml_text(h5_name), name);
  }
  return s + "  </Grid>\n </Domain>\n</Xdmf>\n";
}

}  // namespace isohalo
