/* The C interface of the halo exchange: user arrays of every shape, dimension, depth and periodicity, with elements that have
 * holes; ghosts that are needed are right, everything else keeps its bytes. */

#include "check.h"

#include <stddef.h>
#include <string.h>

/* The element: a and c travel, the rest is the user's own. */
typedef struct {
  double a;
  int mine;
  short c[3];
} cell;

static MPI_Datatype cell_type(void) {
  const int lengths[2] = {1, 3};
  const MPI_Aint places[2] = {offsetof(cell, a), offsetof(cell, c)};
  const MPI_Datatype types[2] = {MPI_DOUBLE, MPI_SHORT};
  MPI_Datatype packed, t;
  MPI_Type_create_struct(2, lengths, places, types, &packed);
  MPI_Type_create_resized(packed, 0, sizeof(cell), &t);
  MPI_Type_free(&packed);
  MPI_Type_commit(&t);
  return t;
}

static cell value_of(long long global) {
  cell v;
  memset(&v, 0, sizeof v);
  v.a = (double)global * 1.5 + 1;
  v.mine = -5;
  v.c[0] = (short)global, v.c[1] = (short)(global * 3), v.c[2] = 7;
  return v;
}

/* One array of one rank. */
typedef struct {
  int d, width, radius, depth;
  isohalo_shape shape;
  int periods[4];
  long long owned[4], low[4], global[4], extent[4], cells;
} block;

/* Visits local cell `at`: its global index, or -1 when no such cell exists; whether it is owned, whether it is needed. */
static void look(const block *b, long long at, long long *global, int *owned, int *needed) {
  long long local[4], g = 0;
  int used = 0, worst = 0, j;
  for (j = b->d - 1; j >= 0; --j) {
    local[j] = at % b->extent[j];
    at /= b->extent[j];
  }
  for (j = 0; j < b->d; ++j) {
    const long long x = local[j] - b->width; /* 0 .. owned - 1 inside */
    const long long away = x < 0 ? -x : x >= b->owned[j] ? x - b->owned[j] + 1 : 0;
    long long i = b->low[j] + x;
    if (b->periods[j]) i = ((i % b->global[j]) + b->global[j]) % b->global[j];
    if (i < 0 || i >= b->global[j]) g = -1;
    if (g >= 0) g = g * b->global[j] + i;
    if (b->shape == ISOHALO_SHAPE_STAR) used += b->radius ? (int)((away + b->radius - 1) / b->radius) : (away ? 1000 : 0);
    if (b->shape == ISOHALO_SHAPE_VON_NEUMANN) used += (int)away;
    if (away > worst) worst = (int)away;
  }
  *global = g;
  *owned = worst == 0;
  if (b->shape == ISOHALO_SHAPE_MOORE) *needed = worst <= b->radius * b->depth;
  if (b->shape == ISOHALO_SHAPE_STAR) *needed = used <= b->depth;
  if (b->shape == ISOHALO_SHAPE_VON_NEUMANN) *needed = used <= b->radius * b->depth;
  *needed = *needed && !*owned && g >= 0;
}

/* The halo of a block; at odd depths from the offsets of its shape. */
static int create(MPI_Comm cart, const block *b, MPI_Datatype element, isohalo_halo *halo) {
  int list[4 * 625], s = 0, all = 1, k, j;
  if (b->depth % 2 == 0) return isohalo_halo_create(cart, b->owned, b->width, b->shape, b->radius, b->depth, element, halo);
  for (j = 0; j < b->d; ++j) all *= 2 * b->radius + 1;
  for (k = 0; k < all; ++k) {
    int rest = k, length = 0, axes = 0;
    for (j = 0; j < b->d; ++j) {
      const int x = rest % (2 * b->radius + 1) - b->radius;
      list[s * b->d + j] = x, rest /= 2 * b->radius + 1;
      length += abs(x), axes += x != 0;
    }
    s += b->shape == ISOHALO_SHAPE_MOORE || (b->shape == ISOHALO_SHAPE_STAR ? axes <= 1 : length <= b->radius);
  }
  return isohalo_halo_create_offsets(cart, b->owned, b->width, s, list, b->depth, element, halo);
}

static void check_block(MPI_Comm cart, const block *b, MPI_Datatype element) {
  isohalo_halo halo = NULL;
  cell *array = malloc((size_t)b->cells * sizeof(cell)), sentinel;
  long long at, wrong = 0;
  int turn;
  CHECK(create(cart, b, element, &halo) == MPI_SUCCESS);
  if (!halo) {
    free(array);
    return;
  }
  memset(&sentinel, 0x7b, sizeof sentinel);
  for (turn = 0; turn < 2; ++turn) {
    for (at = 0; at < b->cells; ++at) {
      long long g;
      int owned, needed;
      look(b, at, &g, &owned, &needed);
      array[at] = owned ? value_of(g + turn) : sentinel;
    }
    if (turn == 0) {
      CHECK(isohalo_halo_exchange(halo, array) == MPI_SUCCESS);
    } else {
      CHECK(isohalo_halo_progress(halo) == MPI_SUCCESS); /* nothing is in flight */
      CHECK(isohalo_halo_start(halo, array) == MPI_SUCCESS);
      CHECK(isohalo_halo_progress(halo) == MPI_SUCCESS);
      CHECK(isohalo_halo_finish(halo) == MPI_SUCCESS);
    }
    for (at = 0; at < b->cells; ++at) {
      long long g;
      int owned, needed;
      cell right;
      look(b, at, &g, &owned, &needed);
      right = owned || needed ? value_of(g + turn) : sentinel;
      if (needed) right.mine = sentinel.mine; /* does not travel */
      wrong += array[at].a != right.a || array[at].mine != right.mine || memcmp(array[at].c, right.c, sizeof right.c) != 0;
    }
  }
  CHECK(wrong == 0);
  CHECK(isohalo_halo_free(&halo) == MPI_SUCCESS && halo == NULL);
  free(array);
}

static void all_cases(int d, int periodic, MPI_Datatype element) {
  int dims[4] = {0, 0, 0, 0}, coords[4], shape, radius, depth, j;
  block b;
  MPI_Comm cart;
  for (j = 0; j < 4; ++j) b.periods[j] = periodic >> j & 1;
  MPI_Dims_create(size, d, dims);
  MPI_Cart_create(MPI_COMM_WORLD, d, dims, b.periods, 0, &cart);
  MPI_Cart_coords(cart, rank, d, coords);
  MPI_Comm_set_errhandler(cart, MPI_ERRORS_RETURN);
  b.d = d;
  for (j = 0; j < d; ++j) { /* uneven: 2 + c % 3 cells at coordinate c, one more in dimension 0 */
    int c;
    b.low[j] = b.global[j] = 0;
    for (c = 0; c < dims[j]; ++c) {
      const long long n = 2 + c % 3 + (j == 0);
      if (c < coords[j]) b.low[j] += n;
      if (c == coords[j]) b.owned[j] = n;
      b.global[j] += n;
    }
  }
  for (shape = ISOHALO_SHAPE_MOORE; shape <= ISOHALO_SHAPE_VON_NEUMANN; ++shape)
    for (radius = 0; radius <= 2; ++radius)
      for (depth = 0; depth <= (d < 3 ? 3 : 2); ++depth) {
        if (radius * depth > 4 || (d == 4 && radius * depth > 2)) continue;
        b.shape = (isohalo_shape)shape, b.radius = radius, b.depth = depth;
        b.width = radius * depth + (depth & 1); /* sometimes wider than needed */
        b.cells = 1;
        for (j = 0; j < d; ++j) b.cells *= b.extent[j] = b.owned[j] + 2 * b.width;
        check_block(cart, &b, element);
      }
  MPI_Comm_free(&cart);
}

static void errors(void) {
  int dims[1] = {0}, periods[1] = {1}, j;
  const int upwind = -1, downwind = 1, two = 2, far = 1001;
  long long owned[1] = {4}, none[1] = {0};
  double array[16];
  MPI_Comm cart;
  isohalo_halo halo = NULL, copy;
  MPI_Dims_create(size, 1, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart);
  MPI_Comm_set_errhandler(cart, MPI_ERRORS_RETURN);
  CHECK(class_of(isohalo_halo_create(cart, owned, 1, ISOHALO_SHAPE_STAR, 1, 2, MPI_DOUBLE, &halo)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create(cart, owned, -1, ISOHALO_SHAPE_STAR, 0, 0, MPI_DOUBLE, &halo)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create(cart, owned, 1, (isohalo_shape)7, 1, 1, MPI_DOUBLE, &halo)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create(cart, owned, 1, ISOHALO_SHAPE_STAR, 1, 1, MPI_DATATYPE_NULL, &halo)) == MPI_ERR_TYPE);
  CHECK(class_of(isohalo_halo_create(cart, rank == size - 1 ? none : owned, 1, ISOHALO_SHAPE_STAR, 1, 1, MPI_DOUBLE, &halo)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create(cart, rank == size - 1 ? NULL : owned, 1, ISOHALO_SHAPE_STAR, 1, 1, MPI_DOUBLE, &halo)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create(MPI_COMM_WORLD, owned, 1, ISOHALO_SHAPE_STAR, 1, 1, MPI_DOUBLE, &halo)) == MPI_ERR_TOPOLOGY);
  if (size > 1)
    CHECK(class_of(isohalo_halo_create(cart, owned, rank == 0 ? 3 : 2, ISOHALO_SHAPE_STAR, 1, 1, MPI_DOUBLE, &halo)) == MPI_ERR_ARG);
  if (size > 1)
    CHECK(class_of(isohalo_halo_create(cart, owned, 1, ISOHALO_SHAPE_STAR, 1, 1, rank == size - 1 ? MPI_FLOAT : MPI_DOUBLE, &halo)) ==
          MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create_offsets(cart, owned, 2, 1, NULL, 1, MPI_DOUBLE, &halo)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create_offsets(cart, owned, 2, -1, &upwind, 1, MPI_DOUBLE, &halo)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create_offsets(cart, owned, 2, 1, &far, 1, MPI_DOUBLE, &halo)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create_offsets(cart, owned, 2, 1, &upwind, 3, MPI_DOUBLE, &halo)) == MPI_ERR_ARG);
  if (size > 1) {
    CHECK(class_of(isohalo_halo_create_offsets(cart, owned, 2, 1, rank == 0 ? &upwind : &downwind, 1, MPI_DOUBLE, &halo)) ==
          MPI_ERR_ARG);
    CHECK(strstr(isohalo_error_text(), "isohalo_halo_create_offsets: argument \"offsets\" differs"));
    CHECK(class_of(isohalo_halo_create_offsets(cart, owned, 2, 1, rank == 0 ? &upwind : &two, 1, MPI_DOUBLE, &halo)) == MPI_ERR_ARG);
    CHECK(strstr(isohalo_error_text(), "isohalo_halo_create_offsets: argument \"offsets\" differs"));
    CHECK(class_of(isohalo_halo_create(cart, owned, 2, rank == 0 ? ISOHALO_SHAPE_STAR : ISOHALO_SHAPE_MOORE, 1, 1, MPI_DOUBLE, &halo)) ==
          MPI_ERR_ARG);
    CHECK(strstr(isohalo_error_text(), "rank 0 has \"ISOHALO_SHAPE_STAR\""));
  }
  CHECK(halo == NULL);
  /* One-sided: two steps read two ghosts below, none above. */
  CHECK(isohalo_halo_create_offsets(cart, owned, 2, 1, &upwind, 2, MPI_DOUBLE, &halo) == MPI_SUCCESS);
  for (j = 0; j < 8; ++j) array[j] = j < 2 || j > 5 ? -1 : 4 * rank + j - 2;
  CHECK(isohalo_halo_exchange(halo, array) == MPI_SUCCESS);
  for (j = 0; j < 2; ++j) CHECK(array[j] == (4 * rank + j + 4 * size - 2) % (4 * size) && array[6 + j] == -1);
  CHECK(isohalo_halo_free(&halo) == MPI_SUCCESS);
  CHECK(isohalo_halo_create(cart, owned, 2, ISOHALO_SHAPE_STAR, 1, 2, MPI_DOUBLE, &halo) == MPI_SUCCESS);
  CHECK(class_of(isohalo_halo_finish(halo)) == MPI_ERR_REQUEST);
  CHECK(class_of(isohalo_halo_start(halo, NULL)) == MPI_ERR_BUFFER);
  CHECK(isohalo_halo_start(halo, array) == MPI_SUCCESS);
  CHECK(class_of(isohalo_halo_start(halo, array)) == MPI_ERR_REQUEST);
  copy = halo;
  CHECK(isohalo_halo_free(&halo) == MPI_SUCCESS); /* completes what is in flight */
  CHECK(class_of(isohalo_halo_exchange(copy, array)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_free(&copy)) == MPI_ERR_ARG);
  MPI_Comm_free(&cart);
}

/* Cells of two types and faces of both dimensions in one exchange; one dimension is periodic. Two steps of a stencil that
 * reads all eight neighbors, or, by a list, those below and to the right. */
static void several(MPI_Datatype element, int by_list) {
  enum { width = 2 };
  const int down_right[4] = {-1, 0, 0, 1};
  const int periods[2] = {0, 1}, faces[4] = {-1, 0, 1, -1}, wrong_faces[4] = {-1, 0, 2, -1};
  const MPI_Datatype types[4] = {MPI_DOUBLE, MPI_INT, MPI_DOUBLE, element};
  const size_t sizes[4] = {sizeof(double), sizeof(int), sizeof(double), sizeof(cell)};
  int dims[2] = {0, 0}, coords[2], k, wrong = 0;
  long long owned[2] = {5, 4}, extent[4][2], i, j;
  void *arrays[4];
  MPI_Comm cart;
  isohalo_halo halo = NULL;
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
  MPI_Cart_coords(cart, rank, 2, coords);
  MPI_Comm_set_errhandler(cart, MPI_ERRORS_RETURN);
  CHECK(class_of(isohalo_halo_create_arrays(cart, owned, width, ISOHALO_SHAPE_MOORE, 1, 2, -1, types, faces, &halo)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create_arrays(cart, owned, width, ISOHALO_SHAPE_MOORE, 1, 2, 4, NULL, faces, &halo)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create_arrays(cart, owned, width, ISOHALO_SHAPE_MOORE, 1, 2, 4, types, wrong_faces, &halo)) ==
        MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create_arrays_offsets(cart, owned, width, 2, NULL, 2, 4, types, faces, &halo)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create_arrays_offsets(cart, owned, width, 2, down_right, 3, 4, types, faces, &halo)) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_create_arrays_offsets(cart, owned, width, 2, down_right, 2, 4, types, wrong_faces, &halo)) ==
        MPI_ERR_ARG);
  if (by_list)
    CHECK(isohalo_halo_create_arrays_offsets(cart, owned, width, 2, down_right, 2, 4, types, faces, &halo) == MPI_SUCCESS);
  else
    CHECK(isohalo_halo_create_arrays(cart, owned, width, ISOHALO_SHAPE_MOORE, 1, 2, 4, types, faces, &halo) == MPI_SUCCESS);
  for (k = 0; k < 4; ++k) {
    for (j = 0; j < 2; ++j)
      extent[k][j] = owned[j] + (faces[k] == j && !periods[j] && coords[j] == dims[j] - 1) + 2 * width;
    arrays[k] = calloc((size_t)(extent[k][0] * extent[k][1]), sizes[k]);
  }
  /* turn 0 writes what is owned, turn 1 looks at all of it */
  for (i = 0; i < 2; ++i) {
    int turn = (int)i;
    if (turn == 1) CHECK(isohalo_halo_exchange_arrays(halo, arrays) == MPI_SUCCESS);
    for (k = 0; k < 4; ++k) {
      long long y, x;
      for (y = 0; y < extent[k][0]; ++y)
        for (x = 0; x < extent[k][1]; ++x) {
          const long long global_y = coords[0] * owned[0] + y - width, columns = dims[1] * owned[1];
          const long long global_x = (coords[1] * owned[1] + x - width + columns) % columns;
          const long long rows = dims[0] * owned[0] + (faces[k] == 0);
          const int mine = y >= width && y < extent[k][0] - width && x >= width && x < extent[k][1] - width;
          const long long below = width - y, right = x - (extent[k][1] - width) + 1; /* layers beyond the block */
          const int wanted = mine || !by_list ||
                             (y < extent[k][0] - width && x >= width && (below > 0 ? below : 0) + (right > 0 ? right : 0) <= 2);
          const int there = wanted && global_y >= 0 && global_y < rows;
          const double value = (double)(1 + k + 4 * (global_y * columns + global_x));
          const long long at = y * extent[k][1] + x;
          double found = 0;
          if (turn == 0 && mine) {
            if (k == 1) ((int *)arrays[k])[at] = (int)value;
            if (k == 3) ((cell *)arrays[k])[at].a = value;
            if (k == 0 || k == 2) ((double *)arrays[k])[at] = value;
          }
          if (k == 1) found = ((int *)arrays[k])[at];
          if (k == 3) found = ((cell *)arrays[k])[at].a;
          if (k == 0 || k == 2) found = ((double *)arrays[k])[at];
          wrong += turn == 1 && found != (there ? value : 0);
        }
    }
  }
  CHECK(wrong == 0);
  CHECK(class_of(isohalo_halo_exchange(halo, arrays[0])) == MPI_ERR_ARG);
  CHECK(class_of(isohalo_halo_exchange_arrays(halo, NULL)) == MPI_ERR_BUFFER);
  CHECK(isohalo_halo_free(&halo) == MPI_SUCCESS);
  for (k = 0; k < 4; ++k) free(arrays[k]);
  MPI_Comm_free(&cart);
}

int main(int argc, char **argv) {
  int d, periodic;
  MPI_Datatype element;
  begin_checks(&argc, &argv);
  element = cell_type();
  for (d = 1; d <= 4; ++d)
    for (periodic = 0; periodic < 1 << d; periodic += d < 3 ? 1 : 3) all_cases(d, periodic, element);
  errors();
  several(element, 0);
  several(element, 1);
  MPI_Type_free(&element);
  return end_checks();
}
