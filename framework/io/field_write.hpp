#pragma once
/// A field's owned cells into a dataset of a checkpoint.

#include <string>

#include "framework/io/digest.hpp"
#include "framework/io/hdf5.hpp"

namespace isohalo {

/// Makes dataset `f.name` in the group `fields` of a file that all ranks have open, writes the owned cells of every
/// rank and returns the field's statistics, found while the cells are packed: the field is read once. Ranks whose
/// cells follow one another in the file write on their own, others by collective MPI-IO. Memory is bounded (32 MiB
/// per rank). Collective. Throws RunError, agreed.
template <int D>
FieldStatistics write_field(hid_t fields, const CartesianDomain<D>& domain, const FieldHandle<D>& f);

/// A whole field on its way to a file that rank 0 writes alone.
struct GatheredField {
  FieldStatistics statistics;
  std::string bytes;  ///< of all cells in index order, on rank 0; empty elsewhere
};

/// Brings the owned cells of every rank to rank 0. Collective. Throws RunError, agreed.
template <int D>
GatheredField gather_field(const CartesianDomain<D>& domain, const FieldHandle<D>& f);

/// Makes dataset `f.name` in the group `fields` of a file of this rank's own and writes all its cells. Throws
/// RunError.
template <int D>
void write_gathered(hid_t fields, const Box<D>& global, const FieldHandle<D>& f, const GatheredField& whole);

}  // namespace isohalo
