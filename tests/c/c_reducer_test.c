/* The C interface of reductions: numbers in ranges and in cells of grids with ghosts, cut in any way, give the bits of one
 * rank; wrong calls are errors. */

#include "cart.h"

#include <math.h>
#include <string.h>

enum { TOTAL = 1003 };

/* Magnitudes far apart, so that every order of adding has bits of its own. */
static double number(long long i) {
  return ldexp(sin(0.7 * (double)i), (int)(i * 7 % 60) - 30);
}

static int same(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

static void check_ranges(MPI_Comm comm, int root_has_all) {
  const long long low = root_has_all ? (rank ? TOTAL : 0) : (long long)TOTAL * rank / size;
  const long long high = root_has_all ? TOTAL : (long long)TOTAL * (rank + 1) / size;
  double *x = malloc((size_t)(high - low + 1) * sizeof *x), *all = malloc(TOTAL * sizeof *all), most = -1e300;
  int op;
  long long i;
  for (i = low; i < high; ++i) x[i - low] = number(i);
  for (i = 0; i < TOTAL; ++i) all[i] = number(i), most = all[i] > most ? all[i] : most;
  for (op = ISOHALO_SUM; op <= ISOHALO_EXACT_SUM; ++op) {
    isohalo_reducer ours = NULL, alone = NULL;
    double a = 0, b = 1, c = 2;
    CHECK(isohalo_reducer_create(comm, high - low, (isohalo_reduction)op, &ours) == MPI_SUCCESS);
    CHECK(isohalo_reducer_create(MPI_COMM_SELF, TOTAL, (isohalo_reduction)op, &alone) == MPI_SUCCESS);
    CHECK(isohalo_reducer_reduce(ours, high > low ? x : NULL, &a) == MPI_SUCCESS);
    CHECK(isohalo_reducer_reduce(alone, all, &b) == MPI_SUCCESS);
    CHECK(isohalo_reducer_start(ours, x) == MPI_SUCCESS);
    for (i = low; i < high; ++i) x[i - low] = -1; /* read at the start */
    CHECK(isohalo_reducer_wait(ours, &c) == MPI_SUCCESS);
    for (i = low; i < high; ++i) x[i - low] = number(i);
    CHECK(same(a, b) && same(a, c));
    if (op == ISOHALO_MAX) CHECK(a == most);
    CHECK(isohalo_reducer_free(&ours) == MPI_SUCCESS && isohalo_reducer_free(&alone) == MPI_SUCCESS && !ours);
  }
  free(x), free(all);
}

/* Extents 13 x 11 x .. of a grid that `cart` cuts. */
static void check_cells(int d, int width) {
  const long long shape[3] = {13, 11, 9};
  const int periods[3] = {0, 1, 0}, ones[3] = {1, 1, 1};
  int dims[3], coords[3], j, op;
  long long owned[3], low[3], cells = 1, total = 1, at, k;
  double *mine, *all;
  MPI_Comm cart, self;
  CHECK(isohalo_process_grid(size, d, shape, dims) == MPI_SUCCESS);
  MPI_Cart_create(MPI_COMM_WORLD, d, dims, periods, 0, &cart);
  MPI_Cart_create(MPI_COMM_SELF, d, ones, periods, 0, &self);
  MPI_Cart_coords(cart, rank, d, coords);
  for (j = 0; j < d; ++j) {
    low[j] = shape[j] * coords[j] / dims[j];
    owned[j] = shape[j] * (coords[j] + 1) / dims[j] - low[j];
    cells *= owned[j] + 2 * width, total *= shape[j];
  }
  mine = malloc((size_t)cells * sizeof *mine), all = malloc((size_t)total * sizeof *all);
  for (at = 0; at < cells; ++at) {
    long long rest = at, g = 0, scale = 1;
    int inside = 1;
    for (j = d - 1; j >= 0; --j) {
      const long long x = rest % (owned[j] + 2 * width) - width;
      rest /= owned[j] + 2 * width;
      inside = inside && x >= 0 && x < owned[j];
      g += (low[j] + x) * scale, scale *= shape[j];
    }
    mine[at] = inside ? number(g) : NAN; /* a ghost that is read shows */
  }
  for (k = 0; k < total; ++k) all[k] = number(k);
  for (op = ISOHALO_SUM; op <= ISOHALO_EXACT_SUM; ++op) {
    isohalo_reducer ours = NULL, alone = NULL;
    double a = 0, b = 1, again = 2;
    CHECK(isohalo_reducer_create_cells(cart, owned, width, (isohalo_reduction)op, &ours) == MPI_SUCCESS);
    CHECK(isohalo_reducer_create_cells(self, shape, 0, (isohalo_reduction)op, &alone) == MPI_SUCCESS);
    CHECK(isohalo_reducer_reduce(ours, mine, &a) == MPI_SUCCESS);
    CHECK(isohalo_reducer_reduce(alone, all, &b) == MPI_SUCCESS);
    CHECK(isohalo_reducer_reduce(ours, mine, &again) == MPI_SUCCESS);
    CHECK(a == a && same(a, b) && same(a, again));
    CHECK(isohalo_reducer_start(ours, mine) == MPI_SUCCESS);
    CHECK(isohalo_reducer_free(&ours) == MPI_SUCCESS); /* completes it */
    CHECK(isohalo_reducer_free(&alone) == MPI_SUCCESS);
  }
  free(mine), free(all);
  MPI_Comm_free(&cart), MPI_Comm_free(&self);
}

static void check_errors(MPI_Errhandler handler) {
  const int periods[2] = {1, 1};
  MPI_Comm cart = make_cart(2, periods, handler);
  const long long owned[2] = {4, 5}, uneven[2] = {4 + rank, 5 + rank}, shape[2] = {2, 3};
  isohalo_reducer r = NULL, stale;
  double x[80] = {0}, result = 0;
  int dims[2];
  CHECK_CODE(isohalo_reducer_create(cart, 3, ISOHALO_SUM, NULL), MPI_ERR_ARG);
  CHECK_CODE(isohalo_reducer_create(cart, 3, (isohalo_reduction)7, &r), MPI_ERR_ARG);
  CHECK(strstr(isohalo_error_text(), "unknown operation"));
  CHECK_CODE(isohalo_reducer_create(cart, rank == 0 ? -3 : 2, ISOHALO_SUM, &r), MPI_ERR_ARG); /* of one: on all */
  CHECK_CODE(isohalo_reducer_create(cart, 0, ISOHALO_MIN, &r), MPI_ERR_ARG);
  CHECK_CODE(isohalo_reducer_create_cells(cart, owned, -1, ISOHALO_SUM, &r), MPI_ERR_ARG);
  CHECK_CODE(isohalo_reducer_create_cells(cart, NULL, 1, ISOHALO_SUM, &r), MPI_ERR_ARG);
  if (size > 1) {
    CHECK_CODE(isohalo_reducer_create(cart, 3, rank == 0 ? ISOHALO_SUM : ISOHALO_MAX, &r), MPI_ERR_ARG);
    CHECK(strstr(isohalo_error_text(), "rank 0 has \"ISOHALO_SUM\", rank 1 has \"ISOHALO_MAX\""));
    CHECK_CODE(isohalo_reducer_create_cells(cart, owned, rank == 1, ISOHALO_SUM, &r), MPI_ERR_ARG);
    CHECK(strstr(isohalo_error_text(), "width"));
  }
  if (size == 4) {
    CHECK_CODE(isohalo_reducer_create_cells(cart, uneven, 0, ISOHALO_SUM, &r), MPI_ERR_ARG);
    CHECK(strstr(isohalo_error_text(), "tile a box"));
  }
  CHECK(r == NULL);
  CHECK(isohalo_reducer_create_cells(cart, owned, 1, ISOHALO_SUM, &r) == MPI_SUCCESS);
  CHECK_CODE(isohalo_reducer_wait(r, &result), MPI_ERR_REQUEST);
  CHECK_CODE(isohalo_reducer_start(r, NULL), MPI_ERR_BUFFER);
  CHECK_CODE(isohalo_reducer_reduce(r, x, NULL), MPI_ERR_ARG); /* and nothing is in flight */
  CHECK(isohalo_reducer_start(r, x) == MPI_SUCCESS);
  CHECK_CODE(isohalo_reducer_start(r, x), MPI_ERR_REQUEST);
  CHECK_CODE(isohalo_reducer_wait(r, NULL), MPI_ERR_ARG);
  CHECK(isohalo_reducer_wait(r, &result) == MPI_SUCCESS && result == 0);
  stale = r;
  CHECK(isohalo_reducer_free(&r) == MPI_SUCCESS);
  CHECK(class_of(isohalo_reducer_reduce(stale, x, &result)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_reducer_free(&stale)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_process_grid(7, 2, shape, dims)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_process_grid(1, 5, shape, dims)) == MPI_ERR_DIMS);
  CHECK(class_of(isohalo_process_grid(0, 2, shape, dims)) == MPI_ERR_ARG);
  CHECK(isohalo_process_grid(6, 2, shape, dims) == MPI_SUCCESS && dims[0] == 2 && dims[1] == 3);
  MPI_Comm_free(&cart);
}

int main(int argc, char **argv) {
  MPI_Errhandler handler;
  begin_checks(&argc, &argv);
  MPI_Comm_create_errhandler(count_error, &handler);
  check_ranges(MPI_COMM_WORLD, 0);
  check_ranges(MPI_COMM_WORLD, 1);
  check_cells(1, 0), check_cells(1, 2), check_cells(2, 0), check_cells(2, 1), check_cells(3, 2);
  check_errors(handler);
  MPI_Errhandler_free(&handler);
  return end_checks();
}
