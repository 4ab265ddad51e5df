/// A program whose MPI is of another family than the one isohalo was built with is told so at first use, before any
/// handle is given to MPI. (Only the name that MPI gives itself is another one here.)

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "datatypes/error.hpp"
#include "framework/isohalo.h"
#include "framework/mpi/communicator.hpp"

#ifdef OPEN_MPI
static const char* const kName = "MPICH Version:      9.9\nMPICH Release date: soon";
#else
static const char* const kName = "Open MPI v9.9, package: of nobody";
#endif

extern "C" int MPI_Get_library_version(char* text, int* length) {
  std::strcpy(text, kName);
  *length = static_cast<int>(std::strlen(kName));
  return MPI_SUCCESS;
}

static bool named(const std::string& text) {
  const bool ok = text.find("isohalo was built with") != std::string::npos &&
                  text.find("9.9") != std::string::npos && text.find("soon") == std::string::npos &&
                  text.find("nobody") == std::string::npos;
  if (!ok) std::fprintf(stderr, "not the error of another MPI: \"%s\"\n", text.c_str());
  return ok;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool ok = false;
  try {
    isohalo::Communicator::of(MPI_COMM_WORLD);
  } catch (const isohalo::UsageError& e) {
    ok = named(e.what());
  }
  const int offset = 1;
  isohalo_neighborhood neighborhood = nullptr;  // MPI's error handler is not called: it would end the program
  ok = isohalo_neighborhood_create(MPI_COMM_WORLD, 1, &offset, &neighborhood) != MPI_SUCCESS && ok;
  ok = named(isohalo_error_text()) && ok;
  MPI_Finalize();
  return ok ? 0 : 1;
}
