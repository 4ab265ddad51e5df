/* Times blocking collectives as any program sees them. Knows MPI alone, so that the same source is a client of
 * every MPI. Each is called in a loop that nothing synchronises; rank 0 prints its median of 15 loops in
 * microseconds a call: lines  FUNCTION BYTES MICROSECONDS, where BYTES is the length of the larger buffer of a
 * rank. Exit code 1 when a result is wrong. usage: client_times [LARGEST_BYTES] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLoops = 15, kFunctions = 5 };
static const char* const names[kFunctions] = {"MPI_Allreduce", "MPI_Bcast", "MPI_Reduce", "MPI_Allgather",
                                              "MPI_Barrier"};
static double *in, *out;
static int rank, ranks;

static void call(int function, long bytes) {
  const int n = (int)(bytes / 8);
  const long part =
      bytes / 4 / ranks; /* of allgather's whole, in floats: a rank's part may be smaller than a double */
  switch (function) {
    case 0:
      MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      break;
    case 1:
      MPI_Bcast(rank == 0 ? in : out, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      break;
    case 2:
      MPI_Reduce(in, out, n, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
      break;
    case 3:
      MPI_Allgather(in, (int)part, MPI_FLOAT, out, (int)part, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    default:
      MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* Numbers of element i, which differ by rank. */
static double value(int r, long i) {
  return (double)(r + 1) * (double)(i % 1000 + 1);
}

static int wrong(int function, long bytes) {
  const long n = bytes / 8, part = bytes / 4 / ranks;
  const double all = 0.5 * ranks * (ranks + 1);
  long i, bad = 0;
  int r;
  for (i = 0; i < n; ++i) out[i] = -1;
  call(function, bytes);
  if (function == 0 || (function == 2 && rank == 0))
    for (i = 0; i < n; ++i) bad += out[i] != all * value(0, i);
  if (function == 1 && rank != 0)
    for (i = 0; i < n; ++i) bad += out[i] != value(0, i);
  if (function == 3) /* halves of doubles: compared as such, with those that every rank can make */
    for (r = 0; r < ranks; ++r)
      for (i = 0; i < part; ++i) {
        const double whole = value(r, i / 2);
        const size_t half = sizeof(float) * (size_t)(i % 2);
        bad += memcmp((const char*)out + sizeof(float) * (size_t)(r * part + i), (const char*)&whole + half,
                      sizeof(float)) != 0;
      }
  return bad != 0;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Of one call, in microseconds. */
static double median(int function, long bytes) {
  double times[kLoops], begin;
  const long wanted = (16L << 20) / (bytes + 4096), calls = wanted > 2000 ? 2000 : wanted < 8 ? 8 : wanted;
  int loop;
  long k;
  for (k = 0; k < calls / 4 + 3; ++k) call(function, bytes);
  for (loop = 0; loop < kLoops; ++loop) {
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (k = 0; k < calls; ++k) call(function, bytes);
    times[loop] = (MPI_Wtime() - begin) / (double)calls * 1e6;
  }
  qsort(times, kLoops, sizeof(double), by_size);
  return times[kLoops / 2];
}

int main(int argc, char** argv) {
  long largest, bytes, i;
  int f, failed = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  largest = argc > 1 ? atol(argv[1]) : 4L << 20;
  in = malloc((size_t)largest + 64), out = malloc((size_t)largest + 64);
  for (i = 0; i < largest / 8 + 8; ++i) in[i] = value(rank, i), out[i] = 0;
  for (f = 0; f < kFunctions; ++f) {
    for (bytes = f == 4 ? 0 : 8;; bytes = 4 * bytes < largest ? 4 * bytes : largest) {
      const double us = median(f, bytes);
      if (wrong(f, bytes) && ++failed < 5)
        fprintf(stderr, "rank %d: FAILED: %s of %ld bytes\n", rank, names[f], bytes);
      if (rank == 0) printf("%s %ld %.4f\n", names[f], bytes, us), fflush(stdout);
      if (bytes == largest || f == 4) break;
    }
  }
  free(in), free(out);
  MPI_Finalize();
  return failed != 0;
}
