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

/// Brings the owned cells of every rank to rank 0, where `cells` gets the bytes of all in index order, and returns
/// the field's statistics. Collective. Throws RunError, agreed.
template <int D>
FieldStatistics gather_field(const CartesianDomain<D>& domain, const FieldHandle<D>& f, std::string& cells);

/// Makes dataset `f.name` in the group `fields` of a file of this rank's own and writes all its cells. Throws
/// RunError.
template <int D>
void write_gathered(hid_t fields, const Box<D>& global, const FieldHandle<D>& f, const std::string& cells);

}  // namespace isohalo
