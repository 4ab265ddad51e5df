/* The C interface as a C99 program meets it: navigation, queries, and every error by its code, without a hang. */

#include "cart.h"

#include <limits.h>

/* Coordinates by MPI alone; -1 off the mesh. */
static int rank_at(MPI_Comm cart, int d, const int relative[], int sign) {
  int dims[4], periods[4], coords[4], found = -1, j;
  MPI_Cart_get(cart, d, dims, periods, coords);
  for (j = 0; j < d; ++j) {
    coords[j] += sign * relative[j];
    if (!periods[j] && (coords[j] < 0 || coords[j] >= dims[j])) return MPI_PROC_NULL;
    coords[j] = ((coords[j] % dims[j]) + dims[j]) % dims[j];
  }
  MPI_Cart_rank(cart, coords, &found);
  return found;
}

static void navigation(MPI_Comm cart, int d) {
  int a, b, other;
  for (a = -3; a <= 3; ++a)
    for (b = -3; b <= 3; ++b) {
      const int relative[3] = {a, b, a - b};
      int found, source, target;
      CHECK(isohalo_cart_relative_rank(cart, relative, &found) == MPI_SUCCESS);
      CHECK(found == rank_at(cart, d, relative, 1));
      CHECK(isohalo_cart_relative_shift(cart, relative, &source, &target) == MPI_SUCCESS);
      CHECK(target == found && source == rank_at(cart, d, relative, -1));
    }
  for (other = 0; other < size; ++other) {
    int relative[4], found, dims[4], periods[4], coords[4], j;
    CHECK(isohalo_cart_relative_coord(cart, other, relative) == MPI_SUCCESS);
    CHECK(isohalo_cart_relative_rank(cart, relative, &found) == MPI_SUCCESS && found == other);
    MPI_Cart_get(cart, d, dims, periods, coords);
    for (j = 0; j < d; ++j) { /* nothing shorter, and the positive one on a tie */
      if (periods[j]) CHECK(2 * relative[j] <= dims[j] && 2 * relative[j] > -dims[j]);
    }
  }
  CHECK_CODE(isohalo_cart_relative_coord(cart, size, &other), MPI_ERR_RANK);
  CHECK_CODE(isohalo_cart_relative_coord(cart, -1, &other), MPI_ERR_RANK);
  CHECK_CODE(isohalo_cart_relative_rank(cart, NULL, &other), MPI_ERR_ARG);
}

static void queries(MPI_Comm cart, int d) {
  isohalo_neighborhood iso;
  int s, in, out, i, n = 0, sources[200], targets[200], from[200], to[200];
  int expected_in = 0, expected_out = 0, rounds;
  long long volume;
  CHECK(isohalo_neighborhood_moore(cart, 1, 0, &iso) == MPI_SUCCESS);
  CHECK(isohalo_neighborhood_count(iso, &s, &in, &out) == MPI_SUCCESS);
  for (i = 0; i < d; ++i) n = 3 * (n ? n : 1);
  CHECK(s == n - 1);
  CHECK(isohalo_neighborhood_get(iso, 200, sources, targets) == MPI_SUCCESS);
  for (i = 0; i < n; ++i) { /* row-major */
    int relative[4], left = i, j;
    const int k = i < n / 2 ? i : i - 1;
    if (i == n / 2) continue;
    for (j = d - 1; j >= 0; --j) relative[j] = left % 3 - 1, left /= 3;
    CHECK(targets[k] == rank_at(cart, d, relative, 1));
    CHECK(sources[k] == rank_at(cart, d, relative, -1));
    if (targets[k] != MPI_PROC_NULL) to[expected_out++] = targets[k];
    if (sources[k] != MPI_PROC_NULL) from[expected_in++] = sources[k];
  }
  CHECK(in == expected_in && out == expected_out);
  CHECK(isohalo_neighborhood_graph_get(iso, 200, sources, targets) == MPI_SUCCESS);
  CHECK(memcmp(sources, from, sizeof(int) * (size_t)in) == 0);
  CHECK(memcmp(targets, to, sizeof(int) * (size_t)out) == 0);
  { /* what graph_get gives is what MPI's distributed graphs take */
    MPI_Comm graph;
    int weighted, heard[200], told[200];
    CHECK(MPI_Dist_graph_create_adjacent(cart, in, sources, MPI_UNWEIGHTED, out, targets, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                         0, &graph) == MPI_SUCCESS);
    CHECK(MPI_Dist_graph_neighbors_count(graph, &i, &n, &weighted) == MPI_SUCCESS && i == in && n == out && !weighted);
    CHECK(MPI_Dist_graph_neighbors(graph, in, heard, MPI_UNWEIGHTED, out, told, MPI_UNWEIGHTED) == MPI_SUCCESS);
    CHECK(memcmp(heard, from, sizeof(int) * (size_t)in) == 0 && memcmp(told, to, sizeof(int) * (size_t)out) == 0);
    MPI_Comm_free(&graph);
    n = s + 1;
  }
  targets[1] = -77;
  CHECK(isohalo_neighborhood_get(iso, 1, sources, targets) == MPI_SUCCESS && targets[1] == -77);
  CHECK(isohalo_neighborhood_schedule(iso, ISOHALO_DIRECT, &rounds, &volume) == MPI_SUCCESS);
  CHECK(rounds == n - 1 && volume == n - 1);
  CHECK(isohalo_neighborhood_schedule(iso, ISOHALO_COMBINING, &rounds, &volume) == MPI_SUCCESS);
  CHECK(rounds == 2 * d && (d != 3 || volume == 54) && (d != 2 || volume == 12));
  CHECK(isohalo_neighborhood_check(iso) == MPI_SUCCESS);
  CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS && iso == NULL);
  CHECK(isohalo_neighborhood_von_neumann(cart, 2, 1, &iso) == MPI_SUCCESS);
  CHECK(isohalo_neighborhood_count(iso, &s, &in, &out) == MPI_SUCCESS);
  CHECK(s == (d == 1 ? 5 : d == 2 ? 13 : 25));
  CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
}

static void bad_arguments(MPI_Comm cart) {
  const int list[2] = {1, -1};
  const int counts[2] = {1, -1}, places[2] = {0, 1};
  const MPI_Aint bytes[2] = {0, 8};
  MPI_Datatype types[2], triangle;
  double out[4] = {0, 0, 0, 0}, in[4] = {0, 0, 0, 0};
  isohalo_neighborhood iso, copy;
  isohalo_request r = NULL, same;
  int flag, n;
  types[0] = MPI_DOUBLE;
  types[1] = MPI_DATATYPE_NULL;
  CHECK(isohalo_neighborhood_create(MPI_COMM_WORLD, 2, list, &iso) != MPI_SUCCESS);
  CHECK(isohalo_neighborhood_create(MPI_COMM_NULL, 2, list, &iso) == MPI_ERR_TOPOLOGY);
  CHECK_CODE(isohalo_neighborhood_create(cart, -1, list, &iso), MPI_ERR_ARG);
  CHECK_CODE(isohalo_neighborhood_create(cart, 2, NULL, &iso), MPI_ERR_ARG);
  CHECK_CODE(isohalo_neighborhood_create(cart, 2, list, NULL), MPI_ERR_ARG);
  CHECK_CODE(isohalo_neighborhood_moore(cart, -1, 0, &iso), MPI_ERR_ARG);
  CHECK_CODE(isohalo_neighborhood_moore(cart, INT_MAX, 0, &iso), MPI_ERR_ARG);
  {
    const int lowest[1] = {INT_MIN};
    int a, b;
    CHECK_CODE(isohalo_neighborhood_create(cart, 1, lowest, &iso), MPI_ERR_ARG);
    CHECK_CODE(isohalo_cart_relative_shift(cart, lowest, &a, &b), MPI_ERR_ARG);
  }
  CHECK(isohalo_neighborhood_create(cart, 2, list, &iso) == MPI_SUCCESS);
  CHECK_CODE(isohalo_neighborhood_set_algorithm(iso, (isohalo_algorithm)9), MPI_ERR_ARG);
  CHECK_CODE(isohalo_neighborhood_get(iso, -1, &n, &n), MPI_ERR_ARG);
  CHECK_CODE(isohalo_neighbor_alltoall(out, -1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso), MPI_ERR_COUNT);
  CHECK_CODE(isohalo_neighbor_alltoall(out, 1, MPI_DATATYPE_NULL, in, 1, MPI_DOUBLE, iso), MPI_ERR_TYPE);
  CHECK_CODE(isohalo_neighbor_alltoallv(out, counts, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, iso), MPI_ERR_COUNT);
  CHECK_CODE(isohalo_neighbor_alltoallv(out, NULL, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, iso), MPI_ERR_ARG);
  CHECK_CODE(isohalo_neighbor_alltoallw(out, places, bytes, types, in, places, bytes, types, iso), MPI_ERR_TYPE);
  CHECK_CODE(isohalo_neighbor_allgather(out, 1, MPI_DOUBLE, in, -2, MPI_DOUBLE, iso), MPI_ERR_COUNT);
  CHECK_CODE(isohalo_neighbor_reduce(out, in, 1, MPI_DOUBLE, MPI_OP_NULL, iso), MPI_ERR_OP);
  CHECK_CODE(isohalo_neighbor_scatter_reduce(out, places, bytes, types, in, 1, MPI_DOUBLE, MPI_OP_NULL, iso), MPI_ERR_OP);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL); /* MPI itself must not be heard */
  CHECK_CODE(isohalo_neighbor_reduce(out, in, 1, MPI_DOUBLE, MPI_BAND, iso), MPI_ERR_OP);
  CHECK_CODE(isohalo_neighbor_reduce_init(out, in, 1, MPI_DOUBLE, MPI_BAND, iso, &r), MPI_ERR_OP);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK_CODE(isohalo_ineighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso, NULL), MPI_ERR_ARG);
  CHECK_CODE(isohalo_neighbor_alltoall(MPI_IN_PLACE, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso), MPI_ERR_BUFFER);
  CHECK_CODE(isohalo_neighbor_alltoall(NULL, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso), MPI_ERR_BUFFER);
  CHECK_CODE(isohalo_neighbor_alltoall_init(out, 1, MPI_DOUBLE, NULL, 1, MPI_DOUBLE, iso, &r), MPI_ERR_BUFFER);
  /* Requests. */
  CHECK(isohalo_wait(&r) == MPI_SUCCESS);
  CHECK(isohalo_test(&r, &flag) == MPI_SUCCESS && flag == 1);
  CHECK(isohalo_start(NULL) == MPI_ERR_REQUEST);
  CHECK(isohalo_request_free(&r) == MPI_ERR_REQUEST);
  CHECK(isohalo_neighbor_alltoall_init(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso, &r) == MPI_SUCCESS);
  CHECK(isohalo_wait(&r) == MPI_SUCCESS && r != NULL); /* inactive */
  CHECK(isohalo_start(r) == MPI_SUCCESS);
  CHECK_CODE(isohalo_start(r), MPI_ERR_REQUEST); /* active */
  same = r;
  CHECK(isohalo_request_free(&r) == MPI_SUCCESS && r == NULL); /* completes it */
  CHECK(isohalo_start(same) == MPI_ERR_REQUEST);
  CHECK(isohalo_wait(&same) == MPI_ERR_REQUEST);
  CHECK(isohalo_ineighbor_allgather(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso, &r) == MPI_SUCCESS);
  CHECK_CODE(isohalo_start(r), MPI_ERR_REQUEST); /* not persistent */
  CHECK(isohalo_wait(&r) == MPI_SUCCESS && r == NULL);
  /* A handle that was freed, also when its place was given to another. */
  copy = iso;
  CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
  CHECK(isohalo_neighborhood_free(&copy) == MPI_ERR_ARG);
  CHECK(isohalo_neighborhood_free(&iso) == MPI_ERR_ARG);
  CHECK(isohalo_neighborhood_create(cart, 2, list, &iso) == MPI_SUCCESS);
  CHECK(isohalo_neighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, copy) == MPI_ERR_ARG);
  CHECK(isohalo_neighborhood_count(copy, &n, &n, &n) == MPI_ERR_ARG);
  CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
  /* Datatypes. */
  CHECK(isohalo_type_create_triangular(3, 2, -2, 1, 1, MPI_INT, &triangle) == MPI_ERR_ARG);
  CHECK(isohalo_type_create_triangular(-1, 2, 1, 1, 1, MPI_INT, &triangle) == MPI_ERR_ARG);
  CHECK(isohalo_type_create_triangular(1, 2, 1, 1, 1, MPI_DATATYPE_NULL, &triangle) == MPI_ERR_TYPE);
}

/* Sizes that do not fit between ranks: an error by name on every rank that notices, no hang on any, and the communicator is
 * as good as before. */
static void unfit(MPI_Comm cart) {
  static char out[1200000], in[1200000];
  static const int sizes[5][2] = {{1, 2}, {3, 2}, {4096, 4097}, {340, 341}, {9000, 8000}};
  isohalo_neighborhood iso;
  int s, indegree, outdegree, algorithm, k, i;
  if (size == 1) return;
  isohalo_neighborhood_moore(cart, 2, 0, &iso);
  isohalo_neighborhood_count(iso, &s, &indegree, &outdegree);
  for (algorithm = ISOHALO_AUTO; algorithm <= ISOHALO_LOGARITHMIC; ++algorithm) {
    isohalo_neighborhood_set_algorithm(iso, (isohalo_algorithm)algorithm);
    for (k = 0; k < 5; ++k) { /* everybody sends more or less than everybody receives */
      const int rc = isohalo_neighbor_alltoall(out, sizes[k][0], MPI_BYTE, in, sizes[k][1], MPI_BYTE, iso);
      CHECK(indegree == 0 || class_of(rc) == MPI_ERR_TRUNCATE);
    }
  }
  isohalo_neighborhood_set_algorithm(iso, ISOHALO_AUTO);
  for (i = 0; i < s; ++i) out[i] = (char)(rank * 31 + i);
  CHECK(isohalo_neighbor_alltoall(out, 1, MPI_BYTE, in, 1, MPI_BYTE, iso) == MPI_SUCCESS);
  {
    int sources[400], targets[400];
    isohalo_neighborhood_get(iso, 400, sources, targets);
    for (i = 0; i < s; ++i) CHECK(sources[i] == MPI_PROC_NULL || in[i] == (char)(sources[i] * 31 + i));
  }
  isohalo_neighborhood_free(&iso);
}

/* Lists that differ between ranks, asked for and in the first blocking operation. */
static void different_lists(MPI_Comm cart) {
  const int mine[3] = {1, rank == size - 1 ? 2 : -1, 1}, good[1] = {1};
  double out[3] = {1, 2, 3}, in[3];
  int longer, use;
  if (size == 1) return;
  for (longer = 0; longer < 2; ++longer) {
    isohalo_neighborhood iso;
    CHECK(isohalo_neighborhood_create(cart, longer && rank == 0 ? 3 : 2, mine, &iso) == MPI_SUCCESS);
    CHECK_CODE(isohalo_neighborhood_check(iso), MPI_ERR_TOPOLOGY);
    for (use = 0; use < 2; ++use)
      CHECK_CODE(isohalo_neighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso), MPI_ERR_TOPOLOGY);
    CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
    CHECK(isohalo_neighborhood_create(cart, 1, good, &iso) == MPI_SUCCESS); /* the communicator is unharmed */
    out[0] = rank;
    CHECK(isohalo_neighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso) == MPI_SUCCESS);
    CHECK(in[0] == (rank + size - 1) % size);
    CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
  }
}

/* One element of `type` at `from` goes to the next rank on a ring and arrives as the n integers `expected`. */
static void travel(MPI_Datatype type, const int *from, const int *expected, int n) {
  const int periodic[1] = {1}, list[1] = {1}, one = 1;
  const MPI_Aint zero = 0;
  const MPI_Datatype integer = MPI_INT;
  MPI_Comm cart = make_cart(1, periodic, MPI_ERRORS_ARE_FATAL);
  isohalo_neighborhood iso;
  int got[1000], k;
  for (k = 0; k < 1000; ++k) got[k] = -1;
  CHECK(n < 1000);
  CHECK(isohalo_neighborhood_create(cart, 1, list, &iso) == MPI_SUCCESS);
  CHECK(isohalo_neighbor_alltoallw(from, &one, &zero, &type, got, &n, &zero, &integer, iso) == MPI_SUCCESS);
  CHECK(memcmp(got, expected, (size_t)n * sizeof(int)) == 0);
  CHECK(got[n] == -1);
  CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
  MPI_Comm_free(&cart);
}

/* The paper's constructor: all signs, empty blocks, against the layout written out. */
static void triangles(void) {
  const int cases[6][5] = {{4, 1, 1, 10, 0}, {4, 4, -1, 10, 1}, {3, 0, 2, 7, -1}, {4, 3, -1, -9, 0}, {2, 2, 0, 5, -10}, {0, 1, 1, 1, 1}};
  int k, i, e;
  for (k = 0; k < 6; ++k) {
    const int *c = cases[k];
    int array[200], packed[64], expected[64], n = 0, position = 0;
    MPI_Datatype type;
    for (i = 0; i < 200; ++i) array[i] = i;
    for (i = 0; i < c[0]; ++i)
      for (e = 0; e < c[1] + i * c[2]; ++e) expected[n++] = 100 + i * (c[3] + c[4]) + e;
    CHECK(isohalo_type_create_triangular(c[0], c[1], c[2], c[3], c[4], MPI_INT, &type) == MPI_SUCCESS);
    MPI_Type_commit(&type);
    MPI_Pack(array + 100, 1, type, packed, sizeof packed, &position, MPI_COMM_WORLD);
    CHECK(position == n * (int)sizeof(int));
    CHECK(memcmp(packed, expected, (size_t)position) == 0);
    travel(type, array + 100, expected, n);
    MPI_Type_free(&type);
  }
}

/* What one rank alone gets wrong where a handle is made, on communicators that the library has not seen before: what is
 * collective is an error on all, what is not on that rank; buffers that are missing on all. */
static void one_rank_is_wrong(MPI_Errhandler handler) {
  const int periodic[1] = {1}, list[2] = {1, -1}, counts[2] = {1, 1}, places[2] = {0, 1};
  const MPI_Aint bytes[2] = {0, 8};
  const long long owned[1] = {4};
  const int me = rank == size - 1;
  double out[2] = {1, 2}, in[2] = {0, 0};
  isohalo_neighborhood iso = NULL;
  isohalo_halo halo = NULL;
  MPI_Datatype types[2];
  MPI_Comm cart;
  int code;
  types[0] = types[1] = MPI_DOUBLE;

  cart = make_cart(1, periodic, handler);
  code = isohalo_neighborhood_create(cart, me ? -1 : 2, list, &iso);
  CHECK(class_of(code) == (me ? MPI_ERR_ARG : MPI_SUCCESS));
  if (!me) CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
  MPI_Comm_free(&cart);

  cart = make_cart(1, periodic, handler);
  code = isohalo_neighborhood_moore(cart, 1, 0, me ? NULL : &iso);
  CHECK(class_of(code) == (me ? MPI_ERR_ARG : MPI_SUCCESS));
  if (!me) CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
  MPI_Comm_free(&cart);

  cart = make_cart(1, periodic, handler);
  CHECK(class_of(isohalo_halo_create(cart, owned, 1, ISOHALO_SHAPE_STAR, 1, 1, MPI_DOUBLE, me ? NULL : &halo)) == MPI_ERR_ARG);
  CHECK(isohalo_neighborhood_create(cart, 2, list, &iso) == MPI_SUCCESS);
  CHECK(class_of(isohalo_neighbor_alltoallv(NULL, counts, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, iso)) == MPI_ERR_BUFFER);
  CHECK(class_of(isohalo_neighbor_alltoallw(out, counts, bytes, types, NULL, counts, bytes, types, iso)) == MPI_ERR_BUFFER);
  CHECK(class_of(isohalo_neighbor_allgatherv(out, 1, MPI_DOUBLE, NULL, counts, places, MPI_DOUBLE, iso)) == MPI_ERR_BUFFER);
#ifdef MPICH
  CHECK(class_of(isohalo_neighbor_alltoall(out, 1, (MPI_Datatype)1, in, 1, MPI_DOUBLE, iso)) == MPI_ERR_TYPE);
  CHECK(class_of(isohalo_halo_create(cart, owned, 1, ISOHALO_SHAPE_STAR, 1, 1, me ? (MPI_Datatype)1 : MPI_DOUBLE, &halo)) == MPI_ERR_TYPE);
#endif
  out[0] = 10 + rank, out[1] = 20 + rank;
  CHECK(isohalo_neighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso) == MPI_SUCCESS); /* as good as before */
  CHECK(in[0] == 10 + (rank + size - 1) % size && in[1] == 20 + (rank + 1) % size);
  CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
  MPI_Comm_free(&cart);
}

int main(int argc, char **argv) {
  int d, p;
  MPI_Errhandler handler;
  begin_checks(&argc, &argv);
  MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)count_error, &handler);
  for (d = 1; d <= 3; ++d)
    for (p = 0; p < 2; ++p) {
      const int periods[4] = {p, !p, p, p};
      MPI_Comm cart = make_cart(d, periods, handler);
      navigation(cart, d);
      queries(cart, d);
      unfit(cart);
      MPI_Comm_free(&cart);
    }
  {
    const int periodic[1] = {1};
    MPI_Comm cart = make_cart(1, periodic, handler);
    bad_arguments(cart);
    different_lists(cart);
    MPI_Comm_free(&cart);
  }
  triangles();
  one_rank_is_wrong(handler);
  MPI_Errhandler_free(&handler);
  if (rank == 0) printf("%d errors handled\n", handled);
  return end_checks();
}
