/// The C interface of the isomorphic collectives: arguments in, IsoComm does the work, error codes out.

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "datatypes/datatype.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/c/handles.hpp"
#include "framework/isohalo.h"
#include "framework/neighborhood/iso_comm.hpp"
#include "framework/neighborhood/offsets.hpp"

using isohalo::Algorithm;
using isohalo::IsoComm;
using isohalo::IsomorphicNeighborhood;
using isohalo::Mesh;
using isohalo::NeighborCall;
using isohalo::NeighborRequest;
using isohalo::detail::freed;
using isohalo::detail::guarded;
using isohalo::detail::HandleTable;
using isohalo::detail::require;

namespace {

struct Neighborhood : IsoComm {
  using IsoComm::IsoComm;
  MPI_Comm user() const { return comm().user(); }
};

struct Request {
  NeighborRequest request;
  isohalo::Communicator comm;
  MPI_Comm user() const { return comm.user(); }
};

HandleTable<Neighborhood, isohalo_neighborhood>& neighborhoods() {
  static HandleTable<Neighborhood, isohalo_neighborhood> table(MPI_ERR_ARG,
                                                               "this is no neighborhood, or one that was freed");
  return table;
}

HandleTable<Request, isohalo_request>& requests() {
  static HandleTable<Request, isohalo_request> table(MPI_ERR_REQUEST, "this is no request, or one that was freed");
  return table;
}

int or_null(int rank) {
  return rank == Mesh::no_rank ? MPI_PROC_NULL : rank;
}

/// Mesh and rank of a Cartesian communicator.
struct Here {
  explicit Here(MPI_Comm cart) : mesh(isohalo::mesh_of(cart)) {
    isohalo::mpi_check(MPI_Comm_rank(cart, &rank), "MPI_Comm_rank");
  }
  std::shared_ptr<const Mesh> mesh;
  int rank = 0;
  std::span<const int> vector(const int relative[]) const {
    require(relative || mesh->dimensions() == 0, MPI_ERR_ARG, "the array of relative coordinates is NULL");
    return {relative, static_cast<std::size_t>(mesh->dimensions())};
  }
};

/// `offsets(d)`: the flat list for d dimensions; throws what is wrong with the arguments of this rank.
template <class Offsets>
int create(MPI_Comm cart, isohalo_neighborhood* iso, Offsets&& offsets) {
  return guarded(cart, [&] {
    const Here here(cart);
    // The first time it is collective, whatever else is wrong on this rank.
    const auto comm = isohalo::Communicator::of(cart);
    require(iso, MPI_ERR_ARG, "the place for the neighborhood is NULL");
    *iso = neighborhoods().add(std::make_unique<Neighborhood>(
        comm, IsomorphicNeighborhood(here.mesh, here.rank, offsets(here.mesh->dimensions()))));
  });
}

int create_generated(MPI_Comm cart, int radius, int with_self, isohalo_neighborhood* iso, bool moore) {
  return create(cart, iso, [&](int d) {
    return isohalo::ball_offsets(d, radius, !moore, with_self ? isohalo::Self::include : isohalo::Self::leave_out);
  });
}

template <class T>
std::span<const T> list(const IsomorphicNeighborhood& n, const T* array) {
  require(array || n.count() == 0, MPI_ERR_ARG, "an array of counts, displacements or types is NULL");
  return {array, static_cast<std::size_t>(n.count())};
}

Algorithm algorithm_of(isohalo_algorithm a) {
  require(a >= ISOHALO_AUTO && a <= ISOHALO_LOGARITHMIC, MPI_ERR_ARG,
          "unknown algorithm: there are ISOHALO_AUTO, _DIRECT, _COMBINING and _LOGARITHMIC");
  return static_cast<Algorithm>(a);
}
static_assert(static_cast<int>(Algorithm::automatic) == ISOHALO_AUTO);
static_assert(static_cast<int>(Algorithm::direct) == ISOHALO_DIRECT);
static_assert(static_cast<int>(Algorithm::combining) == ISOHALO_COMBINING);
static_assert(static_cast<int>(Algorithm::logarithmic) == ISOHALO_LOGARITHMIC);

/// Without a place for a request the call is executed at once.
template <class Make>
int collective(isohalo_neighborhood iso, Make&& make) {
  return guarded(neighborhoods(), iso, [&](const IsoComm& comm) { comm.execute(make(comm.neighbors())); });
}

template <class Make>
int collective(isohalo_neighborhood iso, isohalo_request* r, bool persistent, Make&& make) {
  return guarded(neighborhoods(), iso, [&](const IsoComm& comm) {
    require(r, MPI_ERR_ARG, "the place for the request is NULL");
    *r = nullptr;
    const NeighborCall call = make(comm.neighbors());
    *r = requests().add(
        std::make_unique<Request>(Request{persistent ? comm.prepare(call) : comm.begin(call), comm.comm()}));
  });
}

}  // namespace

int isohalo_cart_relative_rank(MPI_Comm cart, const int relative[], int* rank) {
  return guarded(cart, [&] {
    const Here here(cart);
    require(rank, MPI_ERR_ARG, "the place for the rank is NULL");
    *rank = or_null(here.mesh->relative_rank(here.rank, here.vector(relative)));
  });
}

int isohalo_cart_relative_coord(MPI_Comm cart, int rank, int relative[]) {
  return guarded(cart, [&] {
    const Here here(cart);
    require(rank >= 0 && rank < here.mesh->size(), MPI_ERR_RANK, "the rank is not one of the communicator's");
    here.vector(relative);
    here.mesh->relative_coordinates(here.rank, rank, {relative, static_cast<std::size_t>(here.mesh->dimensions())});
  });
}

int isohalo_cart_relative_shift(MPI_Comm cart, const int relative[], int* source, int* target) {
  return guarded(cart, [&] {
    const Here here(cart);
    require(source && target, MPI_ERR_ARG, "the place for a rank is NULL");
    std::vector<int> back;
    for (int c : here.vector(relative)) {
      require(c != std::numeric_limits<int>::min(), MPI_ERR_ARG,
              "a relative coordinate is -2147483648, which has no opposite");
      back.push_back(-c);
    }
    *target = or_null(here.mesh->relative_rank(here.rank, here.vector(relative)));
    *source = or_null(here.mesh->relative_rank(here.rank, back));
  });
}

int isohalo_neighborhood_create(MPI_Comm cart, int s, const int relative[], isohalo_neighborhood* iso) {
  return create(cart, iso, [&](int d) {
    require(s >= 0, MPI_ERR_ARG, "the number of neighbors is negative");
    require(relative || s == 0, MPI_ERR_ARG, "the array of relative coordinates is NULL");
    return std::span(relative, static_cast<std::size_t>(s) * static_cast<std::size_t>(d));
  });
}

int isohalo_neighborhood_moore(MPI_Comm cart, int radius, int with_self, isohalo_neighborhood* iso) {
  return create_generated(cart, radius, with_self, iso, true);
}

int isohalo_neighborhood_von_neumann(MPI_Comm cart, int radius, int with_self, isohalo_neighborhood* iso) {
  return create_generated(cart, radius, with_self, iso, false);
}

int isohalo_neighborhood_free(isohalo_neighborhood* iso) {
  return freed(neighborhoods(), iso, [](const IsoComm&) {});
}

int isohalo_neighborhood_count(isohalo_neighborhood iso, int* s, int* indegree, int* outdegree) {
  return guarded(neighborhoods(), iso, [&](const IsoComm& comm) {
    const IsomorphicNeighborhood& n = comm.neighbors();
    require(s && indegree && outdegree, MPI_ERR_ARG, "the place for a count is NULL");
    *s = n.count();
    *indegree = n.indegree();
    *outdegree = n.outdegree();
  });
}

int isohalo_neighborhood_get(isohalo_neighborhood iso, int max_s, int sources[], int targets[]) {
  return guarded(neighborhoods(), iso, [&](const IsoComm& comm) {
    const IsomorphicNeighborhood& n = comm.neighbors();
    require(max_s >= 0, MPI_ERR_ARG, "max_s is negative");
    require((sources && targets) || max_s == 0 || n.count() == 0, MPI_ERR_ARG, "an array for ranks is NULL");
    const int m = std::min(max_s, n.count());
    std::transform(n.sources().begin(), n.sources().begin() + m, sources, or_null);
    std::transform(n.targets().begin(), n.targets().begin() + m, targets, or_null);
  });
}

int isohalo_neighborhood_graph_get(isohalo_neighborhood iso, int max_s, int sources[], int targets[]) {
  return guarded(neighborhoods(), iso, [&](const IsoComm& comm) {
    const IsomorphicNeighborhood& n = comm.neighbors();
    require(max_s >= 0, MPI_ERR_ARG, "max_s is negative");
    const std::vector<int> from = n.present_sources(), to = n.present_targets();
    require(max_s == 0 || ((sources || from.empty()) && (targets || to.empty())), MPI_ERR_ARG,
            "an array for ranks is NULL");
    std::copy_n(from.begin(), std::min(static_cast<std::size_t>(max_s), from.size()), sources);
    std::copy_n(to.begin(), std::min(static_cast<std::size_t>(max_s), to.size()), targets);
  });
}

int isohalo_neighborhood_check(isohalo_neighborhood iso) {
  return guarded(neighborhoods(), iso, [](const IsoComm& comm) { comm.check(); });
}

int isohalo_neighborhood_set_algorithm(isohalo_neighborhood iso, isohalo_algorithm algorithm) {
  return guarded(neighborhoods(), iso, [&](IsoComm& comm) { comm.set_algorithm(algorithm_of(algorithm)); });
}

int isohalo_neighborhood_schedule(isohalo_neighborhood iso, isohalo_algorithm algorithm, int* rounds,
                                  long long* volume_blocks) {
  return guarded(neighborhoods(), iso, [&](const IsoComm& comm) {
    const IsomorphicNeighborhood& n = comm.neighbors();
    require(rounds && volume_blocks, MPI_ERR_ARG, "the place for a figure is NULL");
    const auto plan = [&](Algorithm a) {
      return isohalo::plan_neighbor_schedule(n.relative(), n.mesh().dimensions(), a, isohalo::Pattern::personal);
    };
    const Algorithm asked = algorithm_of(algorithm);
    isohalo::NeighborSchedule it = plan(asked == Algorithm::automatic ? Algorithm::direct : asked);
    if (asked == Algorithm::automatic)
      for (Algorithm a : {Algorithm::combining, Algorithm::logarithmic})
        if (isohalo::NeighborSchedule other = plan(a); other.rounds() < it.rounds()) it = std::move(other);
    *rounds = it.rounds();
    *volume_blocks = it.volume();
  });
}

/* The three forms of a collective: blocking, started, persistent. */
#define ISOHALO_ARGUMENTS(...) __VA_ARGS__
#define ISOHALO_COLLECTIVE(name, arguments, call)                                               \
  int isohalo_neighbor_##name(arguments, isohalo_neighborhood iso) {                            \
    return collective(iso, [&](const IsomorphicNeighborhood& n) { return call; });              \
  }                                                                                             \
  int isohalo_ineighbor_##name(arguments, isohalo_neighborhood iso, isohalo_request* r) {       \
    return collective(iso, r, false, [&](const IsomorphicNeighborhood& n) { return call; });    \
  }                                                                                             \
  int isohalo_neighbor_##name##_init(arguments, isohalo_neighborhood iso, isohalo_request* r) { \
    return collective(iso, r, true, [&](const IsomorphicNeighborhood& n) { return call; });     \
  }

ISOHALO_COLLECTIVE(alltoall,
                   ISOHALO_ARGUMENTS(const void* sb, int sn, MPI_Datatype st, void* rb, int rn, MPI_Datatype rt),
                   NeighborCall::alltoall(n, sb, sn, st, rb, rn, rt))
ISOHALO_COLLECTIVE(alltoallv,
                   ISOHALO_ARGUMENTS(const void* sb, const int sn[], const int sd[], MPI_Datatype st, void* rb,
                                     const int rn[], const int rd[], MPI_Datatype rt),
                   NeighborCall::alltoallv(n, sb, list(n, sn), list(n, sd), st, rb, list(n, rn), list(n, rd), rt))
ISOHALO_COLLECTIVE(alltoallw,
                   ISOHALO_ARGUMENTS(const void* sb, const int sn[], const MPI_Aint sd[], const MPI_Datatype st[],
                                     void* rb, const int rn[], const MPI_Aint rd[], const MPI_Datatype rt[]),
                   NeighborCall::alltoallw(n, sb, list(n, sn), list(n, sd), list(n, st), rb, list(n, rn),
                                           list(n, rd), list(n, rt)))
ISOHALO_COLLECTIVE(allgather,
                   ISOHALO_ARGUMENTS(const void* sb, int sn, MPI_Datatype st, void* rb, int rn, MPI_Datatype rt),
                   NeighborCall::allgather(n, sb, sn, st, rb, rn, rt))
ISOHALO_COLLECTIVE(allgatherv,
                   ISOHALO_ARGUMENTS(const void* sb, int sn, MPI_Datatype st, void* rb, const int rn[],
                                     const int rd[], MPI_Datatype rt),
                   NeighborCall::allgatherv(n, sb, sn, st, rb, list(n, rn), list(n, rd), rt))
ISOHALO_COLLECTIVE(allgatherw,
                   ISOHALO_ARGUMENTS(const void* sb, int sn, MPI_Datatype st, void* rb, const int rn[],
                                     const MPI_Aint rd[], const MPI_Datatype rt[]),
                   NeighborCall::allgatherw(n, sb, sn, st, rb, list(n, rn), list(n, rd), list(n, rt)))
ISOHALO_COLLECTIVE(reduce, ISOHALO_ARGUMENTS(const void* sb, void* rb, int count, MPI_Datatype t, MPI_Op op),
                   NeighborCall::reduce(n, sb, rb, count, t, op))
ISOHALO_COLLECTIVE(scatter_reduce,
                   ISOHALO_ARGUMENTS(const void* sb, const int sn[], const MPI_Aint sd[], const MPI_Datatype st[],
                                     void* rb, int count, MPI_Datatype t, MPI_Op op),
                   NeighborCall::scatter_reduce(n, sb, list(n, sn), list(n, sd), list(n, st), rb, count, t, op))

#undef ISOHALO_COLLECTIVE
#undef ISOHALO_ARGUMENTS

int isohalo_start(isohalo_request r) {
  return guarded(requests(), r, [](Request& found) { found.request.start(); });
}

namespace {

/// Completes what `step` completes; a request that is not persistent, or has failed, is freed when it has ended.
template <class Step>
int complete(isohalo_request* r, Step&& step) {
  if (r && !*r) {
    step(nullptr);
    return MPI_SUCCESS;
  }
  const isohalo_request handle = r ? *r : nullptr;
  bool ended = true;
  const int rc = guarded(requests().user(handle), [&] {
    require(r, MPI_ERR_ARG, "the place of the request is NULL");
    ended = step(&requests().known(handle).request);
  });
  if (const Request* found = requests().find(handle); found && ended && !found->request.persistent()) {
    requests().take(handle);
    *r = nullptr;
  }
  return rc;
}

}  // namespace

int isohalo_test(isohalo_request* r, int* flag) {
  if (!flag)
    return guarded(requests().user(r ? *r : nullptr),
                   [] { require(false, MPI_ERR_ARG, "the place for the flag is NULL"); });
  return complete(r, [&](NeighborRequest* request) {
    *flag = 1;
    if (request) *flag = request->test();
    return *flag != 0;
  });
}

int isohalo_wait(isohalo_request* r) {
  return complete(r, [](NeighborRequest* request) {
    if (request) request->wait();
    return true;
  });
}

int isohalo_request_free(isohalo_request* r) {
  return freed(requests(), r, [](Request& last) { last.request.wait(); });
}

int isohalo_type_create_triangular(int count, int firstblock, int blockincrement, int stride, int strideincrement,
                                   MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return guarded(MPI_COMM_NULL, [&] {
    require(newtype, MPI_ERR_ARG, "the place for the datatype is NULL");
    require(oldtype != MPI_DATATYPE_NULL, MPI_ERR_TYPE, "the old datatype is MPI_DATATYPE_NULL");
    *newtype =
        isohalo::triangular_type(count, firstblock, blockincrement, stride, strideincrement, oldtype).release();
  });
}
