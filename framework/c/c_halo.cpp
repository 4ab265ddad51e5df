/// The C interface of the halo exchange: HaloPlan for arrays whose dimension and element type are known at run
/// time.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"
#include "framework/c/blocks.hpp"
#include "framework/c/handles.hpp"
#include "framework/halo/faces.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/halo/run_time_elements.hpp"
#include "framework/isohalo.h"
#include "framework/neighborhood/iso_comm.hpp"

using isohalo::ArgumentError;
using isohalo::Communicator;
using isohalo::ElementLayout;
using isohalo::detail::freed;
using isohalo::detail::guarded;
using isohalo::detail::HandleTable;
using isohalo::detail::require;

namespace {

/// A halo of any dimension.
struct AnyHalo {
  Communicator comm;
  std::size_t arrays;
  std::function<void(void* const[])> start;
  std::function<void()> progress, finish;
  bool in_flight = false;

  MPI_Comm user() const { return comm.user(); }
};

/// What an array holds, and where: on the faces of a dimension, or in cells (-1).
struct Element {
  ElementLayout layout;
  int face;
};

HandleTable<AnyHalo, isohalo_halo>& halos() {
  static HandleTable<AnyHalo, isohalo_halo> table(MPI_ERR_ARG, "this is no halo, or one that was freed");
  return table;
}

/// Offsets of the user's own in place of a shape and a radius.
struct Listed {
  int s = 0;
  const int* relative = nullptr;
};

struct Wanted {
  const long long* owned;
  int width;
  isohalo_shape shape;
  int radius, depth;
  std::optional<std::span<const MPI_Datatype>> list;  ///< of the elements' types; none: it was no list
  const int* faces;
  std::optional<Listed> offsets;
  std::span<const MPI_Datatype> elements() const { return *list; }
};

std::optional<std::span<const MPI_Datatype>> listed(int n, const MPI_Datatype elements[]) {
  if (n < 0 || (n > 0 && !elements)) return std::nullopt;
  return std::span(elements, static_cast<std::size_t>(n));
}

template <int D>
isohalo::StencilShape<D> shape_of(const Wanted& w) {
  using Shape = isohalo::StencilShape<D>;
  if (w.offsets) {
    isohalo::Offsets<D> offsets(static_cast<std::size_t>(w.offsets->s));
    for (std::size_t k = 0; k < offsets.size(); ++k)
      for (std::size_t j = 0; j < D; ++j) offsets[k][j] = w.offsets->relative[k * D + j];
    return Shape::of(offsets);
  }
  return w.shape == ISOHALO_SHAPE_MOORE  ? Shape::moore(w.radius)
         : w.shape == ISOHALO_SHAPE_STAR ? Shape::star(w.radius)
                                         : Shape::von_neumann(w.radius);
}

/// The largest coordinate of a list of offsets. Throws ArgumentError for a list that is none.
int reach(const Listed& listed, int dimensions) {
  constexpr int kMost = 1000;  // as StencilShape has it
  require(dimensions >= 1 && dimensions <= 4, MPI_ERR_DIMS, "halo: the communicator must have 1 to 4 dimensions");
  require(listed.s >= 0 && listed.s <= 1 << 20, MPI_ERR_ARG, "halo: the number of offsets must be 0 to 2^20");
  require(listed.s == 0 || listed.relative, MPI_ERR_ARG, "halo: the list of offsets is NULL");
  int most = 0;
  for (int k = 0; k < listed.s * dimensions; ++k) {
    require(listed.relative[k] >= -kMost && listed.relative[k] <= kMost, MPI_ERR_ARG,
            "halo: an offset is beyond +-1000 cells");
    most = std::max(most, std::abs(listed.relative[k]));
  }
  return most;
}

/// What this rank alone can find wrong.
void check(const Wanted& w, int dimensions) {
  require(dimensions >= 1 && dimensions <= 4, MPI_ERR_DIMS, "halo: the communicator must have 1 to 4 dimensions");
  require(w.owned, MPI_ERR_ARG, "halo: the array of owned extents is NULL");
  require(w.list.has_value(), MPI_ERR_ARG,
          "halo: the number of arrays is negative, or the list of element types NULL");
  require(w.shape >= ISOHALO_SHAPE_MOORE && w.shape <= ISOHALO_SHAPE_VON_NEUMANN, MPI_ERR_ARG,
          "halo: unknown shape: there are ISOHALO_SHAPE_MOORE, _STAR and _VON_NEUMANN");
  for (std::size_t k = 0; k < w.elements().size(); ++k) {
    require(w.elements()[k] != MPI_DATATYPE_NULL, MPI_ERR_TYPE, "halo: the element type is MPI_DATATYPE_NULL");
    if (w.faces && (w.faces[k] < -1 || w.faces[k] >= dimensions))
      throw ArgumentError(MPI_ERR_ARG, "halo: array " + std::to_string(k) +
                                           " is said to lie on faces of dimension " + std::to_string(w.faces[k]) +
                                           ": there are 0 to " + std::to_string(dimensions - 1) +
                                           ", and -1 for cells");
  }
  const auto named = [](const char* name, int value) {
    if (value < 0)
      throw ArgumentError(MPI_ERR_ARG, "halo: " + std::string(name) + " " + std::to_string(value) + " is negative");
  };
  named("radius", w.radius), named("depth", w.depth), named("width", w.width);
  if (static_cast<std::int64_t>(w.radius) * w.depth > w.width)
    throw ArgumentError(MPI_ERR_ARG, "halo: " + std::to_string(w.depth) + " steps of radius " +
                                         std::to_string(w.radius) + " read " +
                                         std::to_string(static_cast<std::int64_t>(w.radius) * w.depth) +
                                         " ghost layers, the array has " + std::to_string(w.width) +
                                         ": use a wider array or a smaller depth");
  for (const MPI_Datatype element : w.elements()) {
    const isohalo::TypeLayout layout = isohalo::layout_of(element);
    require(layout.size > 0 && layout.extent > 0, MPI_ERR_TYPE,
            "halo: the element type has no data or no positive extent");
  }
}

/// The lengths of the elements' runs, which are arrays of an exchange, as text.
std::string runs_text(const Wanted& w, const Communicator& comm) {
  std::string text;
  for (const MPI_Datatype type : w.elements()) {
    const ElementLayout element(type, comm);
    std::vector<std::int64_t> lengths;
    for (const auto& run : element.runs()) lengths.push_back(run.length);
    text += (text.empty() ? "" : "; ") + isohalo::text_of_list(lengths);
  }
  return text;
}

template <int D>
std::unique_ptr<AnyHalo> make(MPI_Comm cart, const Communicator& comm, const isohalo::Mesh& mesh, const Wanted& w) {
  const auto domain = isohalo::detail::domain_of_blocks<D>(cart, comm, mesh, w.owned, "halo");
  std::vector<Element> elements;
  for (std::size_t k = 0; k < w.elements().size(); ++k)
    elements.push_back({ElementLayout(w.elements()[k], comm), w.faces ? w.faces[k] : -1});
  const auto plan = std::make_shared<isohalo::HaloPlan<D>>(domain, shape_of<D>(w), w.depth);
  return std::make_unique<AnyHalo>(
      AnyHalo{domain.comm(), elements.size(),
              [plan, domain, width = w.width, elements,
               list = std::vector<isohalo::ErasedArray<D>>()](void* const arrays[]) mutable {
                list.clear();
                for (std::size_t k = 0; k < elements.size(); ++k) {
                  const auto& [layout, face] = elements[k];
                  const auto owned = face < 0 ? domain.owned() : isohalo::owned_faces(domain, face);
                  for (const auto& run : isohalo::adopt_elements(arrays[k], layout, owned, width))
                    list.push_back(isohalo::on_faces(run, face));
                }
                plan->start(list);
              },
              [plan] { plan->progress(); }, [plan] { plan->finish(); }});
}

void create(MPI_Comm cart, Wanted w, isohalo_halo* halo) {
  const auto mesh = isohalo::mesh_of(cart);
  const Communicator comm = Communicator::of(cart);
  const int d = mesh->dimensions();
  // Arguments that only some ranks got wrong must not leave the others waiting.
  const std::string call = w.offsets ? "isohalo_halo_create_offsets" : "isohalo_halo_create";
  isohalo::detail::agree_arguments(comm, call, [&] {
    require(halo, MPI_ERR_ARG, "the place for the halo is NULL");
    if (w.offsets) w.radius = reach(*w.offsets, d);
    check(w, d);
    std::vector<isohalo::Argument> arguments{{"width", std::to_string(w.width)},
                                             {"depth", std::to_string(w.depth)}};
    if (w.offsets) {
      arguments.push_back(
          {"offsets", isohalo::text_of_list(std::span(w.offsets->relative, std::size_t(w.offsets->s * d)))});
    } else {
      constexpr std::array names{"ISOHALO_SHAPE_MOORE", "ISOHALO_SHAPE_STAR", "ISOHALO_SHAPE_VON_NEUMANN"};
      arguments.push_back({"shape", names[static_cast<std::size_t>(w.shape)]});
      arguments.push_back({"radius", std::to_string(w.radius)});
    }
    arguments.push_back({"element (bytes of its runs)", runs_text(w, comm)});
    if (w.faces) arguments.push_back({"faces", isohalo::text_of_list(std::span(w.faces, w.elements().size()))});
    return arguments;
  });
  constexpr std::array makers{make<1>, make<2>, make<3>, make<4>};
  *halo = halos().add(makers[static_cast<std::size_t>(d) - 1](cart, comm, *mesh, w));
}

template <int D>
void choose_grid(int ranks, const long long shape[], int dims[]) {
  isohalo::Index<D> cells;
  for (int j = 0; j < D; ++j) cells[j] = shape[j];
  const auto grid = isohalo::choose_process_grid<D>(cells, ranks);
  for (int j = 0; j < D; ++j) dims[j] = grid[j];
}

}  // namespace

int isohalo_halo_create(MPI_Comm cart, const long long owned[], int width, isohalo_shape shape, int radius,
                        int depth, MPI_Datatype element, isohalo_halo* halo) {
  return isohalo_halo_create_arrays(cart, owned, width, shape, radius, depth, 1, &element, nullptr, halo);
}

int isohalo_halo_create_arrays(MPI_Comm cart, const long long owned[], int width, isohalo_shape shape, int radius,
                               int depth, int n, const MPI_Datatype elements[], const int faces[],
                               isohalo_halo* halo) {
  return guarded(cart, [&] {
    create(cart, {owned, width, shape, radius, depth, listed(n, elements), faces, std::nullopt}, halo);
  });
}

int isohalo_halo_create_offsets(MPI_Comm cart, const long long owned[], int width, int s, const int relative[],
                                int depth, MPI_Datatype element, isohalo_halo* halo) {
  return isohalo_halo_create_arrays_offsets(cart, owned, width, s, relative, depth, 1, &element, nullptr, halo);
}

int isohalo_halo_create_arrays_offsets(MPI_Comm cart, const long long owned[], int width, int s,
                                       const int relative[], int depth, int n, const MPI_Datatype elements[],
                                       const int faces[], isohalo_halo* halo) {
  return guarded(cart, [&] {
    const Listed offsets{s, relative};
    create(cart, {owned, width, ISOHALO_SHAPE_MOORE, 0, depth, listed(n, elements), faces, offsets}, halo);
  });
}

int isohalo_halo_start_arrays(isohalo_halo halo, void* const arrays[]) {
  return guarded(halos(), halo, [&](AnyHalo& h) {
    require(!h.in_flight, MPI_ERR_REQUEST, "halo: start while an exchange is in flight: finish it first");
    require(arrays || h.arrays == 0, MPI_ERR_BUFFER, "halo: the list of arrays is NULL");
    try {
      h.start(arrays);
      h.in_flight = true;
    } catch (const isohalo::UsageError&) {  // agreed on all ranks, the first time
      for (std::size_t k = 0; k < h.arrays; ++k)
        if (!arrays[k])
          throw ArgumentError(MPI_ERR_BUFFER, h.arrays == 1 ? std::string("halo: the array is NULL")
                                                            : "halo: array " + std::to_string(k) + " is NULL");
      throw;
    }
  });
}

int isohalo_halo_start(isohalo_halo halo, void* array) {
  const int rc = guarded(halos(), halo, [&](const AnyHalo& h) {
    require(h.arrays == 1, MPI_ERR_ARG,
            "halo: made for several arrays: use isohalo_halo_exchange_arrays, or _start_arrays");
  });
  return rc == MPI_SUCCESS ? isohalo_halo_start_arrays(halo, &array) : rc;
}

int isohalo_halo_exchange_arrays(isohalo_halo halo, void* const arrays[]) {
  const int rc = isohalo_halo_start_arrays(halo, arrays);
  return rc == MPI_SUCCESS ? isohalo_halo_finish(halo) : rc;
}

int isohalo_halo_progress(isohalo_halo halo) {
  return guarded(halos(), halo, [](AnyHalo& h) {
    if (h.in_flight) h.progress();
  });
}

int isohalo_halo_finish(isohalo_halo halo) {
  return guarded(halos(), halo, [](AnyHalo& h) {
    require(h.in_flight, MPI_ERR_REQUEST, "halo: finish without start");
    h.in_flight = false;
    h.finish();
  });
}

int isohalo_halo_exchange(isohalo_halo halo, void* array) {
  const int rc = isohalo_halo_start(halo, array);
  return rc == MPI_SUCCESS ? isohalo_halo_finish(halo) : rc;
}

int isohalo_halo_free(isohalo_halo* halo) {
  return freed(halos(), halo, [](AnyHalo& last) {
    if (last.in_flight) last.finish();
  });
}

int isohalo_process_grid(int ranks, int d, const long long shape[], int dims[]) {
  return guarded(MPI_COMM_NULL, [&] {
    require(d >= 1 && d <= 4, MPI_ERR_DIMS, "process grid: a grid has 1 to 4 dimensions");
    require(shape && dims && ranks >= 1, MPI_ERR_ARG, "process grid: there must be arrays, and one rank or more");
    constexpr std::array choose{choose_grid<1>, choose_grid<2>, choose_grid<3>, choose_grid<4>};
    choose[static_cast<std::size_t>(d) - 1](ranks, shape, dims);
  });
}
