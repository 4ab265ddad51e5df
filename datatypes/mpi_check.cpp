#include "datatypes/mpi_check.hpp"

#include <string>
#include <string_view>

#include "datatypes/error.hpp"

namespace isohalo {

namespace {

/// MPIs of one family understand each other's handles: MPICH's relatives have one binary interface, Open MPI's
/// another.
enum class Family { mpich, open, other };

#if defined(OPEN_MPI)
constexpr Family kBuiltWith = Family::open;
constexpr const char* kBuiltName = "Open MPI";
#elif defined(MPICH_VERSION) && !defined(MPI_ABI_VERSION)
constexpr Family kBuiltWith = Family::mpich;
constexpr const char* kBuiltName = "MPICH or a relative of it";
#else  // one that we do not know, or the interface of MPI 5, which all may have
constexpr Family kBuiltWith = Family::other;
constexpr const char* kBuiltName = "";
#endif

Family family_of(std::string_view library) {
  if (library.starts_with("Open MPI")) return Family::open;
  for (const char* relative : {"MPICH", "Intel(R) MPI", "MVAPICH"})
    if (library.find(relative) != library.npos) return Family::mpich;
  return Family::other;
}

/// What is wrong with the MPI that this process calls; empty: nothing.
std::string foreign_mpi() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  if (kBuiltWith == Family::other || MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "";
  const std::string_view all(text);
  const Family here = family_of(all);
  if (here == Family::other || here == kBuiltWith) return "";
  return std::string("isohalo was built with ") + kBuiltName + ", but this program runs with " +
         std::string(all.substr(0, all.find_first_of(",\n"))) +
         ", whose handles are others: build both with the same MPI, and start the program with that one's "
         "libraries";
}

}  // namespace

void mpi_check(int rc, const char* place, MPI_Comm comm) {
  if (rc == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(rc, text, &length);
  std::string who;
  int rank = 0;
  if (comm != MPI_COMM_NULL && MPI_Comm_rank(comm, &rank) == MPI_SUCCESS)
    who = "rank " + std::to_string(rank) + ": ";
  throw MpiError(rc, who + place + ": " + std::string(text, static_cast<std::size_t>(length)));
}

bool mpi_is_active() noexcept {
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  return started && !ended;
}

bool mpi_is_usable() noexcept {
  static int foreign = -1;  // not known: MPI is asked once
  if (!mpi_is_active()) return false;
  if (foreign < 0) foreign = foreign_mpi().empty() ? 0 : 1;
  return foreign == 0;
}

void require_mpi() {
  if (mpi_is_usable()) return;
  if (mpi_is_active()) throw UsageError(foreign_mpi());
  int started = 0;
  MPI_Initialized(&started);
  throw UsageError(started ? "isohalo is used after MPI_Finalize: end what uses it before"
                           : "isohalo is used before MPI_Init: initialise MPI first");
}

bool mpi_combines(MPI_Op op, MPI_Datatype type) {
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  mpi_check(MPI_Comm_get_errhandler(MPI_COMM_SELF, &before), "MPI_Comm_get_errhandler");
  mpi_check(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  double in = 0, out = 0;
  const int rc = MPI_Allreduce(&in, &out, 0, type, op, MPI_COMM_SELF);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, before);
  MPI_Errhandler_free(&before);
  return rc == MPI_SUCCESS;
}

}  // namespace isohalo
