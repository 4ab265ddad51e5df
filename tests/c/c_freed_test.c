/* What one rank has freed, could not make or begins otherwise is an error by its code, on that rank and on those that wait
 * for it, without a hang, and the communicator is as good as before. */

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
 * step. A persistent request of a neighborhood that was never used is left out: see isohalo.h. */
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
      if (last) CHECK_CODE(once((enum form)form, copy), MPI_ERR_ARG);
      if (last) CHECK_CODE(once((enum form)form, copy), MPI_ERR_ARG);
      communicator_is_unharmed(cart);
    }
  for (used = 0; used < 2; ++used) {
    double array[6] = {0};
    isohalo_halo halo, copy;
    CHECK(isohalo_halo_create(cart, owned, 1, ISOHALO_SHAPE_STAR, 1, 1, MPI_DOUBLE, &halo) == MPI_SUCCESS);
    if (used) CHECK(isohalo_halo_exchange(halo, array) == MPI_SUCCESS);
    copy = halo;
    CHECK(isohalo_halo_free(&halo) == MPI_SUCCESS);
    if (last) CHECK_CODE(isohalo_halo_exchange(copy, array), MPI_ERR_ARG);
    communicator_is_unharmed(cart);
  }
}

/* A neighborhood that could not be made on one rank is an error in the first operation of the others. */
static void one_rank_could_not_create(MPI_Errhandler handler) {
  const int periodic[1] = {1}, list[2] = {1, -1}, last = rank == size - 1;
  int form, turn;
  if (size == 1) return;
  for (form = BLOCKING; form <= CHECKED; ++form) {
    MPI_Comm cart = make_cart(1, periodic, handler);
    isohalo_neighborhood iso = NULL;
    int code = isohalo_neighborhood_create(cart, last ? -1 : 2, list, &iso);
    CHECK(class_of(code) == (last ? MPI_ERR_ARG : MPI_SUCCESS));
    for (turn = 0; turn < (form == BLOCKING ? 2 : 1) && !last; ++turn) {
      CHECK_CODE(once((enum form)form, iso), MPI_ERR_ARG);
      CHECK(strstr(isohalo_error_text(), "the number of neighbors is negative") != NULL);
    }
    if (!last) CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
    communicator_is_unharmed(cart);
    MPI_Comm_free(&cart);
  }
}

static void be_late(void) {
  const double end = MPI_Wtime() + 0.05;
  while (MPI_Wtime() < end) {
  }
}

/* One rank says late, on a communicator that the others have let go of, that it stays away: those on a later one, which MPI
 * may give the same context, do not hear it. */
static void later_communicators(MPI_Errhandler handler) {
  const int periodic[1] = {1}, list[2] = {1, -1}, last = rank == size - 1;
  int way;
  for (way = 0; way < 3; ++way) {
    MPI_Comm cart = make_cart(1, periodic, handler);
    isohalo_neighborhood iso = NULL, copy;
    if (way == 2) {
      if (last) be_late();
      CHECK(class_of(isohalo_neighborhood_create(cart, last ? -1 : 2, list, &iso)) == (last ? MPI_ERR_ARG : MPI_SUCCESS));
    } else {
      CHECK(isohalo_neighborhood_create(cart, 2, list, &iso) == MPI_SUCCESS);
    }
    copy = iso;
    if (iso) CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
    if (last && way < 2) {
      be_late();
      CHECK_CODE(once(way ? CHECKED : BLOCKING, copy), MPI_ERR_ARG);
    }
    MPI_Comm_free(&cart);
    cart = make_cart(1, periodic, handler);
    CHECK(isohalo_neighborhood_create(cart, 1, list, &iso) == MPI_SUCCESS);
    if (last) be_late(); /* the others listen */
    CHECK(once(way % 2 ? STARTED : BLOCKING, iso) == MPI_SUCCESS);
    CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
    communicator_is_unharmed(cart);
    MPI_Comm_free(&cart);
  }
}

/* The first operation is blocking on one rank and started on the others. */
static void one_rank_begins_otherwise(MPI_Comm cart) {
  const int list[2] = {1, -1}, last = rank == size - 1;
  isohalo_neighborhood iso;
  int turn;
  if (size == 1) return;
  CHECK(isohalo_neighborhood_create(cart, 2, list, &iso) == MPI_SUCCESS);
  for (turn = 0; turn < 2; ++turn) { /* it can do nothing any more */
    CHECK_CODE(once(turn || !last ? STARTED : BLOCKING, iso), MPI_ERR_ARG);
    CHECK(strstr(isohalo_error_text(), "blocking on some ranks") != NULL);
  }
  CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
  communicator_is_unharmed(cart);
}

/* A check that one rank makes with what it has freed. */
static void one_rank_cannot_check(MPI_Comm cart) {
  const int list[2] = {1, -1}, last = rank == size - 1;
  isohalo_neighborhood iso, copy;
  if (size == 1) return;
  CHECK(isohalo_neighborhood_create(cart, 2, list, &iso) == MPI_SUCCESS);
  copy = iso;
  if (last) CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
  CHECK_CODE(isohalo_neighborhood_check(copy), MPI_ERR_ARG);
  CHECK(strstr(isohalo_error_text(), "freed") != NULL);
  if (!last) CHECK(isohalo_neighborhood_free(&iso) == MPI_SUCCESS);
  communicator_is_unharmed(cart);
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
  one_rank_cannot_check(cart);
  one_rank_begins_otherwise(cart);
  all_have_freed(cart);
  one_rank_could_not_create(handler);
  later_communicators(handler);
  MPI_Comm_free(&cart);
  cart_freed_first(handler);
  MPI_Errhandler_free(&handler);
  return end_checks();
}
