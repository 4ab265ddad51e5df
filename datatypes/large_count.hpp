#pragma once
/// MPI's calls with counts of 64 bits, the same under every MPI: MPI 4 has them (`_c`); MPI 3 is given counts that
/// fit into its int as they are, and larger ones as one element of a larger datatype. All return MPI's codes. Local
/// or collective as MPI's own, and with their arguments.

#include <mpi.h>

#include <cstddef>
#include <cstring>

namespace isohalo::mpi {

static_assert(sizeof(MPI_Aint) >= 8 && sizeof(MPI_Count) >= 8, "isohalo needs an MPI with addresses of 64 bits");

namespace detail {

/// What MPI 3 does with counts beyond `limit`, which are beyond an int for all but tests. `limit` is at least 2.
/// The caller frees the type that is made; its extent is rounded up to its alignment where MPI does that of a
/// structure.

/// `count` elements in a row.
int make_contiguous(MPI_Count count, MPI_Datatype type, MPI_Datatype* made, MPI_Count limit);
/// `count` elements, `stride` bytes apart.
int make_strided(MPI_Count count, MPI_Count stride, MPI_Datatype type, MPI_Datatype* made, MPI_Count limit);
/// As many elements of types[k] as lengths[k] from byte displacements[k] on; with a null `types` of `type` all of
/// them. More than `limit` blocks are MPI_ERR_COUNT.
int make_blocks(MPI_Count blocks, const MPI_Count lengths[], const MPI_Count displacements[],
                const MPI_Datatype types[], MPI_Datatype type, MPI_Datatype* made, MPI_Count limit);
/// MPI_Pack and MPI_Unpack part by part, each of at most `limit` bytes and elements; a single element that is
/// larger is MPI_ERR_COUNT.
int pack_parts(const void* data, MPI_Count count, MPI_Datatype type, void* buffer, MPI_Count size, MPI_Count* at,
               MPI_Comm comm, MPI_Count limit);
int unpack_parts(const void* buffer, MPI_Count size, MPI_Count* at, void* data, MPI_Count count, MPI_Datatype type,
                 MPI_Comm comm, MPI_Count limit);
int reduce_parts(const void* in, void* in_out, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Count limit);

}  // namespace detail

#if MPI_VERSION >= 4

// A call, not a reference to the function: libisohalo_mpi.so binds calls when they are made, and is loaded where
// there is no MPI.
#define ISOHALO_FORWARDS(name, mpi_name) \
  template <class... A>                  \
  int name(A... arguments) {             \
    return mpi_name(arguments...);       \
  }
ISOHALO_FORWARDS(isend, MPI_Isend_c)
ISOHALO_FORWARDS(irecv, MPI_Irecv_c)
ISOHALO_FORWARDS(imrecv, MPI_Imrecv_c)
ISOHALO_FORWARDS(ibcast, MPI_Ibcast_c)
ISOHALO_FORWARDS(unpack, MPI_Unpack_c)
ISOHALO_FORWARDS(reduce_local, MPI_Reduce_local_c)
ISOHALO_FORWARDS(get_elements, MPI_Get_elements_c)
ISOHALO_FORWARDS(type_size, MPI_Type_size_c)
ISOHALO_FORWARDS(type_get_extent, MPI_Type_get_extent_c)
ISOHALO_FORWARDS(type_get_true_extent, MPI_Type_get_true_extent_c)
ISOHALO_FORWARDS(type_contiguous, MPI_Type_contiguous_c)
ISOHALO_FORWARDS(type_create_resized, MPI_Type_create_resized_c)
ISOHALO_FORWARDS(type_create_hindexed, MPI_Type_create_hindexed_c)
ISOHALO_FORWARDS(type_create_hindexed_block, MPI_Type_create_hindexed_block_c)
ISOHALO_FORWARDS(type_create_struct, MPI_Type_create_struct_c)
#undef ISOHALO_FORWARDS

/// MPI_Pack_c, which in MPICH 4.0.2 leaves out the end of contiguous derived types, once some hundreds of types
/// live in the process: then their bytes. MPI_ERR_INTERN where there is no knowing them.
inline int pack(const void* data, MPI_Count count, MPI_Datatype type, void* buffer, MPI_Count size, MPI_Count* at,
                MPI_Comm comm) {
  const MPI_Count begin = *at;
  MPI_Count bytes = 0, low = 0, extent = 0, span = 0;
  int code = MPI_Pack_c(data, count, type, buffer, size, at, comm);
  if (code == MPI_SUCCESS) code = MPI_Type_size_c(type, &bytes);
  if (code != MPI_SUCCESS || *at - begin >= count * bytes) return code;
  if (code = MPI_Type_get_extent_c(type, &low, &extent); code != MPI_SUCCESS) return code;
  if (code = MPI_Type_get_true_extent_c(type, &low, &span); code != MPI_SUCCESS) return code;
  if (span != bytes || (count > 1 && extent != bytes) || size - begin < count * bytes) return MPI_ERR_INTERN;
  std::memcpy(static_cast<char*>(buffer) + begin, static_cast<const char*>(data) + low,
              static_cast<std::size_t>(count * bytes));
  *at = begin + count * bytes;
  return MPI_SUCCESS;
}
/// From this rank to itself or another, without a status.
inline int sendrecv(const void* out, MPI_Count out_count, MPI_Datatype out_type, int to, void* in,
                    MPI_Count in_count, MPI_Datatype in_type, int from, int tag, MPI_Comm comm) {
  return MPI_Sendrecv_c(out, out_count, out_type, to, tag, in, in_count, in_type, from, tag, comm,
                        MPI_STATUS_IGNORE);
}
/// How it was made: MPI_COMBINER_NAMED and so on. (MPI 4's call without _c refuses types made with _c.)
inline int type_get_combiner(MPI_Datatype type, int* combiner) {
  MPI_Count integers = 0, addresses = 0, large = 0, types = 0;
  return MPI_Type_get_envelope_c(type, &integers, &addresses, &large, &types, combiner);
}
/// Blocks of one element.
inline int type_create_hvector(MPI_Count count, MPI_Count stride, MPI_Datatype type, MPI_Datatype* made) {
  return MPI_Type_create_hvector_c(count, 1, stride, type, made);
}

#else

namespace detail {

inline constexpr MPI_Count kMostInt = 0x7fffffff;
inline bool fits(MPI_Count count) {
  return count <= kMostInt;
}
int isend_large(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                MPI_Request* request);
int irecv_large(void* data, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                MPI_Request* request);

}  // namespace detail

inline int isend(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                 MPI_Request* request) {
  if (!detail::fits(count)) return detail::isend_large(data, count, type, to, tag, comm, request);
  return MPI_Isend(data, static_cast<int>(count), type, to, tag, comm, request);
}
inline int irecv(void* data, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                 MPI_Request* request) {
  if (!detail::fits(count)) return detail::irecv_large(data, count, type, from, tag, comm, request);
  return MPI_Irecv(data, static_cast<int>(count), type, from, tag, comm, request);
}
int imrecv(void* data, MPI_Count count, MPI_Datatype type, MPI_Message* message, MPI_Request* request);
int ibcast(void* data, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request);
int sendrecv(const void* out, MPI_Count out_count, MPI_Datatype out_type, int to, void* in, MPI_Count in_count,
             MPI_Datatype in_type, int from, int tag, MPI_Comm comm);

inline int pack(const void* data, MPI_Count count, MPI_Datatype type, void* buffer, MPI_Count size, MPI_Count* at,
                MPI_Comm comm) {
  return detail::pack_parts(data, count, type, buffer, size, at, comm, detail::kMostInt);
}
inline int unpack(const void* buffer, MPI_Count size, MPI_Count* at, void* data, MPI_Count count, MPI_Datatype type,
                  MPI_Comm comm) {
  return detail::unpack_parts(buffer, size, at, data, count, type, comm, detail::kMostInt);
}
inline int reduce_local(const void* in, void* in_out, MPI_Count count, MPI_Datatype type, MPI_Op op) {
  return detail::reduce_parts(in, in_out, count, type, op, detail::kMostInt);
}
inline int get_elements(const MPI_Status* status, MPI_Datatype type, MPI_Count* elements) {
  return MPI_Get_elements_x(status, type, elements);
}

inline int type_size(MPI_Datatype type, MPI_Count* bytes) {
  return MPI_Type_size_x(type, bytes);
}
inline int type_get_extent(MPI_Datatype type, MPI_Count* low, MPI_Count* extent) {
  return MPI_Type_get_extent_x(type, low, extent);
}
inline int type_get_true_extent(MPI_Datatype type, MPI_Count* low, MPI_Count* extent) {
  return MPI_Type_get_true_extent_x(type, low, extent);
}
inline int type_get_combiner(MPI_Datatype type, int* combiner) {
  int integers = 0, addresses = 0, types = 0;
  return MPI_Type_get_envelope(type, &integers, &addresses, &types, combiner);
}
inline int type_contiguous(MPI_Count count, MPI_Datatype type, MPI_Datatype* made) {
  return detail::make_contiguous(count, type, made, detail::kMostInt);
}
inline int type_create_resized(MPI_Datatype type, MPI_Count low, MPI_Count extent, MPI_Datatype* made) {
  return MPI_Type_create_resized(type, static_cast<MPI_Aint>(low), static_cast<MPI_Aint>(extent), made);
}
inline int type_create_hvector(MPI_Count count, MPI_Count stride, MPI_Datatype type, MPI_Datatype* made) {
  return detail::make_strided(count, stride, type, made, detail::kMostInt);
}
inline int type_create_hindexed(MPI_Count blocks, const MPI_Count lengths[], const MPI_Count displacements[],
                                MPI_Datatype type, MPI_Datatype* made) {
  return detail::make_blocks(blocks, lengths, displacements, nullptr, type, made, detail::kMostInt);
}
int type_create_hindexed_block(MPI_Count blocks, MPI_Count length, const MPI_Count displacements[],
                               MPI_Datatype type, MPI_Datatype* made);
inline int type_create_struct(MPI_Count blocks, const MPI_Count lengths[], const MPI_Count displacements[],
                              const MPI_Datatype types[], MPI_Datatype* made) {
  return detail::make_blocks(blocks, lengths, displacements, types, MPI_DATATYPE_NULL, made, detail::kMostInt);
}

#endif

}  // namespace isohalo::mpi
