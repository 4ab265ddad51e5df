#pragma once
/// The closed forms of the paper: what its algorithms cost on `sockets` sockets of `cores` ranks each, in a vector
/// of `lines` cache lines, in nanoseconds. schedule_ns counts the same from a schedule, rank by rank.
///
/// Source: Li, Hoefler, Snir 2013, sections 2.2 to 2.4, equations (1) to (11).

namespace isohalo {

struct NodeEquations {
  double sockets = 1, cores = 1;           ///< s, q
  double near_latency = 0, near_line = 0;  ///< a, b within a socket
  double near_shared = 0;                  ///< B
  double far_latency = 0, far_line = 0;    ///< a, b between sockets
  double far_shared = 0;                   ///< B

  double reduce_in_socket(double lines, int arity) const;     ///< (1)
  double reduce_over_sockets(double lines, int arity) const;  ///< (2)
  double reduce(double lines, int arity) const;               ///< (3)
  double broadcast_one_stage(double lines) const;
  double broadcast_two_stages(double lines) const;
  double broadcast(double lines) const;            ///< (4)
  double tree(double lines, int arity = 2) const;  ///< (5)
  double dissemination(double lines) const;        ///< (6) and (7)
  double tiled_in_socket(double lines) const;      ///< (8)
  double tiled_over_sockets(double lines) const;   ///< (9)
  double tiled_reduce(double lines) const;         ///< (10)
  double tiled(double lines) const;                ///< (11)
};

}  // namespace isohalo
