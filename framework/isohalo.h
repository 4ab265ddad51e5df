#ifndef ISOHALO_H
#define ISOHALO_H
/* The C interface of isohalo: isomorphic, sparse collectives and halo exchange on Cartesian communicators.
 *
 * Every function returns MPI_SUCCESS or an MPI error code, which goes through the error handler of `cart` first, also
 * after `cart` was freed; isohalo_error_text() says what was wrong. (MPICH 4.0 hands the error of a message that is
 * longer than its receive buffer to the error handler of the world communicator before we see it: a program that
 * wants a code for that must set MPI_ERRORS_RETURN there too.)
 *
 * `cart` is any communicator with a Cartesian topology; it is left as it is. Relative offsets are flat arrays, s x d,
 * dimension 0 first. Absent neighbors are MPI_PROC_NULL and their buffers are untouched. Argument arrays are copied
 * at the call, buffers are read when an operation starts. All memory is host memory. Datatypes may be freed while an
 * operation that uses them is in flight; an MPI_Op that is not predefined must live as long as its request, because
 * MPI has no call that keeps one. Creating neighborhoods, and beginning operations on them, is collective in order
 * over `cart`: in the same order on all ranks of it, without waiting for each other. Arguments, sizes of messages and
 * handles that were freed are errors on the rank that finds them. Ranks that wait for one that has freed its handle,
 * was refused, has other sizes, or has not begun the operation, go on waiting, as in MPI. Lists that differ between ranks are found by
 * isohalo_neighborhood_check, and in every first blocking operation when the environment has ISOHALO_CHECK=communication.
 * Counts and types that are equal on all ranks by the meaning of a call (alltoall, allgather, reduce) must be so on
 * ranks without neighbors, too.
 *
 * Source: "Isomorphic, Sparse MPI-like Collective Communication Operations for Parallel Stencil Computations"
 * (Traeff, Luebbe, Rougier, Hunold 2015), sections 4 and 6.
 */

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#define ISOHALO_ENUM : int /* any value may arrive from C, and is checked */
#else
#define ISOHALO_ENUM
#endif

/* The text of the last error of this process, "" when there was none. Valid until the next error. */
const char* isohalo_error_text(void);

/* --- navigation; local --- */

/* The rank at this rank + relative; off the mesh MPI_PROC_NULL. */
int isohalo_cart_relative_rank(MPI_Comm cart, const int relative[], int* rank);
/* The offset from this rank to `rank`: the shortest, in a periodic dimension the positive one on a tie. */
int isohalo_cart_relative_coord(MPI_Comm cart, int rank, int relative[]);
/* The ranks at this rank - relative and + relative. */
int isohalo_cart_relative_shift(MPI_Comm cart, const int relative[], int* source, int* target);

/* --- neighborhoods --- */

typedef struct isohalo_neighborhood_s* isohalo_neighborhood;

/* Communicates only to duplicate `cart`, the first time. Offsets may repeat, be zero, or be longer than the mesh.
 */
int isohalo_neighborhood_create(MPI_Comm cart, int s, const int relative[], isohalo_neighborhood* iso);
/* All offsets of Chebyshev (moore) or Manhattan (von_neumann) length at most `radius`, row-major. */
int isohalo_neighborhood_moore(MPI_Comm cart, int radius, int with_self, isohalo_neighborhood* iso);
int isohalo_neighborhood_von_neumann(MPI_Comm cart, int radius, int with_self, isohalo_neighborhood* iso);
/* Local; requests that are in flight stay valid. Sets *iso to NULL. */
int isohalo_neighborhood_free(isohalo_neighborhood* iso);
/* s, and the numbers of sources and targets that exist. */
int isohalo_neighborhood_count(isohalo_neighborhood iso, int* s, int* indegree, int* outdegree);
/* The first max_s sources and targets, absent ones as MPI_PROC_NULL. */
int isohalo_neighborhood_get(isohalo_neighborhood iso, int max_s, int sources[], int targets[]);
/* Without absent ones, as MPI_Dist_graph_create_adjacent takes them. */
int isohalo_neighborhood_graph_get(isohalo_neighborhood iso, int max_s, int sources[], int targets[]);
/* Collective: MPI_ERR_TOPOLOGY on all ranks when their lists differ; the text says what differs and where. */
int isohalo_neighborhood_check(isohalo_neighborhood iso);

typedef enum isohalo_algorithm_e ISOHALO_ENUM {
  ISOHALO_AUTO,
  ISOHALO_DIRECT,
  ISOHALO_COMBINING,
  ISOHALO_LOGARITHMIC
} isohalo_algorithm;

/* Equal on all ranks; does not affect existing requests. ISOHALO_AUTO is the default. All give the same results. A
 * combining or logarithmic operation that was started without blocking progresses only inside functions of this
 * library; ISOHALO_AUTO therefore uses the direct algorithm for those. */
int isohalo_neighborhood_set_algorithm(isohalo_neighborhood iso, isohalo_algorithm algorithm);
/* Rounds and blocks sent per rank of an alltoall: figures of the list, the same for every rank and mesh, zero
 * offsets not counted. ISOHALO_AUTO: the algorithm with the fewest rounds. */
int isohalo_neighborhood_schedule(isohalo_neighborhood iso, isohalo_algorithm algorithm, int* rounds,
                                  long long* volume_blocks);

/* --- collectives: block i goes to offset i's target, block i is received from offset i's source ---
 * Displacements of the v forms count extents, those of the w forms and of scatter_reduce bytes. Reductions fold the
 * sources' vectors from the left in list order, absent sources skipped; a rank without sources leaves rb untouched.
 * An operation made by MPI_Op_create must live until the request that uses it has completed (MPI offers no way to
 * hold on to it); datatypes may be freed at once.
 */

int isohalo_neighbor_alltoall(const void* sb, int sn, MPI_Datatype st, void* rb, int rn, MPI_Datatype rt,
                              isohalo_neighborhood iso);
int isohalo_neighbor_alltoallv(const void* sb, const int sn[], const int sd[], MPI_Datatype st, void* rb,
                               const int rn[], const int rd[], MPI_Datatype rt, isohalo_neighborhood iso);
int isohalo_neighbor_alltoallw(const void* sb, const int sn[], const MPI_Aint sd[], const MPI_Datatype st[],
                               void* rb, const int rn[], const MPI_Aint rd[], const MPI_Datatype rt[],
                               isohalo_neighborhood iso);
int isohalo_neighbor_allgather(const void* sb, int sn, MPI_Datatype st, void* rb, int rn, MPI_Datatype rt,
                               isohalo_neighborhood iso);
int isohalo_neighbor_allgatherv(const void* sb, int sn, MPI_Datatype st, void* rb, const int rn[], const int rd[],
                                MPI_Datatype rt, isohalo_neighborhood iso);
int isohalo_neighbor_allgatherw(const void* sb, int sn, MPI_Datatype st, void* rb, const int rn[],
                                const MPI_Aint rd[], const MPI_Datatype rt[], isohalo_neighborhood iso);
int isohalo_neighbor_reduce(const void* sb, void* rb, int n, MPI_Datatype t, MPI_Op op, isohalo_neighborhood iso);
int isohalo_neighbor_scatter_reduce(const void* sb, const int sn[], const MPI_Aint sd[], const MPI_Datatype st[],
                                    void* rb, int n, MPI_Datatype t, MPI_Op op, isohalo_neighborhood iso);

/* --- requests --- */

typedef struct isohalo_request_s* isohalo_request; /* NULL when complete and freed */

/* started when they return */
int isohalo_ineighbor_alltoall(const void* sb, int sn, MPI_Datatype st, void* rb, int rn, MPI_Datatype rt,
                               isohalo_neighborhood iso, isohalo_request* r);
int isohalo_ineighbor_alltoallv(const void* sb, const int sn[], const int sd[], MPI_Datatype st, void* rb,
                                const int rn[], const int rd[], MPI_Datatype rt, isohalo_neighborhood iso,
                                isohalo_request* r);
int isohalo_ineighbor_alltoallw(const void* sb, const int sn[], const MPI_Aint sd[], const MPI_Datatype st[],
                                void* rb, const int rn[], const MPI_Aint rd[], const MPI_Datatype rt[],
                                isohalo_neighborhood iso, isohalo_request* r);
int isohalo_ineighbor_allgather(const void* sb, int sn, MPI_Datatype st, void* rb, int rn, MPI_Datatype rt,
                                isohalo_neighborhood iso, isohalo_request* r);
int isohalo_ineighbor_allgatherv(const void* sb, int sn, MPI_Datatype st, void* rb, const int rn[], const int rd[],
                                 MPI_Datatype rt, isohalo_neighborhood iso, isohalo_request* r);
int isohalo_ineighbor_allgatherw(const void* sb, int sn, MPI_Datatype st, void* rb, const int rn[],
                                 const MPI_Aint rd[], const MPI_Datatype rt[], isohalo_neighborhood iso,
                                 isohalo_request* r);
int isohalo_ineighbor_reduce(const void* sb, void* rb, int n, MPI_Datatype t, MPI_Op op, isohalo_neighborhood iso,
                             isohalo_request* r);
int isohalo_ineighbor_scatter_reduce(const void* sb, const int sn[], const MPI_Aint sd[], const MPI_Datatype st[],
                                     void* rb, int n, MPI_Datatype t, MPI_Op op, isohalo_neighborhood iso,
                                     isohalo_request* r);

/* persistent, inactive when they return */
int isohalo_neighbor_alltoall_init(const void* sb, int sn, MPI_Datatype st, void* rb, int rn, MPI_Datatype rt,
                                   isohalo_neighborhood iso, isohalo_request* r);
int isohalo_neighbor_alltoallv_init(const void* sb, const int sn[], const int sd[], MPI_Datatype st, void* rb,
                                    const int rn[], const int rd[], MPI_Datatype rt, isohalo_neighborhood iso,
                                    isohalo_request* r);
int isohalo_neighbor_alltoallw_init(const void* sb, const int sn[], const MPI_Aint sd[], const MPI_Datatype st[],
                                    void* rb, const int rn[], const MPI_Aint rd[], const MPI_Datatype rt[],
                                    isohalo_neighborhood iso, isohalo_request* r);
int isohalo_neighbor_allgather_init(const void* sb, int sn, MPI_Datatype st, void* rb, int rn, MPI_Datatype rt,
                                    isohalo_neighborhood iso, isohalo_request* r);
int isohalo_neighbor_allgatherv_init(const void* sb, int sn, MPI_Datatype st, void* rb, const int rn[],
                                     const int rd[], MPI_Datatype rt, isohalo_neighborhood iso, isohalo_request* r);
int isohalo_neighbor_allgatherw_init(const void* sb, int sn, MPI_Datatype st, void* rb, const int rn[],
                                     const MPI_Aint rd[], const MPI_Datatype rt[], isohalo_neighborhood iso,
                                     isohalo_request* r);
int isohalo_neighbor_reduce_init(const void* sb, void* rb, int n, MPI_Datatype t, MPI_Op op,
                                 isohalo_neighborhood iso, isohalo_request* r);
int isohalo_neighbor_scatter_reduce_init(const void* sb, const int sn[], const MPI_Aint sd[],
                                         const MPI_Datatype st[], void* rb, int n, MPI_Datatype t, MPI_Op op,
                                         isohalo_neighborhood iso, isohalo_request* r);

int isohalo_start(isohalo_request r);
/* NULL and inactive requests are complete. A completed persistent request stays, others are freed and set to NULL.
 */
int isohalo_test(isohalo_request* r, int* flag);
int isohalo_wait(isohalo_request* r);
/* One that is active is completed first. Sets *r to NULL. */
int isohalo_request_free(isohalo_request* r);

/* --- datatypes --- */

/* `count` blocks; block i has firstblock + i*blockincrement elements and starts at element i*(stride +
 * strideincrement). A negative block length is MPI_ERR_ARG, an empty block is allowed. To be committed and freed by
 * the caller. */
int isohalo_type_create_triangular(int count, int firstblock, int blockincrement, int stride, int strideincrement,
                                   MPI_Datatype oldtype, MPI_Datatype* newtype);

/* --- halo exchange of a user's own array ---
 * C order, element type any committed datatype, owned cells plus `width` ghost layers on every side (local extent
 * in dimension j: owned[j] + 2 width). Owned extents may differ between ranks as long as they tile a box. Exchanges
 * the ghosts that `depth` steps of a stencil of this shape and radius read (radius * depth <= width) and no others;
 * beyond the sides of dimensions that are not periodic nothing is touched. 1 to 4 dimensions. */

typedef struct isohalo_halo_s* isohalo_halo;
typedef enum isohalo_shape_e ISOHALO_ENUM {
  ISOHALO_SHAPE_MOORE,
  ISOHALO_SHAPE_STAR,
  ISOHALO_SHAPE_VON_NEUMANN
} isohalo_shape;

/* Collective. */
int isohalo_halo_create(MPI_Comm cart, const long long owned[], int width, isohalo_shape shape, int radius,
                        int depth, MPI_Datatype element, isohalo_halo* halo);
/* The same for a stencil that reads `s` relative offsets, whatever they are (flat, s x d, dimension 0 first). */
int isohalo_halo_create_offsets(MPI_Comm cart, const long long owned[], int width, int s, const int relative[],
                                int depth, MPI_Datatype element, isohalo_halo* halo);
/* `array` points to the first element, a ghost when width > 0. Collective in order, as start and finish are. In the
   first exchange an array that is refused on one rank is an error on all; in later ones it is that rank's error, and
   the others wait until that rank starts with another. */
int isohalo_halo_exchange(isohalo_halo halo, void* array);
/* Until finish the ghosts must not be touched and the owned cells not be written. */
int isohalo_halo_start(isohalo_halo halo, void* array);
/* Between the two: moves on what can move, since MPI need not do so on its own. Never waits. Local. */
int isohalo_halo_progress(isohalo_halo halo);
int isohalo_halo_finish(isohalo_halo halo);
/* Completes an exchange in flight. Collective in order. Sets *halo to NULL. */
int isohalo_halo_free(isohalo_halo* halo);

/* `n` >= 0 arrays in one exchange, array k with elements of elements[k], all else as for isohalo_halo_create: one message
 * per neighbor carries all of them where that is the fastest way. Array k lies on the faces of dimension faces[k], or in
 * cells with -1; NULL: all in cells. Dimension j has one face more than cells, which the rank at its upper end owns
 * (local extent there owned[j] + 1 + 2 width), or as many where it is periodic. Collective. */
int isohalo_halo_create_arrays(MPI_Comm cart, const long long owned[], int width, isohalo_shape shape, int radius,
                               int depth, int n, const MPI_Datatype elements[], const int faces[],
                               isohalo_halo* halo);
/* The same for a stencil that reads `s` relative offsets, as for isohalo_halo_create_offsets. */
int isohalo_halo_create_arrays_offsets(MPI_Comm cart, const long long owned[], int width, int s,
                                       const int relative[], int depth, int n, const MPI_Datatype elements[],
                                       const int faces[], isohalo_halo* halo);
/* For such a halo in place of isohalo_halo_exchange and _start, with n addresses of first elements. */
int isohalo_halo_exchange_arrays(isohalo_halo halo, void* const arrays[]);
int isohalo_halo_start_arrays(isohalo_halo halo, void* const arrays[]);

/* The numbers of ranks per dimension by which the library would cut a grid of `shape` cells over `ranks` ranks, for
 * MPI_Cart_create. Local; calls no error handler. */
int isohalo_process_grid(int ranks, int d, const long long shape[], int dims[]);

/* --- reductions whose bits do not depend on the number of ranks (library libisohalo_reduce) --- */

typedef struct isohalo_reducer_s* isohalo_reducer;
/* ISOHALO_SUM adds along a tree that the numbers' global indices alone decide; ISOHALO_EXACT_SUM is the exact sum of
 * all numbers, rounded once. Of minimum and maximum a NaN wins. */
typedef enum isohalo_reduction_e ISOHALO_ENUM {
  ISOHALO_SUM,
  ISOHALO_MIN,
  ISOHALO_MAX,
  ISOHALO_EXACT_SUM
} isohalo_reduction;

/* Of numbers that ranks hold in contiguous ranges, in the order of the ranks: `count` >= 0 are this rank's, all ranks
 * together hold one at least. `comm` may be any communicator. Collective; what one rank finds wrong is an error on all. */
int isohalo_reducer_create(MPI_Comm comm, long long count, isohalo_reduction op, isohalo_reducer* reducer);
/* Of one number per cell of a grid, cut as for isohalo_halo_create: arrays are C order with `width` >= 0 ghost layers on
 * every side, which are not read. A sum has the bits that a TreeReducer of C++ gives. Collective. */
int isohalo_reducer_create_cells(MPI_Comm cart, const long long owned[], int width, isohalo_reduction op,
                                 isohalo_reducer* reducer);
/* `numbers` points to the first element of this rank's, a ghost when width > 0; all ranks get the same *result.
 * Collective in order, as start is. What one rank alone is refused (NULL) is its error; the others wait. */
int isohalo_reducer_reduce(isohalo_reducer reducer, const double* numbers, double* result);
/* In parts: `numbers` may be changed when start returns. wait is local. */
int isohalo_reducer_start(isohalo_reducer reducer, const double* numbers);
int isohalo_reducer_wait(isohalo_reducer reducer, double* result);
/* Completes a reduction in flight. Sets *reducer to NULL. */
int isohalo_reducer_free(isohalo_reducer* reducer);

#ifdef __cplusplus
}
#endif

#endif
