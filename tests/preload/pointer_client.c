/* A program of the MPI in pointer_mpi.c: are the words that it passes those that MPI gets? Whatever is read of a
 * handle is an error, because there is nothing where these point to. */
#include <stdio.h>
#include <string.h>

typedef unsigned long Word;
extern Word pointer_mpi_words[8];
extern const char* pointer_mpi_called;

static int failures;

static const Word w[8] = {0x7001122334455667ul, 0x7111222233334444ul, 0xffffffff80000001ul, 0x7abcdef012345678ul,
                          0x0000000100000000ul, 0x7ffffffffffffffful, 0xdeadbeefcafef00dul, 0x7000000080000000ul};

static void check(const char* name, int n, int result) {
  if (result == 40 + n && pointer_mpi_called && strcmp(pointer_mpi_called, name) == 0 &&
      memcmp(pointer_mpi_words, w, (size_t)n * sizeof(Word)) == 0)
    return;
  ++failures;
  fprintf(stderr, "FAILED: %s: result %d, MPI was asked for %s\n", name, result,
          pointer_mpi_called ? pointer_mpi_called : "nothing");
}

#define CALL(name, n, declared, ...) \
  extern int name declared;          \
  pointer_mpi_called = 0;            \
  check(#name, n, name(__VA_ARGS__));
#define FIVE(name) CALL(name, 5, (Word, Word, Word, Word, Word), w[0], w[1], w[2], w[3], w[4])
#define SIX(name) CALL(name, 6, (Word, Word, Word, Word, Word, Word), w[0], w[1], w[2], w[3], w[4], w[5])
#define SEVEN(name) \
  CALL(name, 7, (Word, Word, Word, Word, Word, Word, Word), w[0], w[1], w[2], w[3], w[4], w[5], w[6])
#define EIGHT(name) \
  CALL(name, 8, (Word, Word, Word, Word, Word, Word, Word, Word), w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7])

int main(void) {
  int round;
  for (round = 0; round < 2; ++round) {
    CALL(MPI_Barrier, 1, (Word), w[0])
    FIVE(MPI_Bcast)
    SEVEN(MPI_Reduce) SIX(MPI_Allreduce) EIGHT(MPI_Gather) SEVEN(MPI_Allgather) EIGHT(MPI_Scatter) FIVE(MPI_Bcast_c)
        SEVEN(MPI_Reduce_c) SIX(MPI_Allreduce_c) EIGHT(MPI_Gather_c) SEVEN(MPI_Allgather_c) EIGHT(MPI_Scatter_c)
  }
  {
    extern int MPI_Finalize(void);
    pointer_mpi_called = 0;
    check("MPI_Finalize", 0, MPI_Finalize());
  }
  return failures != 0;
}
