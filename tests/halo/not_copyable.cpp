// Must not compile: see tests/CMakeLists.txt.
#include <string>

#include "framework/halo/array_ref.hpp"

int main() {
  std::string cells[3];
  isohalo::adopt(cells, isohalo::Box<1>{{0}, {3}}, 0);
}
