#pragma once
/// The parts of a comparison. Private to framework/io: use `compare_checkpoints`.

#include "framework/io/compare.hpp"

namespace isohalo::detail {

/// Fills `metadata` and `ignored` of the report with what the files' metadata do not have in common; `ignore` names
/// what belongs to the latter.
void compare_meta(const StoredCheckpoint& a, const StoredCheckpoint& b, const std::set<std::string>& ignore,
                  Comparison& report);
/// What is stored beside equal data and must be equal then: digest, extremes, NaN count.
void compare_statistics(const StoredField& a, const StoredField& b, std::vector<std::string>& must);

/// Reads and compares one field. Collective.
FieldDifference compare_field(const std::filesystem::path& a, const std::filesystem::path& b, const StoredField& fa,
                              const StoredField& fb, const Tolerance& tolerance, const Communicator& comm,
                              Comparison& report);

}  // namespace isohalo::detail
