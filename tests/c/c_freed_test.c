/* What is used after it was freed is an error by its code, on one rank and on those that wait for it, without a hang. */

#include "cart.h"

/* One rank has freed what the others still use. */
static void one_rank_has_freed(MPI_Comm cart) {
  const int list[2] = {1, -1};
  int form;
  if (size == 1) return;
  for (form = 0; form < 6; ++form) { /* before the first operation, and after it */
    const int last = rank == size - 1, near = last || rank == 0 || rank == size - 2;
    double out[2] = {1, 2}, in[2];
    isohalo_neighborhood iso, used;
    isohalo_request r = NULL;
    int code, before;
    CHECK(isohalo_neighborhood_create(cart, 2, list, &iso) == MPI_SUCCESS);
    if (form >= 3) CHECK(isohalo_neighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso) == MPI_SUCCESS);
    used = iso;
    if (last) CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
    before = handled;
    if (form % 3 == 0) code = isohalo_neighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, used);
    if (form % 3 == 1) code = isohalo_ineighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, used, &r);
    if (form % 3 == 2) code = isohalo_neighbor_alltoall_init(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, used, &r);
    if (last) {
      CHECK(class_of(code) == MPI_ERR_ARG);
      CHECK(handled == before + 1);
    } else {
      if (form % 3 == 2) {
        CHECK(code == MPI_SUCCESS);
        code = isohalo_start(r);
      }
      if (form % 3 && code == MPI_SUCCESS) code = isohalo_wait(&r);
      if (near) CHECK(class_of(code) == MPI_ERR_ARG);
      CHECK(near || code == MPI_SUCCESS || class_of(code) == MPI_ERR_ARG);
      if (r) CHECK(isohalo_request_free(&r) == MPI_SUCCESS);
      CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
    }
    CHECK(isohalo_neighborhood_create(cart, 2, list, &iso) == MPI_SUCCESS); /* the communicator is unharmed */
    CHECK(isohalo_neighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, iso) == MPI_SUCCESS);
    CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
  }
}

/* A request freed on one rank alone, before its first start or after it, and started there nevertheless: the others
 * learn it, and large blocks that they have sent from where they lie are theirs again when they have the error. */
static void one_rank_has_freed_its_request(MPI_Comm cart) {
  const int list[2] = {1, -1}, last = rank == size - 1, near = last || rank == 0 || rank == size - 2;
  int form;
  if (size == 1) return;
  for (form = 0; form < 4; ++form) {
    const int count = form % 2 ? 100000 : 1;
    double *out = calloc(2 * (size_t)count, sizeof *out);
    double *in = calloc(2 * (size_t)count, sizeof *in);
    isohalo_neighborhood iso;
    isohalo_request r = NULL, used;
    int code, before;
    CHECK(isohalo_neighborhood_create(cart, 2, list, &iso) == MPI_SUCCESS);
    CHECK(isohalo_neighbor_alltoall_init(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, iso, &r) == MPI_SUCCESS);
    if (form >= 2) {
      CHECK(isohalo_start(r) == MPI_SUCCESS);
      CHECK(isohalo_wait(&r) == MPI_SUCCESS);
    }
    CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
    used = r;
    if (last) CHECK(isohalo_request_free(&r) == MPI_SUCCESS);
    before = handled;
    code = isohalo_start(used);
    if (last) {
      CHECK(class_of(code) == MPI_ERR_REQUEST);
      CHECK(handled == before + 1);
      CHECK_CODE(isohalo_wait(&used), MPI_ERR_REQUEST);
    } else {
      if (code == MPI_SUCCESS) code = isohalo_wait(&r);
      if (near) CHECK(class_of(code) == MPI_ERR_REQUEST);
      if (near) CHECK(strstr(isohalo_error_text(), "freed") != NULL);
      CHECK(near || code == MPI_SUCCESS || class_of(code) == MPI_ERR_REQUEST);
      CHECK(isohalo_request_free(&r) == MPI_SUCCESS);
    }
    free(out);
    free(in);
    CHECK(isohalo_neighborhood_create(cart, 2, list, &iso) == MPI_SUCCESS); /* the communicator is unharmed */
    CHECK(isohalo_neighbor_alltoall(&form, 0, MPI_INT, &form, 0, MPI_INT, iso) == MPI_SUCCESS);
    CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
  }
}

/* A halo that one rank has freed and uses nevertheless, before the first exchange or after it; or that it frees when
 * its array was refused. */
static void one_rank_has_freed_its_halo(MPI_Comm cart) {
  const long long owned[1] = {4};
  const int last = rank == size - 1;
  int form, k;
  if (size == 1) return;
  for (form = 0; form < 3; ++form) {
    double array[6] = {0};
    isohalo_halo halo, used;
    int code = MPI_SUCCESS, before;
    CHECK(isohalo_halo_create(cart, owned, 1, ISOHALO_SHAPE_STAR, 1, 1, MPI_DOUBLE, &halo) == MPI_SUCCESS);
    for (k = 0; k < 3 && form > 0; ++k) CHECK(isohalo_halo_exchange(halo, array) == MPI_SUCCESS);
    used = halo;
    if (last) {
      if (form == 2) CHECK_CODE(isohalo_halo_exchange(halo, NULL), MPI_ERR_BUFFER);
      CHECK(isohalo_halo_free(&halo) == MPI_SUCCESS);
      if (form < 2) CHECK_CODE(isohalo_halo_exchange(used, array), MPI_ERR_ARG);
      CHECK_CODE(isohalo_halo_free(&used), MPI_ERR_ARG);
    } else {
      before = handled;
      for (k = 0; k < 20 && code == MPI_SUCCESS; ++k) code = isohalo_halo_exchange(halo, array);
      CHECK(class_of(code) == MPI_ERR_ARG);
      CHECK(handled == before + 1);
      CHECK(strstr(isohalo_error_text(), form == 2 ? "NULL" : "freed") != NULL);
      CHECK(isohalo_halo_free(&halo) == MPI_SUCCESS);
    }
    CHECK(isohalo_halo_create(cart, owned, 1, ISOHALO_SHAPE_STAR, 1, 1, MPI_DOUBLE, &halo) == MPI_SUCCESS);
    array[1] = 10 + rank, array[4] = 20 + rank;
    CHECK(isohalo_halo_exchange(halo, array) == MPI_SUCCESS);
    CHECK(array[0] == 20 + (rank + size - 1) % size && array[5] == 10 + (rank + 1) % size);
    CHECK(isohalo_halo_free(&halo) == MPI_SUCCESS);
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
  one_rank_has_freed(cart);
  one_rank_has_freed_its_request(cart);
  one_rank_has_freed_its_halo(cart);
  MPI_Comm_free(&cart);
  cart_freed_first(handler);
  MPI_Errhandler_free(&handler);
  return end_checks();
}
