#include "framework/preload/process_mpi.hpp"

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "framework/preload/settings.hpp"

namespace isohalo::preload {

namespace {

constexpr const char* kAny = "PMPI_Get_library_version";  // every MPI since 3.0 has it

template <class Function>
Function* function(void* handle, const char* name) {
  return reinterpret_cast<Function*>(dlsym(handle, name));
}

/// The loaded file that defines an address, in which names can be looked up, and from now on those of this library
/// too.
void* file_of(void* address) {
  Dl_info info{};
  if (!dladdr(address, &info)) return nullptr;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
}

/// An MPI that came with a module which was loaded for itself alone, as mpi4py is.
void* loaded_apart() {
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* list) {
        if (info->dlpi_name && *info->dlpi_name)
          static_cast<std::vector<std::string>*>(list)->push_back(info->dlpi_name);
        return 0;
      },
      &files);
  for (const std::string& file : files) {
    void* const handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) continue;
    void* const found = dlsym(handle, kAny);
    void* const mpi = found ? file_of(found) : nullptr;
    dlclose(handle);
    if (mpi) return mpi;
  }
  return nullptr;
}

/// The file that MPI is in, or null.
void* mpi_file() {
  static void* const file = [] {
    void* const found = dlsym(RTLD_NEXT, kAny);
    void* const in_order = found ? file_of(found) : nullptr;
    return in_order ? in_order : found ? RTLD_DEFAULT : loaded_apart();
  }();
  return file;
}

/// Up to where it goes into versions and dates of all its parts.
std::string name_of(void* file) {
  std::vector<char> text(1 << 16);  // more than the longest of any MPI
  int length = 0;
  if (auto* const get = function<int(char*, int*)>(file, kAny)) get(text.data(), &length);
  std::string name = text.data(), line;
  for (char c : name.substr(0, name.find_first_of(",\n")))
    if (c == ':' || c == '\t' || c == ' ') {
      if (!line.empty() && line.back() != ' ') line += ' ';
    } else {
      line += c;
    }
  return line;
}

/// MPI 5.0's own binary interface, which the same MPIs have in another library. Those of the older one say -1.
bool standard_abi(void* file) {
  int major = -1, minor = -1;
  auto* const version = function<int(int*, int*)>(file, "PMPI_Abi_get_version");
  return version && version(&major, &minor) == 0 && major >= 1;
}

/// MPICH's initiative of 2013: MPICH, Intel MPI, MVAPICH and Cray's MPI have the same handles.
bool of_mpich(void* file, const std::string& name) {
  if (dlsym(file, "ompi_mpi_comm_world") || standard_abi(file)) return false;
  for (const char* of : {"MPICH", "Intel(R) MPI", "MVAPICH"})
    if (name.find(of) != std::string::npos) return true;
  return false;
}

int rank_of_launcher() {
  for (const char* name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"})
    if (const char* const rank = std::getenv(name)) return std::atoi(rank);
  return 0;
}

/// Handles are words of the size of a pointer here, as all MPIs can be called on the processors that we know.
int rank_in_world(void* file, bool of_mpich) {
  auto* const rank_of = function<int(std::uintptr_t, int*)>(file, "PMPI_Comm_rank");
  auto* const initialized = function<int(int*)>(file, "PMPI_Initialized");
  auto* const finalized = function<int(int*)>(file, "PMPI_Finalized");
  int rank = 0, begun = 0, ended = 0;
  std::uintptr_t world = 0;
  // The linker may have moved it into the program.
  for (void* place : {file, RTLD_DEFAULT})
    if (void* const open = dlsym(place, "ompi_mpi_comm_world")) world = reinterpret_cast<std::uintptr_t>(open);
  if (of_mpich) world = 0x44000000;
  if (standard_abi(file)) world = 0x101;
  if (world == 0 || !rank_of || !initialized || !finalized || initialized(&begun) != 0 || finalized(&ended) != 0 ||
      !begun || ended || rank_of(world, &rank) != 0)
    return rank_of_launcher();
  return rank;
}

ProcessMpi look() {
  ProcessMpi found;
  void* const file = mpi_file();
  found.rank = rank_of_launcher();
  if (dlsym(file, kAny) == nullptr) return found;
  found.name = name_of(file);
  const bool family = of_mpich(file, found.name);
  found.ours = family && dlsym(file, "PMPI_Type_get_envelope_c");
  found.rank = rank_in_world(file, family);
  if (found.rank != 0) return found;
  warn_of_settings();
  if (!found.ours && !switched_off())
    std::fprintf(stderr,
                 "isohalo: warning: libisohalo_mpi.so is for MPIs with the binary interface of MPICH 4, and this "
                 "program runs with %s%s: every call is passed on to it\n",
                 found.name.c_str(), standard_abi(file) ? " and the binary interface of MPI 5" : "");
  return found;
}

}  // namespace

const ProcessMpi& process_mpi() {
  static const ProcessMpi found = look();
  return found;
}

void* next_function(const char* name) {
  void* const next = dlsym(RTLD_NEXT, name);
  return next ? next : dlsym(mpi_file(), name);
}

}  // namespace isohalo::preload
