#pragma once
/// The parts of a comparison. Private to framework/io: use `compare_checkpoints`.

#include "framework/io/compare.hpp"

namespace isohalo::detail {

/// Fills `must` and `ignored` with what the files' metadata do not have in common; `tolerant` moves what follows
/// from the values (the last residual) to `ignored`.
void compare_meta(const StoredCheckpoint& a, const StoredCheckpoint& b, bool tolerant, Comparison& report);
/// What is stored beside equal data and must be equal then: digest, extremes, NaN count.
void compare_statistics(const StoredField& a, const StoredField& b, std::vector<std::string>& must);

/// Reads and compares one field. Collective.
FieldDifference compare_field(const std::filesystem::path& a, const std::filesystem::path& b, const StoredField& fa,
                              const StoredField& fb, const Tolerance& tolerance, const Communicator& comm,
                              Comparison& report);

}  // namespace isohalo::detail
