/* Cartesian communicators of all ranks, and their errors counted. */
#ifndef ISOHALO_TESTS_C_CART_H
#define ISOHALO_TESTS_C_CART_H

#include <string.h>

#include "check.h"

static int handled = 0;

/* The code that is returned must have gone through the communicator's error handler once. */
#define CHECK_CODE(call, code)                       \
  do {                                               \
    const int before = handled, rc = (call);         \
    int class = MPI_SUCCESS;                         \
    MPI_Error_class(rc, &class);                     \
    CHECK(class == (code));                          \
    CHECK(handled == before + (rc != MPI_SUCCESS));  \
    CHECK(strlen(isohalo_error_text()) > 10);        \
  } while (0)

static void count_error(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  (void)code;
  ++handled;
}

static MPI_Comm make_cart(int d, const int periods[], MPI_Errhandler handler) {
  int dims[4] = {0, 0, 0, 0};
  MPI_Comm cart;
  MPI_Dims_create(size, d, dims);
  MPI_Cart_create(MPI_COMM_WORLD, d, dims, periods, 0, &cart);
  MPI_Comm_set_errhandler(cart, handler);
  return cart;
}

#endif
