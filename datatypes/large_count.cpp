#include "datatypes/large_count.hpp"

#include <algorithm>
#include <vector>

namespace isohalo::mpi {

namespace detail {

namespace {

/// Runs `step` unless an earlier one failed.
template <class Step>
void then(int& rc, const Step& step) {
  if (rc == MPI_SUCCESS) rc = step();
}

void free_type(MPI_Datatype& type) {
  if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
}

/// Of `count` elements one after the other, the data of the first `n`, and of the others.
template <class Part>
int in_parts(MPI_Count count, MPI_Datatype type, MPI_Count most, const Part& part) {
  MPI_Count low = 0, extent = 0;
  int rc = MPI_SUCCESS;
  if (count > most) rc = MPI_Type_get_extent_x(type, &low, &extent);
  for (MPI_Count first = 0; rc == MPI_SUCCESS; first += most) {
    const MPI_Count n = std::min(most, count - first);
    rc = part(static_cast<MPI_Aint>(first * extent), static_cast<int>(n));
    if (count - first <= most) break;
  }
  return rc;
}

/// As many elements as pack into `limit` bytes; 0: not even one.
int most_packed(MPI_Count count, MPI_Datatype type, MPI_Count limit, MPI_Count* most) {
  MPI_Count bytes = 0;
  const int rc = MPI_Type_size_x(type, &bytes);
  *most = bytes > 0 ? limit / bytes : limit;
  if (count <= *most) *most = std::max<MPI_Count>(count, 1);
  return rc;
}

const char* moved(const void* address, MPI_Aint bytes) {
  return static_cast<const char*>(address) + bytes;
}
char* moved(void* address, MPI_Aint bytes) {
  return static_cast<char*>(address) + bytes;
}

}  // namespace

int make_contiguous(MPI_Count count, MPI_Datatype type, MPI_Datatype* made, MPI_Count limit) {
  if (count <= limit) return MPI_Type_contiguous(static_cast<int>(count), type, made);
  MPI_Count low = 0, extent = 0;
  int rc = MPI_Type_get_extent_x(type, &low, &extent);
  then(rc, [&] { return make_strided(count, extent, type, made, limit); });
  return rc;
}

int make_strided(MPI_Count count, MPI_Count stride, MPI_Datatype type, MPI_Datatype* made, MPI_Count limit) {
  const auto row = [&](MPI_Count n, MPI_Datatype* m) {
    return MPI_Type_create_hvector(static_cast<int>(n), 1, static_cast<MPI_Aint>(stride), type, m);
  };
  if (count <= limit) return row(count, made);
  // Groups of `limit`, groups of these by strides (one may be shorter than an element), and what is left over.
  const MPI_Count groups = count / limit, rest = count % limit;
  MPI_Datatype group = MPI_DATATYPE_NULL, parts[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
  int rc = row(limit, &group);
  then(rc, [&] { return make_strided(groups, limit * stride, group, &parts[0], limit); });
  if (rest == 0) {
    *made = parts[0];
  } else {
    then(rc, [&] { return row(rest, &parts[1]); });
    const int ones[2] = {1, 1};
    const MPI_Aint places[2] = {0, static_cast<MPI_Aint>(groups * limit * stride)};
    then(rc, [&] { return MPI_Type_create_struct(2, ones, places, parts, made); });
    free_type(parts[0]);
    free_type(parts[1]);
  }
  free_type(group);
  return rc;
}

int make_blocks(MPI_Count blocks, const MPI_Count lengths[], const MPI_Count displacements[],
                const MPI_Datatype types[], MPI_Datatype type, MPI_Datatype* made, MPI_Count limit) {
  if (blocks < 0 || blocks > limit) return MPI_ERR_COUNT;
  const int n = static_cast<int>(blocks);
  const auto size = static_cast<std::size_t>(static_cast<unsigned>(n));
  std::vector<MPI_Aint> places(size);
  std::copy_n(displacements, size, places.begin());
  std::vector<int> counts(size, 1);
  if (std::all_of(lengths, lengths + size, [&](MPI_Count l) { return l <= limit; })) {
    std::transform(lengths, lengths + size, counts.begin(), [](MPI_Count l) { return static_cast<int>(l); });
    return types ? MPI_Type_create_struct(n, counts.data(), places.data(), types, made)
                 : MPI_Type_create_hindexed(n, counts.data(), places.data(), type, made);
  }
  std::vector<MPI_Datatype> whole(size, MPI_DATATYPE_NULL);
  int rc = MPI_SUCCESS;
  for (std::size_t k = 0; k < size; ++k)
    then(rc, [&] { return make_contiguous(lengths[k], types ? types[k] : type, &whole[k], limit); });
  then(rc, [&] { return MPI_Type_create_struct(n, counts.data(), places.data(), whole.data(), made); });
  for (MPI_Datatype& t : whole) free_type(t);
  return rc;
}

int pack_parts(const void* data, MPI_Count count, MPI_Datatype type, void* buffer, MPI_Count size, MPI_Count* at,
               MPI_Comm comm, MPI_Count limit) {
  MPI_Count most = 0;
  if (const int rc = most_packed(count, type, limit, &most); rc != MPI_SUCCESS) return rc;
  if (most == 0) return MPI_ERR_COUNT;
  return in_parts(count, type, most, [&](MPI_Aint from, int n) {
    int room = static_cast<int>(std::min(size - *at, limit)), used = 0;
    const int rc =
        MPI_Pack(moved(data, from), n, type, moved(buffer, static_cast<MPI_Aint>(*at)), room, &used, comm);
    *at += used;
    return rc;
  });
}

int unpack_parts(const void* buffer, MPI_Count size, MPI_Count* at, void* data, MPI_Count count, MPI_Datatype type,
                 MPI_Comm comm, MPI_Count limit) {
  MPI_Count most = 0;
  if (const int rc = most_packed(count, type, limit, &most); rc != MPI_SUCCESS) return rc;
  if (most == 0) return MPI_ERR_COUNT;
  return in_parts(count, type, most, [&](MPI_Aint to, int n) {
    int there = static_cast<int>(std::min(size - *at, limit)), used = 0;
    const int rc =
        MPI_Unpack(moved(buffer, static_cast<MPI_Aint>(*at)), there, &used, moved(data, to), n, type, comm);
    *at += used;
    return rc;
  });
}

int reduce_parts(const void* in, void* in_out, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Count limit) {
  return in_parts(count, type, limit, [&](MPI_Aint at, int n) {
    return MPI_Reduce_local(moved(in, at), moved(in_out, at), n, type, op);
  });
}

}  // namespace detail

#if MPI_VERSION < 4

namespace {

/// Calls `use(count, type)` with these, or with one element of a larger type.
template <class Use>
int as_int(MPI_Count count, MPI_Datatype type, const Use& use) {
  if (detail::fits(count)) return use(static_cast<int>(count), type);
  MPI_Datatype large = MPI_DATATYPE_NULL;
  int rc = detail::make_contiguous(count, type, &large, detail::kMostInt);
  if (rc != MPI_SUCCESS) return rc;
  rc = MPI_Type_commit(&large);
  if (rc == MPI_SUCCESS) rc = use(1, large);
  MPI_Type_free(&large);  // a message under way keeps it
  return rc;
}

}  // namespace

int detail::isend_large(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                        MPI_Request* request) {
  return as_int(count, type, [&](int n, MPI_Datatype t) { return MPI_Isend(data, n, t, to, tag, comm, request); });
}

int detail::irecv_large(void* data, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                        MPI_Request* request) {
  return as_int(count, type,
                [&](int n, MPI_Datatype t) { return MPI_Irecv(data, n, t, from, tag, comm, request); });
}

int imrecv(void* data, MPI_Count count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  return as_int(count, type, [&](int n, MPI_Datatype t) { return MPI_Imrecv(data, n, t, message, request); });
}

int ibcast(void* data, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return as_int(count, type, [&](int n, MPI_Datatype t) { return MPI_Ibcast(data, n, t, root, comm, request); });
}

int sendrecv(const void* out, MPI_Count out_count, MPI_Datatype out_type, int to, void* in, MPI_Count in_count,
             MPI_Datatype in_type, int from, int tag, MPI_Comm comm) {
  return as_int(out_count, out_type, [&](int n, MPI_Datatype t) {
    return as_int(in_count, in_type, [&](int m, MPI_Datatype u) {
      return MPI_Sendrecv(out, n, t, to, tag, in, m, u, from, tag, comm, MPI_STATUS_IGNORE);
    });
  });
}

int type_create_hindexed_block(MPI_Count blocks, MPI_Count length, const MPI_Count displacements[],
                               MPI_Datatype type, MPI_Datatype* made) {
  if (blocks < 0) return MPI_ERR_COUNT;
  if (detail::fits(blocks) && detail::fits(length)) {
    const std::vector<MPI_Aint> places(displacements, displacements + blocks);
    return MPI_Type_create_hindexed_block(static_cast<int>(blocks), static_cast<int>(length), places.data(), type,
                                          made);
  }
  const std::vector<MPI_Count> lengths(static_cast<std::size_t>(blocks), length);
  return type_create_hindexed(blocks, lengths.data(), displacements, type, made);
}

#endif

}  // namespace isohalo::mpi
