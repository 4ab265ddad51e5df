#include "framework/run/input.hpp"

#include <algorithm>
#include <filesystem>

namespace isohalo {

namespace {

/// The values of domain.type; all there are when the kind of solver is none.
std::vector<std::string> types_of(const SolverKinds& kinds, const std::string& kind, bool known) {
  std::vector<std::string> types = read_types(kinds, known ? kind : "");
  if (!known)
    for (const auto& [other, more] : kinds.types) types.insert(types.end(), more.begin(), more.end());
  return types;
}

}  // namespace

template <int D>
Input<D> read_input(Config& config, const SolverKinds& kinds, const std::string& file, int ranks) {
  Input<D> in;
  std::vector<std::string> names;
  for (const auto& [name, make] : kinds.of<D>()) names.push_back(name);
  const std::size_t before = config.error_count();
  const std::string kind = config.text("solver.kind", {{}, names, "the equation; each kind has keys of its own"});
  const bool known = config.error_count() == before;
  if (!known)  // with the right kind other keys would be known
    for (const char* keys : {"solver", "source"}) config.excuse(keys);
  in.grid = read_grid<D>(config, types_of(kinds, kind, known));
  in.parallel = read_parallel<D>(config, ranks);
  in.model = kinds.of<D>().at(kind)(config, in.grid);
  in.run = read_run(config);
  const auto fields = in.model->field_names();
  const std::filesystem::path path(file);
  in.output = read_output(config, path.stem().string(), fields);
  for (const auto& f : fields)
    in.initial.push_back(InitialField<D>::read(config, in.grid, f, fields.size() == 1, path.parent_path()));
  if (in.model->has_source()) in.source = InitialField<D>::read_source(config, in.grid, path.parent_path());
  return in;
}

template Input<1> read_input<1>(Config&, const SolverKinds&, const std::string&, int);
template Input<2> read_input<2>(Config&, const SolverKinds&, const std::string&, int);
template Input<3> read_input<3>(Config&, const SolverKinds&, const std::string&, int);
template Input<4> read_input<4>(Config&, const SolverKinds&, const std::string&, int);

}  // namespace isohalo
