#include "tests/shm/node_equations.hpp"

#include <algorithm>
#include <cmath>

namespace isohalo {

namespace {

double steps(double n, double base) {
  return std::ceil(std::log(n) / std::log(base) - 1e-9);
}

}  // namespace

/// The paper's sum goes to i = h for h levels; as its section 3.4 unfolds it for six cores, level i of three has
/// half as many readers as the one below, the lowest q / n.
double NodeEquations::reduce_in_socket(double lines, int arity) const {
  double total = 0, readers = cores;
  for (int level = 0; level < steps(cores, arity); ++level) {
    readers = std::max(1.0, std::floor(readers / arity));
    total += near_latency + std::max(near_line, near_shared * readers) * lines;
  }
  return (arity - 1) * total;
}

double NodeEquations::reduce_over_sockets(double lines, int arity) const {
  return (arity - 1) * (far_latency + far_line * lines) * steps(sockets, arity);
}

double NodeEquations::reduce(double lines, int arity) const {
  return reduce_in_socket(lines, arity) + reduce_over_sockets(lines, arity);
}

double NodeEquations::broadcast_one_stage(double lines) const {
  if (sockets == 1) return near_latency + near_shared * (cores - 1) * lines;
  return far_latency + far_shared * cores * lines;
}

double NodeEquations::broadcast_two_stages(double lines) const {
  return near_latency + near_shared * (cores - 1) * lines + far_latency + far_line * lines;
}

double NodeEquations::broadcast(double lines) const {
  return std::min(broadcast_one_stage(lines), broadcast_two_stages(lines));
}

double NodeEquations::tree(double lines, int arity) const {
  return reduce(lines, arity) + broadcast(lines);
}

double NodeEquations::dissemination(double lines) const {
  const double power = std::exp2(std::floor(std::log2(cores) + 1e-9)), excess = cores - power;
  const double meeting = (near_latency + near_shared * power * lines) * steps(power, 2) +
                         (far_latency + far_shared * power * lines) * steps(sockets, 2);
  return meeting + (excess > 0 ? 2 * (near_latency + near_shared * excess * lines) : 0);
}

double NodeEquations::tiled_in_socket(double lines) const {
  return near_latency * cores + near_shared * cores * lines;
}

double NodeEquations::tiled_over_sockets(double lines) const {
  return (far_latency + far_shared * lines) * steps(sockets, 2);
}

double NodeEquations::tiled_reduce(double lines) const {
  return tiled_in_socket(lines) + tiled_over_sockets(lines);
}

double NodeEquations::tiled(double lines) const {
  return tiled_reduce(lines) + broadcast(lines);
}

}  // namespace isohalo
