/// What the Fortran module calls: the C interface for handles of Fortran's MPI and for Fortran's array descriptors,
/// whose shape is checked here. Extents are in C order, the reverse of Fortran's.

#include <ISO_Fortran_binding.h>
#include <mpi.h>

#include <string>
#include <vector>

#include "framework/c/handles.hpp"
#include "framework/isohalo.h"

using isohalo::detail::guarded;

namespace {

/// The first element of an array whose last `d` dimensions are owned cells with ghost layers; dimensions before
/// them are components of a cell, `bytes` together. Throws ArgumentError for any other.
void* checked(const CFI_cdesc_t& a, int d, const long long owned[], int width, long long bytes, const char* what) {
  const auto refuse = [&](const std::string& text) {
    throw isohalo::ArgumentError(MPI_ERR_BUFFER, std::string(what) + ": " + text);
  };
  if (!a.base_addr) refuse("the array is not allocated");
  const int components = a.rank - d;
  std::string is, wanted;
  bool fits = components >= 0;
  long long cell = static_cast<long long>(a.elem_len);
  for (int j = 0; j < components; ++j) cell *= a.dim[j].extent;
  for (int j = 0; j < a.rank; ++j) is += (j ? ", " : "") + std::to_string(a.dim[j].extent);
  for (int j = 0; j < d; ++j) {
    const long long extent = owned[d - 1 - j] + 2LL * width;
    wanted += (j ? ", " : "") + std::to_string(extent);
    fits = fits && a.dim[components + j].extent == extent;
  }
  if (!fits)
    refuse("the array has shape (" + is + "), it must have (" + wanted + "): the owned cells and " +
           std::to_string(width) + " ghost layers on every side");
  if (cell != bytes)
    refuse("a cell of the array has " + std::to_string(cell) + " bytes, it must have " + std::to_string(bytes));
  if (!CFI_is_contiguous(&a)) refuse("the array is a section that is not contiguous in memory");
  return a.base_addr;
}

}  // namespace

extern "C" {

/// `s` < 0: `shape` and `radius`; otherwise `s` offsets. `*bytes`: of a cell.
int isohalo_fortran_halo_create(MPI_Fint cart, const long long owned[], int width, int shape, int radius, int s,
                                const int relative[], int depth, MPI_Fint element, int components, void** halo,
                                long long* bytes) {
  const MPI_Comm comm = MPI_Comm_f2c(cart);
  MPI_Datatype cell = MPI_DATATYPE_NULL;
  const int rc = guarded(comm, [&] {
    isohalo::mpi_check(MPI_Type_contiguous(components, MPI_Type_f2c(element), &cell), "MPI_Type_contiguous");
    isohalo::mpi_check(MPI_Type_commit(&cell), "MPI_Type_commit");
    *bytes = isohalo::layout_of(cell).extent;
  });
  if (rc != MPI_SUCCESS) return rc;
  isohalo_halo made = nullptr;
  const int code =
      s < 0 ? isohalo_halo_create(comm, owned, width, static_cast<isohalo_shape>(shape), radius, depth, cell, &made)
            : isohalo_halo_create_offsets(comm, owned, width, s, relative, depth, cell, &made);
  MPI_Type_free(&cell);
  *halo = made;
  return code;
}

int isohalo_fortran_halo_start(MPI_Fint cart, void* halo, const CFI_cdesc_t* array, int d, const long long owned[],
                               int width, long long bytes) {
  void* first = nullptr;
  const int rc =
      guarded(MPI_Comm_f2c(cart), [&] { first = checked(*array, d, owned, width, bytes, "halo exchange"); });
  return rc == MPI_SUCCESS ? isohalo_halo_start(static_cast<isohalo_halo>(halo), first) : rc;
}

/// Of one number per cell; of `owned[0]` numbers in a range when `cells` is 0.
int isohalo_fortran_reducer_create(MPI_Fint comm, int cells, const long long owned[], int width, int op,
                                   void** reducer) {
  isohalo_reducer made = nullptr;
  const auto kind = static_cast<isohalo_reduction>(op);
  const int rc = cells ? isohalo_reducer_create_cells(MPI_Comm_f2c(comm), owned, width, kind, &made)
                       : isohalo_reducer_create(MPI_Comm_f2c(comm), owned[0], kind, &made);
  *reducer = made;
  return rc;
}

int isohalo_fortran_reducer_start(MPI_Fint comm, void* reducer, const CFI_cdesc_t* array, int d,
                                  const long long owned[], int width) {
  const void* first = nullptr;
  const bool none = d == 1 && width == 0 && owned[0] == 0;  // an empty range
  const int rc = guarded(MPI_Comm_f2c(comm), [&] {
    if (!none) first = checked(*array, d, owned, width, sizeof(double), "reduction");
  });
  return rc == MPI_SUCCESS
             ? isohalo_reducer_start(static_cast<isohalo_reducer>(reducer), static_cast<const double*>(first))
             : rc;
}

/// MPI_SUCCESS between MPI_Init and MPI_Finalize; before and after, where MPI would end the program, an error.
int isohalo_fortran_ready() {
  return guarded(MPI_COMM_NULL, [] {});
}

/// An error that the module itself has found, on its way to isohalo_error_text. `text`: `length` characters.
int isohalo_fortran_refuse(const char* text, int length) {
  return isohalo::detail::report(MPI_COMM_NULL, MPI_ERR_ARG,
                                 std::string(text, static_cast<std::size_t>(length)).c_str());
}
}
