#include "framework/mpi/check_level.hpp"

#include <cstdlib>
#include <string>

#include "datatypes/error.hpp"

namespace isohalo {

bool checks_communication() {
  static const bool checks = [] {
    const char* const word = std::getenv("ISOHALO_CHECK");
    if (!word) {
#ifdef NDEBUG
      return false;
#else
      return true;
#endif
    }
    const std::string level = word;
    if (level != "local" && level != "communication")
      throw UsageError("ISOHALO_CHECK is \"" + level + "\": use local or communication");
    return level == "communication";
  }();
  return checks;
}

}  // namespace isohalo
