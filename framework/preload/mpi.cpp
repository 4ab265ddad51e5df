/// libisohalo_mpi.so: preloaded, it does MPI's blocking collectives of ranks on one compute node through shared
/// memory, and passes everything else on to MPI (its profiling interface, MPI 4.0, chapter 15).
///
/// Whether a call is taken over depends only on what is equal on all ranks: the communicator, the operation and its
/// type, the number of bytes. Never on how data lie in memory, which may differ: what has no run of bytes is
/// packed.

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "datatypes/error.hpp"
#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/preload/handled.hpp"
#include "framework/preload/process_mpi.hpp"
#include "framework/preload/settings.hpp"

namespace isohalo::preload {

namespace {

/// Passes a call on to MPI and returns its code. Refers to a function object of the caller's.
class Pass {
 public:
  template <class F>
  explicit Pass(const F& f)
      : of_(&f), call_([](const void* of) -> int { return (*static_cast<const F*>(of))(); }) {}
  int operator()() const { return call_(of_); }

 private:
  const void* of_;
  int (*call_)(const void*);
};

/// `count` elements of a type at an address of the caller's.
struct Buffer {
  void* address;
  MPI_Count count;
  MPI_Datatype type;
};

Buffer buffer(const void* address, MPI_Count count, MPI_Datatype type) {
  return {const_cast<void*>(address), count, type};
}

struct Layout {
  std::int64_t bytes = 0;  ///< of the data
  bool dense = false;      ///< they are one run of bytes from the address on
};

/// Nothing: the type is none, or the count negative.
std::optional<Layout> layout_of(const Buffer& b) {
  if (b.type == MPI_DATATYPE_NULL || b.count < 0) return std::nullopt;
  static MPI_Datatype last = MPI_DATATYPE_NULL;  // predefined: it never goes
  static MPI_Count last_size = 0;
  if (b.type == last) return Layout{b.count * last_size, true};
  int combiner = 0;
  MPI_Count size = 0, low = 0, extent = 0, integers = 0, addresses = 0, large = 0, types = 0;
  if (PMPI_Type_size_c(b.type, &size) != MPI_SUCCESS ||
      PMPI_Type_get_extent_c(b.type, &low, &extent) != MPI_SUCCESS ||
      PMPI_Type_get_envelope_c(b.type, &integers, &addresses, &large, &types, &combiner) != MPI_SUCCESS)
    return std::nullopt;
  const bool dense = combiner == MPI_COMBINER_NAMED && low == 0 && size == extent;
  if (dense) last = b.type, last_size = size;
  return Layout{b.count * size, dense};
}

/// What MPI says of a buffer that is none, or is both sides of a call. Local, before any rank waits for this one.
void require_buffer(bool good) {
  if (!good) throw MpiError(MPI_ERR_BUFFER, "libisohalo_mpi: a buffer that is NULL, MPI_IN_PLACE or both sides");
}

/// A buffer at MPI_BOTTOM, as one element of a type that begins where its data do: MPI_Pack of MPICH refuses NULL.
class Grounded {
 public:
  explicit Grounded(const Buffer& b) : buffer_(b) {
    if (b.address || b.count == 0) return;
    MPI_Count low = 0, extent = 0;
    mpi_check(PMPI_Type_get_true_extent_c(b.type, &low, &extent), "MPI_Type_get_true_extent_c");
    const MPI_Count down = -low;
    mpi_check(PMPI_Type_create_hindexed_c(1, &b.count, &down, b.type, &type_), "MPI_Type_create_hindexed_c");
    buffer_ = {reinterpret_cast<void*>(low), 1, type_};
    mpi_check(PMPI_Type_commit(&type_), "MPI_Type_commit");
  }
  ~Grounded() {
    if (type_ != MPI_DATATYPE_NULL) PMPI_Type_free(&type_);
  }
  Grounded(const Grounded&) = delete;
  Grounded& operator=(const Grounded&) = delete;
  const Buffer* operator->() const { return &buffer_; }

 private:
  Buffer buffer_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// The data of a buffer as one run of bytes; those of other types through a copy.
class Bytes {
 public:
  Bytes(const Buffer& b, MPI_Comm comm) : buffer_(b), comm_(comm) {
    const Layout layout = *layout_of(b);
    size_ = static_cast<std::size_t>(layout.bytes);
    require_buffer(b.address != MPI_IN_PLACE && (b.address || size_ == 0 || !layout.dense));
    if (!layout.dense) copy_.resize(size_ + 1);
  }
  std::byte* data() { return copy_.empty() ? static_cast<std::byte*>(buffer_.address) : copy_.data(); }
  std::size_t size() const { return size_; }
  void pack() {
    if (copy_.empty() || size_ == 0) return;
    const Grounded from(buffer_);
    MPI_Count at = 0;
    mpi_check(
        mpi::pack(from->address, from->count, from->type, copy_.data(), static_cast<MPI_Count>(size_), &at, comm_),
        "MPI_Pack_c");
  }
  void unpack() {
    if (copy_.empty() || size_ == 0) return;
    const Grounded to(buffer_);
    MPI_Count at = 0;
    mpi_check(
        PMPI_Unpack_c(copy_.data(), static_cast<MPI_Count>(size_), &at, to->address, to->count, to->type, comm_),
        "MPI_Unpack_c");
  }

 private:
  Buffer buffer_;
  MPI_Comm comm_;
  std::size_t size_ = 0;
  std::vector<std::byte> copy_;
};

/// Where a rank's part of so many bytes lies.
std::byte* part_of(Bytes& all, int rank, std::size_t bytes) {
  return all.data() + static_cast<std::size_t>(rank) * bytes;
}

/// What MPI itself returns when `work` throws: by the communicator's error handler.
template <class Work>
int guarded(MPI_Comm comm, Work&& work) {
  int error = MPI_ERR_OTHER;
  try {
    work();
    return MPI_SUCCESS;
  } catch (const MpiError& e) {
    error = e.mpi_code();
  } catch (const std::bad_alloc&) {
    error = MPI_ERR_NO_MEM;
  }
  PMPI_Comm_call_errhandler(comm, error);
  return error;
}

bool in_range(int root, const ClusterCollectives& c) {
  return root >= 0 && root < c.ranks();
}

bool is_inter(MPI_Comm comm) {
  int inter = 0;
  return comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0;
}

/// Leaves a call to MPI. Its bytes are counted where a report is wanted, as those of calls that are handled;
/// between two groups not where a root's buffer may mean nothing. Asks nothing of a type but its size: threads may
/// come here at once.
int passed_on(Function function, const Buffer& b, MPI_Comm comm, bool rooted, Pass pass) {
  MPI_Count size = 0;
  if (report_wanted() && mpi_is_active() && b.type != MPI_DATATYPE_NULL && b.count > 0 &&
      !(rooted && is_inter(comm)) && PMPI_Type_size_c(b.type, &size) == MPI_SUCCESS)
    count_bytes_passed_on(function, static_cast<std::uint64_t>(b.count * size));
  return pass();
}

/// Passing on a call with arguments that MPI will refuse: the caller's error handler hears what MPI says.
bool refused(Function function, bool good, Reason reason = Reason::arguments) {
  if (!good) count_passed_on(function, reason);
  return !good;
}

/// The combination of a call and its elements, or nothing, for a reason that holds on all ranks.
std::optional<Combine> combine_of(Function f, MPI_Count count, MPI_Datatype type, MPI_Op op) {
  if (refused(f, count >= 0 && type != MPI_DATATYPE_NULL && op != MPI_OP_NULL)) return std::nullopt;
  static std::optional<Combine> last;
  static std::pair<MPI_Datatype, MPI_Op> last_of{MPI_DATATYPE_NULL, MPI_OP_NULL};
  if (std::pair(type, op) != last_of || (last && !last->predefined())) {
    last_of = {MPI_DATATYPE_NULL, MPI_OP_NULL};
    try {
      last = Combine::of(type, op);
    } catch (const MpiError&) {  // no type, or no operation: MPI shall say so
      refused(f, false);
      return std::nullopt;
    }
    last_of = {type, op};
  }
  if (!last) refused(f, false, Reason::operation);
  return last;
}

/// MPI_Gather from `one` to `all`, or MPI_Scatter the other way; `all` is significant on the root alone.
int rooted(Function f, const Buffer& one, Buffer all, int root, MPI_Comm comm, Pass pass) {
  ClusterCollectives* const c = collectives_for(comm, f);
  const auto left = [&] { return passed_on(f, one.address == MPI_IN_PLACE ? all : one, comm, true, pass); };
  if (!c || refused(f, in_range(root, *c))) return left();
  const int me = c->rank();
  const bool in_place = me == root && one.address == MPI_IN_PLACE;
  if (refused(f, (in_place || layout_of(one)) && (me != root || layout_of(all)))) return left();
  return guarded(comm, [&] {
    all.count *= c->ranks();
    std::optional<Bytes> mine, everything;
    if (!in_place) mine.emplace(one, comm);
    if (me == root) everything.emplace(all, comm);
    const std::size_t bytes = me == root ? everything->size() / static_cast<std::size_t>(c->ranks()) : mine->size();
    count_handled(f, bytes);
    require_buffer(!mine || !everything || bytes == 0 || mine->data() != part_of(*everything, me, bytes));
    std::byte *const part = mine ? mine->data() : nullptr, *const whole = everything ? everything->data() : nullptr;
    if (f == Function::gather) {
      (mine ? mine : everything)->pack();
      c->run(Collective::gather(part, bytes, whole, root));
      if (everything) everything->unpack();
    } else {
      if (everything) everything->pack();
      c->run(Collective::scatter(whole, bytes, part, root));
      if (mine) mine->unpack();
    }
  });
}

/// MPI_Allreduce, or MPI_Reduce to `root`, which the other does not look at.
int combined(Function f, const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
             MPI_Comm comm, Pass pass) {
  const bool to_one = f == Function::reduce;
  ClusterCollectives* const c = collectives_for(comm, f);
  const auto left = [&] { return passed_on(f, buffer(send, count, type), comm, to_one, pass); };
  if (!c || (to_one && refused(f, in_range(root, *c)))) return left();
  const auto combine = combine_of(f, count, type, op);
  if (!combine || refused(f, combine->commutes() || c->in_rank_order(), Reason::operation)) return left();
  return guarded(comm, [&] {
    const auto n = static_cast<std::size_t>(count);
    count_handled(f, n * combine->element_bytes());
    const bool here = !to_one || c->rank() == root;
    require_buffer(n == 0 ||
                   (send && (here ? receive && receive != MPI_IN_PLACE && send != receive : send != MPI_IN_PLACE)));
    auto* const to = static_cast<std::byte*>(receive);
    const auto* const from = send == MPI_IN_PLACE ? to : static_cast<const std::byte*>(send);
    c->run(to_one ? Collective::reduce(from, to, n, *combine, root) : Collective::allreduce(from, to, n, *combine));
  });
}

/// As MPI's, of the same names without and with _c. `pass`: what does it when this library does not.
namespace calls {

int barrier(MPI_Comm comm, Pass pass) {
  ClusterCollectives* const c = collectives_for(comm, Function::barrier);
  if (!c) return pass();
  count_handled(Function::barrier, 0);
  return guarded(comm, [&] { c->run(Collective::barrier()); });
}

int bcast(void* address, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, Pass pass) {
  const Buffer data{address, count, type};
  constexpr auto f = Function::bcast;
  ClusterCollectives* const c = collectives_for(comm, f);
  if (!c || refused(f, layout_of(data) && in_range(root, *c))) return passed_on(f, data, comm, true, pass);
  return guarded(comm, [&] {
    Bytes bytes(data, comm);
    count_handled(f, bytes.size());
    if (c->rank() == root) bytes.pack();
    c->run(Collective::broadcast(bytes.data(), bytes.size(), root));
    if (c->rank() != root) bytes.unpack();
  });
}

int reduce(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
           Pass pass) {
  return combined(Function::reduce, send, receive, count, type, op, root, comm, pass);
}

int allreduce(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
              Pass pass) {
  return combined(Function::allreduce, send, receive, count, type, op, 0, comm, pass);
}

int allgather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive,
              MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm, Pass pass) {
  const Buffer one = buffer(send, send_count, send_type);
  Buffer all{receive, receive_count, receive_type};
  constexpr auto f = Function::allgather;
  ClusterCollectives* const c = collectives_for(comm, f);
  if (!c || refused(f, (one.address == MPI_IN_PLACE || layout_of(one)) && layout_of(all)))
    return passed_on(f, all, comm, false, pass);
  return guarded(comm, [&] {
    all.count *= c->ranks();
    Bytes everything(all, comm);
    const std::size_t bytes = everything.size() / static_cast<std::size_t>(c->ranks());
    count_handled(f, bytes);
    std::byte* const place = part_of(everything, c->rank(), bytes);
    if (one.address == MPI_IN_PLACE) {
      everything.pack();
      c->run(Collective::allgather(place, bytes, everything.data()));
    } else {
      Bytes mine(one, comm);
      require_buffer(bytes == 0 || mine.data() != place);
      mine.pack();
      c->run(Collective::allgather(mine.data(), bytes, everything.data()));
    }
    everything.unpack();
  });
}

int gather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
           MPI_Datatype receive_type, int root, MPI_Comm comm, Pass pass) {
  return rooted(Function::gather, buffer(send, send_count, send_type), {receive, receive_count, receive_type}, root,
                comm, pass);
}

int scatter(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
            MPI_Datatype receive_type, int root, MPI_Comm comm, Pass pass) {
  return rooted(Function::scatter, {receive, receive_count, receive_type}, buffer(send, send_count, send_type),
                root, comm, pass);
}

}  // namespace calls

// The functions that are taken over, by their names. The MPI of the program may be another one than that of
// <mpi.h>, with pointers for handles where <mpi.h> has ints: what comes in is words, and goes on as it came unless
// the MPI is the one we know. On Linux every argument here is a register or a place on the stack of the size of a
// word, whatever its type; of a shorter one the rest means nothing.

using Word = std::uintptr_t;
template <class>
struct WordFor {
  using type = Word;
};

template <class A>
A from_word(Word word) {
  if constexpr (std::is_pointer_v<A>)
    return reinterpret_cast<A>(word);
  else
    return static_cast<A>(word);
}

int no_mpi(const char* name) {
  std::fprintf(stderr, "isohalo: error: %s was called and the process has no MPI\n", name);
  return MPI_ERR_OTHER;
}

/// A function of MPI of type Mpi, whose counts are ints or large, done by Ours with large counts.
template <class Mpi, auto Ours>
struct Entry;

template <class... A, auto Ours>
struct Entry<int(A...), Ours> {
  static int call(Function function, const char* name, typename WordFor<A>::type... words) {
    static void* const next = next_function(name);
    if (!next) return no_mpi(name);
    if (process_mpi().ours)
      return Ours(from_word<A>(words)...,
                  Pass([&] { return reinterpret_cast<int (*)(A...)>(next)(from_word<A>(words)...); }));
    count_passed_on(function, Reason::foreign);
    return reinterpret_cast<int (*)(typename WordFor<A>::type...)>(next)(words...);
  }
};

}  // namespace

}  // namespace isohalo::preload

using isohalo::preload::Entry;
using isohalo::preload::Function;
using isohalo::preload::Word;
namespace calls = isohalo::preload::calls;

#pragma GCC visibility push(default)
extern "C" {

// MPI's names, which <mpi.h> has declared with its own handles, are given to the linker alone. `words`: all of a
// function's arguments.
#define ISOHALO_ENTRY(function, name, words, ...)                                                              \
  int isohalo_##name words __asm__("MPI_" #name);                                                              \
  int isohalo_##name words {                                                                                   \
    return Entry<decltype(PMPI_##name), calls::function>::call(Function::function, "MPI_" #name, __VA_ARGS__); \
  }
#define ISOHALO_ENTRIES(function, name, words, ...) \
  ISOHALO_ENTRY(function, name, words, __VA_ARGS__) \
  ISOHALO_ENTRY(function, name##_c, words, __VA_ARGS__)

ISOHALO_ENTRY(barrier, Barrier, (Word comm), comm)
ISOHALO_ENTRIES(bcast, Bcast, (Word a, Word b, Word c, Word d, Word e), a, b, c, d, e)
ISOHALO_ENTRIES(reduce, Reduce, (Word a, Word b, Word c, Word d, Word e, Word f, Word g), a, b, c, d, e, f, g)
ISOHALO_ENTRIES(allreduce, Allreduce, (Word a, Word b, Word c, Word d, Word e, Word f), a, b, c, d, e, f)
ISOHALO_ENTRIES(gather, Gather, (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h), a, b, c, d, e, f,
                g, h)
ISOHALO_ENTRIES(allgather, Allgather, (Word a, Word b, Word c, Word d, Word e, Word f, Word g), a, b, c, d, e, f, g)
ISOHALO_ENTRIES(scatter, Scatter, (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h), a, b, c, d, e,
                f, g, h)
#undef ISOHALO_ENTRIES
#undef ISOHALO_ENTRY

// MPICH's module mpi_f08 calls C's functions by their names where they take data, and PMPI_Barrier: taken over
// here, as other ranks may be in C's.
void isohalo_barrier_f08(const int*, int*) __asm__("mpi_barrier_f08_");
void isohalo_barrier_f08(const int* comm, int* error) {
  static auto* const next =
      reinterpret_cast<void (*)(const int*, int*)>(isohalo::preload::next_function("mpi_barrier_f08_"));
  if (!isohalo::preload::process_mpi().ours && next) return next(comm, error);
  const int code = isohalo_Barrier(static_cast<Word>(*comm));
  if (error) *error = code;
}

int isohalo_finalize() __asm__("MPI_Finalize");
int isohalo_finalize() {
  isohalo::preload::process_mpi();  // a program that has called nothing else hears of its settings
  isohalo::preload::report();
  static auto* const next = reinterpret_cast<int (*)()>(isohalo::preload::next_function("MPI_Finalize"));
  return next ? next() : isohalo::preload::no_mpi("MPI_Finalize");
}

}  // extern "C"
#pragma GCC visibility pop
