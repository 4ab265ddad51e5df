#include "framework/neighborhood/neighbor_call.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"

namespace isohalo {

ArgumentError current_argument_error() {
  try {
    throw;
  } catch (const ArgumentError& e) {
    return e;
  } catch (const MpiError& e) {
    return {e.mpi_code(), e.what()};
  } catch (const UsageError& e) {
    return {MPI_ERR_ARG, e.what()};
  } catch (const std::bad_alloc&) {
    return {MPI_ERR_NO_MEM, "out of memory"};
  } catch (const std::exception& e) {
    return {MPI_ERR_OTHER, e.what()};
  }
}

TypeLayout layout_of(MPI_Datatype type) {
  require_mpi();
  TypeLayout l;
  MPI_Count size = 0, low = 0, extent = 0, true_low = 0, true_extent = 0;
  mpi_check(mpi::type_size(type, &size), "MPI_Type_size_c");
  mpi_check(mpi::type_get_extent(type, &low, &extent), "MPI_Type_get_extent_c");
  mpi_check(mpi::type_get_true_extent(type, &true_low, &true_extent), "MPI_Type_get_true_extent_c");
  int combiner = 0;
  mpi_check(mpi::type_get_combiner(type, &combiner), "MPI_Type_get_envelope_c");
  l.size = size, l.extent = extent, l.true_low = true_low, l.true_extent = true_extent;
  l.predefined = combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
                 combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
  return l;
}

namespace {

/// Addresses are numbers here: displacements may be absolute, from MPI_BOTTOM.
std::byte* at(const void* base, std::int64_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(bytes));
}

/// One side of a call; collects the blocks of neighbors that exist.
class Side {
 public:
  Side(const char* function, const char* name, std::span<const int> ranks)
      : function_(function), name_(name), ranks_(ranks) {}

  std::vector<Block> regular(const void* base, std::int64_t count, MPI_Datatype type) const {
    check_buffer(base, count, type);
    const std::int64_t apart = count * layout_of(type).extent;
    std::vector<Block> blocks;
    blocks.reserve(ranks_.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      blocks.push_back({at(base, static_cast<std::int64_t>(i) * apart), count, type});
    return blocks;
  }

  std::vector<Block> places(const void* base, std::span<const int> counts, std::span<const int> places,
                            MPI_Datatype type) const {
    check_length("counts", counts.size());
    check_length("displacements", places.size());
    check_buffer(base, 0, type);
    const TypeLayout layout = layout_of(type);
    const std::int64_t extent = layout.extent;
    for (std::size_t i = 0; !base && layout.predefined && i < ranks_.size(); ++i)
      if (ranks_[i] != Mesh::no_rank && counts[i] > 0) refuse_null();
    std::vector<Block> blocks;
    blocks.reserve(ranks_.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i) add(blocks, i, {at(base, places[i] * extent), counts[i], type});
    return blocks;
  }

  std::vector<Block> displacements(const void* base, std::span<const int> counts, std::span<const MPI_Aint> bytes,
                                   std::span<const MPI_Datatype> types) const {
    check_length("counts", counts.size());
    check_length("displacements", bytes.size());
    check_length("types", types.size());
    if (base == MPI_IN_PLACE) check_buffer(base, 0, MPI_BYTE);
    std::vector<Block> blocks;
    blocks.reserve(ranks_.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i) add(blocks, i, {at(base, bytes[i]), counts[i], types[i]});
    return blocks;
  }

  /// A buffer that starts at `base`; a null one can only be MPI_BOTTOM under a type with absolute addresses.
  void check_buffer(const void* base, std::int64_t count, MPI_Datatype type) const {
    check(-1, count, type);
    if (base == MPI_IN_PLACE)
      throw ArgumentError(MPI_ERR_BUFFER, std::string(function_) + ": MPI_IN_PLACE has no meaning as " + name_ +
                                              " buffer: the blocks of neighbors are separate");
    const bool any = std::any_of(ranks_.begin(), ranks_.end(), [](int r) { return r != Mesh::no_rank; });
    if (!base && count > 0 && any && layout_of(type).predefined) refuse_null();
  }

  void check(int block, std::int64_t count, MPI_Datatype type) const {
    const std::string which = block < 0 ? "" : " of block " + std::to_string(block);
    if (count < 0)
      throw ArgumentError(MPI_ERR_COUNT, std::string(function_) + ": the " + name_ + " count" + which + " is " +
                                             std::to_string(count) + "; the least is 0");
    if (type == MPI_DATATYPE_NULL)
      throw ArgumentError(MPI_ERR_TYPE, std::string(function_) + ": the " + name_ + " type" + which +
                                            " is MPI_DATATYPE_NULL: pass a committed type");
  }

 private:
  [[noreturn]] void refuse_null() const {
    throw ArgumentError(MPI_ERR_BUFFER, std::string(function_) + ": the " + name_ + " buffer is NULL");
  }
  void check_length(const char* what, std::size_t n) const {
    if (n != ranks_.size())
      throw ArgumentError(MPI_ERR_ARG, std::string(function_) + ": " + std::to_string(n) + " " + name_ + " " +
                                           what + " for " + std::to_string(ranks_.size()) +
                                           " neighbors: pass one each");
  }
  void add(std::vector<Block>& blocks, std::size_t i, const Block& b) const {
    if (ranks_[i] == Mesh::no_rank) {
      blocks.emplace_back();  // whatever the caller passed for it is not looked at
      return;
    }
    check(static_cast<int>(i), b.count, b.type);
    constexpr std::uintptr_t page = 4096;  // the first is nobody's memory: a NULL buffer, not absolute addresses
    if (b.count > 0 && reinterpret_cast<std::uintptr_t>(b.address) < page && layout_of(b.type).predefined)
      refuse_null();
    blocks.push_back(b);
  }

  const char* function_;
  const char* name_;
  std::span<const int> ranks_;
};

void check_fold(const char* function, const Side& side, const NeighborCall::Fold& fold) {
  side.check_buffer(fold.into.address, fold.into.count, fold.into.type);
  if (fold.op == MPI_OP_NULL)
    throw ArgumentError(MPI_ERR_OP, std::string(function) + ": the operation is MPI_OP_NULL");
}

Block one(const void* send, std::int64_t count, MPI_Datatype type) {
  return {at(send, 0), count, type};
}

/// One block for all targets; nothing is received yet.
NeighborCall to_all(const char* function, const IsomorphicNeighborhood& n, const void* send, std::int64_t count,
                    MPI_Datatype type, bool one_size) {
  Side(function, "send", n.targets()).check_buffer(send, count, type);
  NeighborCall c;
  c.pattern = Pattern::shared;
  c.one_size = one_size;
  c.send = {one(send, count, type)};
  return c;
}

}  // namespace

NeighborCall NeighborCall::alltoall(const IsomorphicNeighborhood& n, const void* send, std::int64_t send_count,
                                    MPI_Datatype send_type, void* receive, std::int64_t receive_count,
                                    MPI_Datatype receive_type) {
  NeighborCall c;
  c.send = Side("alltoall", "send", n.targets()).regular(send, send_count, send_type);
  c.receive = Side("alltoall", "receive", n.sources()).regular(receive, receive_count, receive_type);
  return c;
}

NeighborCall NeighborCall::alltoallv(const IsomorphicNeighborhood& n, const void* send, Counts send_counts,
                                     Places send_places, MPI_Datatype send_type, void* receive,
                                     Counts receive_counts, Places receive_places, MPI_Datatype receive_type) {
  NeighborCall c;
  c.one_size = false;
  c.send = Side("alltoallv", "send", n.targets()).places(send, send_counts, send_places, send_type);
  c.receive =
      Side("alltoallv", "receive", n.sources()).places(receive, receive_counts, receive_places, receive_type);
  return c;
}

NeighborCall NeighborCall::alltoallw(const IsomorphicNeighborhood& n, const void* send, Counts send_counts,
                                     Displacements send_displacements, Types send_types, void* receive,
                                     Counts receive_counts, Displacements receive_displacements,
                                     Types receive_types) {
  NeighborCall c;
  c.one_size = false;
  c.send = Side("alltoallw", "send", n.targets()).displacements(send, send_counts, send_displacements, send_types);
  c.receive = Side("alltoallw", "receive", n.sources())
                  .displacements(receive, receive_counts, receive_displacements, receive_types);
  return c;
}

NeighborCall NeighborCall::allgather(const IsomorphicNeighborhood& n, const void* send, std::int64_t send_count,
                                     MPI_Datatype send_type, void* receive, std::int64_t receive_count,
                                     MPI_Datatype receive_type) {
  NeighborCall c = to_all("allgather", n, send, send_count, send_type, true);
  c.receive = Side("allgather", "receive", n.sources()).regular(receive, receive_count, receive_type);
  return c;
}

NeighborCall NeighborCall::allgatherv(const IsomorphicNeighborhood& n, const void* send, std::int64_t send_count,
                                      MPI_Datatype send_type, void* receive, Counts receive_counts,
                                      Places receive_places, MPI_Datatype receive_type) {
  NeighborCall c = to_all("allgatherv", n, send, send_count, send_type, false);
  c.receive =
      Side("allgatherv", "receive", n.sources()).places(receive, receive_counts, receive_places, receive_type);
  return c;
}

NeighborCall NeighborCall::allgatherw(const IsomorphicNeighborhood& n, const void* send, std::int64_t send_count,
                                      MPI_Datatype send_type, void* receive, Counts receive_counts,
                                      Displacements receive_displacements, Types receive_types) {
  NeighborCall c = to_all("allgatherw", n, send, send_count, send_type, false);
  c.receive = Side("allgatherw", "receive", n.sources())
                  .displacements(receive, receive_counts, receive_displacements, receive_types);
  return c;
}

NeighborCall NeighborCall::reduce(const IsomorphicNeighborhood& n, const void* send, void* receive,
                                  std::int64_t count, MPI_Datatype type, MPI_Op op) {
  const Fold fold{one(receive, count, type), op};
  check_fold("reduce", Side("reduce", "vector", n.sources()), fold);
  NeighborCall c = to_all("reduce", n, send, count, type, true);
  c.fold = fold;
  return c;
}

NeighborCall NeighborCall::scatter_reduce(const IsomorphicNeighborhood& n, const void* send, Counts send_counts,
                                          Displacements send_displacements, Types send_types, void* receive,
                                          std::int64_t count, MPI_Datatype type, MPI_Op op) {
  NeighborCall c;
  c.fold = {one(receive, count, type), op};
  check_fold("scatter_reduce", Side("scatter_reduce", "vector", n.sources()), c.fold);
  c.send =
      Side("scatter_reduce", "send", n.targets()).displacements(send, send_counts, send_displacements, send_types);
  c.one_size = false;
  return c;
}

}  // namespace isohalo
