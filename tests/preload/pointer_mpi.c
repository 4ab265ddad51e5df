/* An MPI whose handles are pointers, as far as libisohalo_mpi.so meets it: notes the words that each function is
 * given. What it calls itself, and the binary interface that it claims, are POINTER_MPI_NAME and POINTER_MPI_ABI in
 * the environment. With the client below it is a program of another MPI. */
#include <stdlib.h>
#include <string.h>

typedef unsigned long Word; /* of the size of a pointer */
Word pointer_mpi_words[8];
const char* pointer_mpi_called;

static int note(const char* name, int n, const Word* words) {
  pointer_mpi_called = name;
  memset(pointer_mpi_words, 0, sizeof pointer_mpi_words);
  memcpy(pointer_mpi_words, words, (size_t)n * sizeof(Word));
  return 40 + n;
}

#define LIST(...) __VA_ARGS__
#define FUNCTION(name, n, parameters, words) \
  int P##name(parameters) {                  \
    const Word all[] = {words};              \
    return note(#name, n, all);              \
  }                                          \
  int name(parameters) __attribute__((weak, alias("P" #name)));
#define FIVE(name) FUNCTION(name, 5, LIST(Word a, Word b, Word c, Word d, Word e), LIST(a, b, c, d, e))
#define SIX(name) FUNCTION(name, 6, LIST(Word a, Word b, Word c, Word d, Word e, Word f), LIST(a, b, c, d, e, f))
#define SEVEN(name) \
  FUNCTION(name, 7, LIST(Word a, Word b, Word c, Word d, Word e, Word f, Word g), LIST(a, b, c, d, e, f, g))
#define EIGHT(name)                                                                       \
  FUNCTION(name, 8, LIST(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h), \
           LIST(a, b, c, d, e, f, g, h))

FUNCTION(MPI_Barrier, 1, LIST(Word a), LIST(a))
FIVE(MPI_Bcast)
SEVEN(MPI_Reduce)
SIX(MPI_Allreduce)
EIGHT(MPI_Gather)
SEVEN(MPI_Allgather)
EIGHT(MPI_Scatter)
FIVE(MPI_Bcast_c)
SEVEN(MPI_Reduce_c)
SIX(MPI_Allreduce_c)
EIGHT(MPI_Gather_c)
SEVEN(MPI_Allgather_c)
EIGHT(MPI_Scatter_c)

int MPI_Finalize(void) {
  return note("MPI_Finalize", 0, pointer_mpi_words);
}

int PMPI_Get_library_version(char* text, int* length) {
  const char* const name = getenv("POINTER_MPI_NAME");
  strcpy(text, name ? name : "Pointer MPI 1.0, of a test");
  *length = (int)strlen(text);
  return 0;
}

int PMPI_Abi_get_version(int* major, int* minor) {
  const char* const abi = getenv("POINTER_MPI_ABI");
  *major = abi ? atoi(abi) : -1;
  *minor = abi ? 0 : -1;
  return 0;
}
