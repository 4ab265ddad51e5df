/* Handles that were freed are errors by their code on the rank that uses them, and harm nothing else. */

#include "cart.h"

/* Every rank can still do on it what all do in step: first operations of several neighborhoods in flight, and a halo while
 * they are. */
static void communicator_is_unharmed(MPI_Comm cart) {
  enum { MANY = 3 };
  const int list[2] = {1, -1}, before = (rank + size - 1) % size, next = (rank + 1) % size;
  const long long owned[1] = {4};
  double array[6] = {0}, out[MANY], in[MANY][2];
  isohalo_neighborhood iso[MANY];
  isohalo_request r[MANY];
  isohalo_halo halo;
  int k;
  for (k = 0; k < MANY; ++k) CHECK(isohalo_neighborhood_create(cart, 2, list, &iso[k]) == MPI_SUCCESS);
  for (k = MANY - 1; k >= 0; --k) {
    out[k] = 30 * k + rank, in[k][0] = in[k][1] = -1;
    CHECK(isohalo_ineighbor_allgather(&out[k], 1, MPI_DOUBLE, in[k], 1, MPI_DOUBLE, iso[k], &r[k]) == MPI_SUCCESS);
  }
  CHECK(isohalo_halo_create(cart, owned, 1, ISOHALO_SHAPE_STAR, 1, 1, MPI_DOUBLE, &halo) == MPI_SUCCESS);
  array[1] = 10 + rank, array[4] = 20 + rank;
  CHECK(isohalo_halo_exchange(halo, array) == MPI_SUCCESS);
  CHECK(array[0] == 20 + before && array[5] == 10 + next);
  CHECK(isohalo_halo_free(&halo) == MPI_SUCCESS);
  for (k = 0; k < MANY; ++k) {
    CHECK(isohalo_wait(&r[k]) == MPI_SUCCESS);
    CHECK(in[k][0] == 30 * k + before && in[k][1] == 30 * k + next);
    CHECK(isohalo_neighbor_allgather(&out[k], 1, MPI_DOUBLE, in[0], 1, MPI_DOUBLE, iso[k]) == MPI_SUCCESS);
    CHECK(in[0][0] == 30 * k + before && in[0][1] == 30 * k + next);
    CHECK(isohalo_neighborhood_check(iso[k]) == MPI_SUCCESS);
    CHECK(isohalo_neighborhood_free(&iso[k]) == MPI_SUCCESS);
  }
}

/* One operation on a neighborhood, to its end. */
enum form { BLOCKING, STARTED, PERSISTENT, CHECKED };
static int once(enum form form, isohalo_neighborhood iso) {
  double out[2] = {1, 2}, in[2];
  isohalo_request r = NULL;
  int code;
  if (form == CHECKED) return isohalo_neighborhood_check(iso);
  if (form == BLOCKING) return isohalo_neighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso);
  if (form == STARTED) {
    code = isohalo_ineighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso, &r);
  } else {
    code = isohalo_neighbor_alltoall_init(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso, &r);
    if (code == MPI_SUCCESS) code = isohalo_start(r);
  }
  if (code == MPI_SUCCESS) code = isohalo_wait(&r);
  if (r) CHECK(isohalo_request_free(&r) == MPI_SUCCESS);
  return code;
}

/* What all ranks have freed and one uses nevertheless is that rank's error alone, and what all do afterwards is in
 * step. */
static void all_have_freed(MPI_Comm cart) {
  const int list[2] = {1, -1}, last = rank == size - 1;
  const long long owned[1] = {4};
  int form, used;
  for (form = BLOCKING; form <= CHECKED; ++form)
    for (used = 0; used < 2; ++used) {
      isohalo_neighborhood iso, copy;
      CHECK(isohalo_neighborhood_create(cart, 2, list, &iso) == MPI_SUCCESS);
      if (used) CHECK(once(form % 2 ? BLOCKING : STARTED, iso) == MPI_SUCCESS);
      copy = iso;
      CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
      if (last) CHECK(class_of(once((enum form)form, copy)) == MPI_ERR_ARG);
      if (last) CHECK(class_of(once((enum form)form, copy)) == MPI_ERR_ARG);
      communicator_is_unharmed(cart);
    }
  for (used = 0; used < 2; ++used) {
    double array[6] = {0};
    isohalo_halo halo, copy;
    CHECK(isohalo_halo_create(cart, owned, 1, ISOHALO_SHAPE_STAR, 1, 1, MPI_DOUBLE, &halo) == MPI_SUCCESS);
    if (used) CHECK(isohalo_halo_exchange(halo, array) == MPI_SUCCESS);
    copy = halo;
    CHECK(isohalo_halo_free(&halo) == MPI_SUCCESS);
    if (last) CHECK(class_of(isohalo_halo_exchange(copy, array)) == MPI_ERR_ARG);
    communicator_is_unharmed(cart);
  }
}

/* The cart may be freed before its neighborhoods; its error handler goes on to be called. */
static void cart_freed_first(MPI_Errhandler handler) {
  const int periodic[1] = {1}, list[1] = {1};
  MPI_Comm cart = make_cart(1, periodic, handler);
  isohalo_neighborhood iso;
  double out = rank, in = -1;
  CHECK(isohalo_neighborhood_create(cart, 1, list, &iso) == MPI_SUCCESS);
  MPI_Comm_free(&cart);
  CHECK(isohalo_neighbor_alltoall(&out, 1, MPI_DOUBLE, &in, 1, MPI_DOUBLE, iso) == MPI_SUCCESS);
  CHECK(in == (rank + size - 1) % size);
  CHECK_CODE(isohalo_neighbor_alltoall(&out, -1, MPI_DOUBLE, &in, 1, MPI_DOUBLE, iso), MPI_ERR_COUNT);
  CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
}

int main(int argc, char **argv) {
  const int periodic[1] = {1};
  MPI_Comm cart;
  MPI_Errhandler handler;
  begin_checks(&argc, &argv);
  MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)count_error, &handler);
  cart = make_cart(1, periodic, handler);
  all_have_freed(cart);
  MPI_Comm_free(&cart);
  cart_freed_first(handler);
  MPI_Errhandler_free(&handler);
  return end_checks();
}
