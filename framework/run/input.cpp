#include "framework/run/input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "datatypes/error.hpp"
#include "framework/halo/row_update.hpp"
#include "framework/run/boundary_input.hpp"
#include "framework/run/words.hpp"
#include "framework/schedule/schedule.hpp"

namespace isohalo {

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 53;  ///< cells, steps, files
constexpr double kLargest = 1e300;
constexpr std::array kTypes{"float64", "float32", "uint8"};  ///< by ElementType

ListKey<std::int64_t> shape_key() {
  return {.min = 1,
          .max = kMost,
          .unit = "cells",
          .help = "cells per dimension, slowest first; one entry for each of 1 to 4 dimensions"};
}

}  // namespace

int read_dimensions(Config& config) {
  const std::string path = "domain.shape";
  const std::size_t before = config.error_count();
  const auto shape = config.integers(path, shape_key());
  if (shape.size() > 4) {
    config.error(path, fmt::format("domain.shape has {} dimensions; isohalo has 1 to 4", shape.size()));
    config.excuse("");
    config.finish();
  }
  if (config.error_count() == before) return static_cast<int>(shape.size());
  std::size_t dimensions = 2;
  for (const char* list :
       {"domain.boundary.high", "domain.boundary.low", "domain.origin", "domain.length", "domain.shape"})
    if (const std::size_t n = config.list_length(list); n >= 1 && n <= 4) dimensions = n;
  config.settle(path, std::vector<std::int64_t>(dimensions, 1));
  return static_cast<int>(dimensions);
}

const char* type_name(ElementType type) {
  return kTypes[static_cast<std::size_t>(type)];
}

void check_in_type(Config& config, const std::string& path, const std::string& what, double value,
                   ElementType type) {
  const double most = type == ElementType::float32 ? double{std::numeric_limits<float>::max()}
                      : type == ElementType::uint8 ? double{std::numeric_limits<std::uint8_t>::max()}
                                                   : std::numeric_limits<double>::max();
  if (!(std::abs(value) <= most) || (type == ElementType::uint8 && value < 0))
    config.error(path, fmt::format("{}: {} = {:g} is out of range of {}", path, what, value, type_name(type)));
}

namespace {

/// The values that domain.type may have with this kind of solver, the default first; all there are when the kind is
/// none.
std::vector<std::string> types_of(const SolverKinds& kinds, const std::string& kind, bool known) {
  std::vector<std::string> types{kTypes[0], kTypes[1]};
  if (known && kinds.types.contains(kind)) types = kinds.types.at(kind);
  if (!known)
    for (const auto& [other, more] : kinds.types) types.insert(types.end(), more.begin(), more.end());
  return types;
}

/// Of each kind of solver the numbers of dimensions that it takes: "1 or 2 or 3".
std::map<std::string, std::string> dimensions_of(const SolverKinds& kinds) {
  std::map<std::string, std::string> texts;
  [&]<int... D>(std::integer_sequence<int, D...>) {
    const auto add = [&](const auto& makers, int d) {
      for (const auto& [name, make] : makers)
        texts[name] += (texts[name].empty() ? "" : " or ") + std::to_string(d);
    };
    (add(kinds.of<D + 1>(), D + 1), ...);
  }
  (std::make_integer_sequence<int, 4>());
  return texts;
}

/// `types`: the values that domain.type may have, the default first; `fields`: of a solver of several.
template <int D>
GridSettings<D> read_grid(Config& config, const std::vector<std::string>& types,
                          const std::vector<BoundaryKind>& boundaries, const std::vector<std::string>& fields) {
  constexpr auto d = static_cast<std::size_t>(D);
  GridSettings<D> g;
  const auto shape = config.integers("domain.shape", shape_key());
  const auto length =
      config.numbers("domain.length", {d, std::vector<double>(d, 1.0), 0, kLargest, true, "length",
                                       "extent of the domain per dimension; a cell is length / shape wide"});
  const auto origin =
      config.numbers("domain.origin", {d, std::vector<double>(d, 0.0), -kLargest, kLargest, false, "length",
                                       "lower corner of the domain: least coordinate per dimension"});
  for (int j = 0; j < D; ++j) {
    const auto k = static_cast<std::size_t>(j);
    g.shape[j] = shape[k];
    g.length[j] = length[k];
    g.origin[j] = origin[k];
    g.spacing[j] = g.length[j] / static_cast<double>(g.shape[j]);
  }
  try {
    checked_cells<D>(g.shape);
  } catch (const UsageError& e) {
    config.error("domain.shape", std::string("domain.shape: ") + e.what());
  }
  const std::string type =
      config.text("domain.type", {types.front(), types, "type of the fields' values, in which steps are computed"});
  g.type = static_cast<ElementType>(std::find(kTypes.begin(), kTypes.end(), type) - kTypes.begin());
  read_boundaries(config, boundaries, fields, g);
  for (int j = 0; j < D; ++j) {
    if (!(g.spacing[j] * g.spacing[j] > 0 && std::isfinite(1 / (g.spacing[j] * g.spacing[j]))))
      config.error("domain.length",
                   fmt::format("domain.length: a cell of {:g} in dimension {} is too small: the inverse of "
                               "its square is not finite",
                               g.spacing[j], j));
  }
  return g;
}

/// `ranks`: of the run, which a schedule must fit.
template <int D>
ParallelSettings<D> read_parallel(Config& config, const Index<D>& shape, int ranks) {
  constexpr auto d = static_cast<std::size_t>(D);
  ParallelSettings<D> p;
  if (const std::string key = "parallel.process_grid";
      !config.is_auto(key, {key, "list of integers or \"auto\"", ">= 1", "\"auto\"", "ranks",
                            "ranks per dimension; their product is the number of ranks"})) {
    const auto grid = config.integers(key, {d, std::vector<std::int64_t>(d, 1), 1, 1 << 30, false, "", ""});
    p.process_grid.emplace();
    for (int j = 0; j < D; ++j) (*p.process_grid)[j] = static_cast<int>(grid[static_cast<std::size_t>(j)]);
  }
  if (const std::string key = "parallel.halo_depth";
      !config.is_auto(key, {key, "integer or \"auto\"", "1 .. 1000", "\"auto\"", "steps",
                            "steps per exchange of ghost cells: more make messages fewer and larger"}))
    p.halo_depth = static_cast<int>(config.integer(key, {1, 1, 1000, false, "steps", ""}));
  if (const std::string key = "parallel.tile";
      !config.is_auto(key, {key, "list of integers or \"auto\"", ">= 1", "\"auto\"", "cells",
                            "tiles in which a host makes the steps of an exchange; auto: what its caches hold"})) {
    const auto tile = config.integers(key, {d, std::vector<std::int64_t>(d, 1), 1, kMost, false, "", ""});
    p.sweeps.tile.emplace();
    for (std::size_t j = 0; j < d; ++j) {
      (*p.sweeps.tile)[static_cast<int>(j)] = tile[j];
      const std::int64_t most = shape[static_cast<int>(j)];
      if (!config.has_errors() && tile[j] > most)
        config.error(key, fmt::format("{}[{}] = {} is above domain.shape[{}]: use at most {}, or \"auto\"", key, j,
                                      tile[j], j, most));
    }
  }
  std::vector<std::string> ways{"auto"};
  ways.insert(ways.end(), std::begin(Fetch::kWayNames), std::end(Fetch::kWayNames));
  const std::string way =
      config.text("parallel.sweeps", {"auto", ways,
                                      "how a host's sweeps go through memory: as it is, fetched ahead, past the "
                                      "caches, or the same with more at a time; as it is and, with a residual, by "
                                      "single rows; auto: what is fastest by timing"});
  if (way != "auto")
    p.sweeps.way = static_cast<std::size_t>(std::find(ways.begin(), ways.end(), way) - ways.begin()) - 1;
  p.exchange = exchange_of_name(config.text(
      "parallel.exchange", {"auto", exchange_names(), "how ghost cells travel; auto: what is fastest by timing"}));
  p.on_device =
      config.text("parallel.space",
                  {"host",
                   {"host", "device"},
                   "where fields lie and steps are computed; device: Kokkos' default execution space"}) == "device";
  const std::string method = config.text(
      "parallel.reduction", {"auto",
                             {"auto", "tree", "binary_tree", "exact"},
                             "how sums over all cells are formed; auto: by the tree, after a restart as before"});
  p.reduction_is_auto = method == "auto";
  if (!p.reduction_is_auto) p.reduction.method = reduction_method(method);
  const std::string schedule = "parallel.schedule";
  p.reduction.schedule = config.text(
      schedule,
      {"auto", {}, "stages of messages by which a sum is formed, such as a2,a3 on 6 ranks; auto: what suits them"});
  try {
    if (p.reduction.schedule != "auto") Schedule::parse(p.reduction.schedule, ranks);
    refuse_schedule(p.reduction);
  } catch (const UsageError& e) {
    config.error(schedule, schedule + ": " + e.what());
  }
  p.alignment_tolerance =
      config.number("parallel.alignment_tolerance",
                    {0.02, 0, 0.5, false, "block extents",
                     "how far a border between ranks may move to where sums need fewer messages"});
  return p;
}

RunSettings read_run(Config& config) {
  RunSettings r;
  r.steps =
      config.integer("run.steps", {.min = 0,
                                   .max = kMost,
                                   .unit = "steps",
                                   .help = "steps of the whole run, those before a restart included; 0 = the "
                                           "checkpoint and, with output.picture_every, the picture of step 0"});
  r.stop_residual = config.number(
      "run.stop_residual", {0.0, 0, kLargest, false, "",
                            "stop when the residual, for poisson |r| / |r of u = 0|, is at most this; 0 = never"});
  r.residual_every =
      config.integer("run.residual_every",
                     {10, 0, kMost, false, "steps",
                      "steps between residuals; 0 = only at the end and with checkpoints, pictures and digests"});
  if (r.stop_residual > 0 && r.residual_every == 0)
    config.error("run.residual_every",
                 fmt::format("run.stop_residual = {:g} is never tested with run.residual_every = 0: set "
                             "run.residual_every to a number of steps, or leave run.stop_residual out",
                             r.stop_residual));
  r.time_limit_s = config.number(
      "run.time_limit_s", {0.0, 0, 1e9, false, "s", "end the run with a checkpoint after this time; 0 = no limit"});
  return r;
}

/// `fields`: of the solver; empty: they are not known.
OutputSettings read_output(Config& config, const std::string& input_name, const std::vector<std::string>& fields) {
  OutputSettings o;
  o.directory =
      config.text("output.directory",
                  {"out/" + input_name,
                   {},
                   "where files go, relative to the working directory; by default named after the input file"});
  if (o.directory.empty()) config.error("output.directory", "output.directory is empty: name a directory");
  o.checkpoint_every =
      config.integer("output.checkpoint_every",
                     {0, 0, kMost, false, "steps", "steps between checkpoints, files step_NNNNNNNN.h5; 0 = never"});
  o.picture_every =
      config.integer("output.picture_every",
                     {0, 0, kMost, false, "steps", "steps between pictures, files FIELD_NNNNNNNN.png; 0 = never"});
  o.digest_every = config.integer("output.digest_every",
                                  {0, 0, kMost, false, "steps", "steps between lines in digests.txt; 0 = never"});
  o.final_checkpoint = config.boolean("output.final_checkpoint", true, "write a checkpoint after the last step");
  o.keep = config.integer("output.keep",
                          {0, 0, kMost, false, "checkpoints", "how many of the newest are kept; 0 = all"});
  o.xdmf = config.boolean("output.xdmf", true,
                          "beside checkpoints in 2 and 3 dimensions, write .xmf files for ParaView and VisIt");
  o.picture_field = config.text("output.picture_field",
                                {fields.empty() ? "u" : fields.front(), fields, "the field that pictures show"});
  return o;
}

/// Records an error for tables by field of a solver that has but this one.
void refuse_by_field(Config& config, const std::string& kind, const std::string& field) {
  for (const std::string table : {"domain.boundary", "source"}) {
    const std::string own = table + "." + field;
    const bool taken = std::any_of(config.declared().begin(), config.declared().end(),
                                   [&](const KeyHelp& k) { return k.path.starts_with(table + "."); });
    if (!taken || !config.has_table(own)) continue;
    config.error(own, fmt::format("{}: tables by field are for solvers of several fields, and {} has one: leave "
                                  "\"{}.\" out",
                                  own, Config::canonical(kind), field));
    config.excuse(own);
  }
}

}  // namespace

template <int D>
Input<D> read_input(Config& config, const SolverKinds& kinds, const std::string& file, int ranks) {
  Input<D> in;
  const std::map<std::string, std::string> dimensions = dimensions_of(kinds);
  std::vector<std::string> names;
  for (const auto& [name, of_name] : dimensions) names.push_back(name);
  const std::size_t before = config.error_count();
  const std::string kind = config.text("solver.kind", {{}, names, "the equation; each kind has keys of its own"});
  if (config.error_count() == before && !kinds.of<D>().contains(kind))
    config.error("domain.shape", fmt::format("solver.kind = {} has {} dimensions, domain.shape has {}",
                                             Config::canonical(kind), dimensions.at(kind), D));
  const bool known = config.error_count() == before;
  if (!known)  // with the right kind other keys would be known
    for (const char* keys : {"solver", "source", "initial", "domain.boundary"}) config.excuse(keys);
  const std::filesystem::path path(file);
  const auto several = kinds.fields.find(kind);
  in.grid = read_grid<D>(config, types_of(kinds, kind, known), kinds.boundaries,
                         known && several != kinds.fields.end() ? several->second(D) : std::vector<std::string>{});
  in.grid.input_directory = path.parent_path();
  in.parallel = read_parallel<D>(config, in.grid.shape, ranks);
  const auto& makers = kinds.of<D>();
  in.model = (known ? makers.at(kind) : makers.begin()->second)(config, in.grid);
  if (known && in.parallel.on_device)
    if (const std::string why = in.model->against_device(); !why.empty())
      config.error("parallel.space", fmt::format("parallel.space = \"device\" is not for this input: {}; use "
                                                 "\"host\"",
                                                 why));
  in.run = read_run(config);
  const std::vector<std::string> fields = known ? in.model->field_names() : std::vector<std::string>{"u"};
  in.output = read_output(config, path.stem().string(), known ? fields : std::vector<std::string>());
  const bool of_one = known || config.has("initial.kind");  // a solver that is not known may have several
  for (std::size_t k = 0; k < fields.size() && of_one; ++k)
    in.initial.push_back(InitialField<D>::read(config, in.grid.on_faces(known ? in.model->face_of(k) : -1),
                                               fields[k], fields.size() == 1));
  if (in.model->has_source()) in.source = InitialField<D>::read_table(config, in.grid, "source", "constant");
  if (known && fields.size() == 1) refuse_by_field(config, kind, fields.front());
  return in;
}

std::map<std::string, std::string> repeatable(const Config& config) {
  auto keys = config.effective();
  std::erase_if(keys, [](const auto& entry) { return entry.first.ends_with(".data"); });
  return keys;
}

std::string physics_text(const Config& config) {
  std::string text;
  for (const auto& [key, value] : config.effective()) {
    const std::string table = key.substr(0, key.find('.'));
    const bool physics = table == "domain" || table == "solver" || table == "initial" || table == "source";
    const bool names_a_file = key.ends_with(".file") || key.ends_with(".dataset");
    if (physics && !names_a_file) text += key + " = " + value + "\n";
  }
  return text;
}

#define ISOHALO_INSTANTIATE(D) \
  template Input<D> read_input<D>(Config&, const SolverKinds&, const std::string&, int);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
