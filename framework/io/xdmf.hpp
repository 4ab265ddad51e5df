#pragma once
/// XDMF description of a checkpoint, for ParaView and VisIt.

#include <filesystem>
#include <string>
#include <vector>

#include "framework/io/checkpoint.hpp"

namespace isohalo {

/// The text of the .xmf file that describes `h5_name` (a file in the same directory): a uniform mesh with
/// cell-centred fields, at the step's time, or number where steps have no length; fields on faces are the cells of
/// a mesh of their own that begins half a cell before it. Empty for 1-D and 4-D grids, which XDMF's uniform meshes
/// do not cover.
std::string xdmf_text(const std::string& h5_name, const CheckpointMeta& meta,
                      const std::vector<StoredField>& fields);

}  // namespace isohalo
