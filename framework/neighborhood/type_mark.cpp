#include "framework/neighborhood/type_mark.hpp"

#include <algorithm>

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

namespace {

int mark_key() {
  static const int key = [] {
    int k = MPI_KEYVAL_INVALID;
    mpi_check(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &k, nullptr),
              "MPI_Type_create_keyval");
    return k;
  }();
  return key;
}

/// Null: it has none.
void* mark_of(MPI_Datatype type) {
  void* mark = nullptr;
  int found = 0;
  mpi_check(MPI_Type_get_attr(type, mark_key(), static_cast<void*>(&mark), &found), "MPI_Type_get_attr");
  return found ? mark : nullptr;
}

}  // namespace

TypeMarks::TypeMarks(const NeighborCall& call) {
  for (const auto* side : {&call.send, &call.receive})
    for (const Block& b : *side) add(b.type);
  if (call.is_reduction()) add(call.fold.into.type);
}

void TypeMarks::add(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return;  // of an absent block
  for (const auto& known : marks_)
    if (known.first == type) return;
  if (layout_of(type).predefined) return;
  void* mark = mark_of(type);
  if (!mark) {
    static std::uintptr_t last = 0;
    mark = reinterpret_cast<void*>(++last);
    mpi_check(MPI_Type_set_attr(type, mark_key(), mark), "MPI_Type_set_attr");
  }
  marks_.emplace_back(type, mark);
}

bool TypeMarks::hold() const {
  return std::all_of(marks_.begin(), marks_.end(), [](const auto& m) { return mark_of(m.first) == m.second; });
}

}  // namespace isohalo::detail
