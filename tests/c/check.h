/* What the C tests share: counted failures, printed by the rank that meets them, and one verdict of all ranks. */
#ifndef ISOHALO_TESTS_C_CHECK_H
#define ISOHALO_TESTS_C_CHECK_H

#include <isohalo.h>
#include <stdio.h>
#include <stdlib.h>

static int failures = 0, rank = 0, size = 1;

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      ++failures;                                                                               \
      fprintf(stderr, "rank %d: %s:%d: %s (%s)\n", rank, __FILE__, __LINE__, #condition,        \
              isohalo_error_text());                                                            \
    }                                                                                           \
  } while (0)

static int class_of(int rc) {
  int c = MPI_SUCCESS;
  MPI_Error_class(rc, &c);
  return c;
}

static void begin_checks(int *argc, char ***argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* MPICH 5 says there what no communicator is at fault for */
}

/* Ends MPI; what main returns. */
static int end_checks(void) {
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d failures\n", all);
  MPI_Finalize();
  return all ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
