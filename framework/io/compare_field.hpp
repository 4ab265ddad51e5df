#pragma once
/// One field of a comparison. Private to framework/io: use `compare_checkpoints`.

#include "framework/io/compare.hpp"

namespace isohalo::detail {

/// Reads and compares one field, of the same shape and type in both files; stored digests that do not match the
/// data go to `warnings`. Collective. Throws UsageError, agreed.
FieldDifference compare_field(const std::filesystem::path (&files)[2], const StoredField& a, const StoredField& b,
                              const Tolerance& tolerance, const Communicator& comm,
                              std::vector<std::string>& warnings);

}  // namespace isohalo::detail
