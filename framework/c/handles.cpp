#include "framework/c/handles.hpp"

#include <cstdio>

#include "framework/isohalo.h"

namespace isohalo::detail {

namespace {
std::string& last_error() {
  static std::string text;
  return text;
}
}  // namespace

int report(MPI_Comm comm, int code, const char* text) {
  last_error() = text;
  if (comm == MPI_COMM_NULL) return code;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(comm, &handler);
  const bool fatal = handler == MPI_ERRORS_ARE_FATAL;
  if (handler != MPI_ERRHANDLER_NULL) MPI_Errhandler_free(&handler);
  if (fatal) std::fprintf(stderr, "isohalo: error: %s\n", text);
  MPI_Comm_call_errhandler(comm, code);
  return code;
}

}  // namespace isohalo::detail

const char* isohalo_error_text(void) {
  return isohalo::detail::last_error().c_str();
}
