#pragma once
/// Schedules of an allreduce: which rank sends its value to whom in which stage, and how what arrives is combined.
///
/// One `Schedule` object is what the simulator times, what the in-process run computes with and what the executors
/// over MPI execute. It stores a few numbers per stage; what a rank does in a stage is worked out when asked for,
/// so that a million ranks cost nothing.
///
/// Source: Ruefenacht, Bull, Booth 2017, "Generalisation of recursive doubling for AllReduce", section 4.2
/// (Algorithms 2 to 6, encoded form); dissemination: Hensgen et al. 1988, n-way by Hoefler et al. 2006;
/// elimination: Rabenseifner, Traeff 2004, "More efficient reduction algorithms for non-power-of-two number of
/// processors", the protocol without overlap for small vectors (2-1 elimination in the fours, 3-2 elimination in
/// the threes).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isohalo {

enum class StageKind : std::uint8_t {
  factor,         ///< aB: groups of B exchange all with all
  collapse,       ///< cTmB: of the ranks below T only every B-th stays, the others give it their value
  expand,         ///< eTmB: the reverse, with the result
  merge,          ///< mRgGaB: a factor stage in which R further ranks give their value to one of G groups
  inverse_merge,  ///< nRgGaB: a factor stage in which the R ranks also receive, from every G-th member
  dissemination,  ///< dK: to the ranks at K-1 multiples of the distance; for sets only
  eliminate,      ///< xQtT: the first 4Q ranks in fours, the next 3T in threes, the others in pairs: within these,
  settle,         ///< yQtT: the second step; two of each now hold the sum of their four, three or two
  resolve,        ///< zQtT: the others get the result
};

/// One stage in its encoded form. Numbers that the kind does not use keep their defaults.
struct Stage {
  StageKind kind = StageKind::factor;
  int base = 2;       ///< B; K of a dissemination
  int threshold = 0;  ///< T of collapse and expand; Q of an elimination
  int remainder = 0;  ///< R of merge and inverse merge; T of an elimination
  int groups = 1;     ///< G of merge and inverse merge

  friend bool operator==(const Stage&, const Stage&) = default;
};

/// "a3", "c6m2", "m1g2a3", ..
std::string to_text(const Stage& stage);
std::string to_text(std::span<const Stage> stages);

/// The stages of a comma-separated encoded form; the empty text has none. Throws UsageError that names the stage
/// and what is wrong with it when it is no such form. Whether the stages fit a number of ranks is Schedule's to
/// say.
std::vector<Stage> parse_stages(std::string_view text);

/// What one rank does in one stage: it sends the value that it holds at the start of the stage to each rank of
/// `send` in that order, and then holds
///
///     receive[0] op .. op receive[own-1] op (its value) op receive[own] op ..      (from left to right)
///
/// without its value when `replace`; the value it had when `receive` is empty. All members of a group get the same
/// bits from this, whatever `op`. Messages may be taken in any order of arrival, and combined in this one.
struct StageActions {
  std::vector<int> send;
  std::vector<int> receive;
  std::size_t own = 0;
  bool replace = false;
};

/// A schedule that fits its number of ranks: a value, a few numbers per stage.
class Schedule {
 public:
  /// Throws UsageError, naming stage, value, limit and way out, unless the stages are an allreduce of `ranks`
  /// ranks: afterwards every rank holds the contribution of every rank exactly once (at least once if a stage is a
  /// dissemination). Local; O(messages). What the check proves: schedule_check.hpp.
  Schedule(std::vector<Stage> stages, int ranks);
  /// The same from the encoded form.
  static Schedule parse(std::string_view text, int ranks);

  int ranks() const { return ranks_; }
  const std::vector<Stage>& stages() const { return stages_; }
  int size() const { return static_cast<int>(stages_.size()); }
  std::string text() const { return to_text(stages_); }

  /// A dissemination may bring a contribution twice: such a schedule is for sets (idempotent), not for plain sums.
  bool for_sets_only() const;

  /// What `rank` does in `stage` (0 ..), into `actions`, whose memory is reused. Time and memory O(messages of the
  /// rank in this stage).
  void actions(int stage, int rank, StageActions& actions) const;
  StageActions actions(int stage, int rank) const;

  /// Messages of all ranks in one stage, and the most that any rank sends in it (b_i of the cost model).
  std::int64_t messages(int stage) const;
  std::int64_t messages() const;
  std::int64_t most_sends(int stage) const;

  friend bool operator==(const Schedule& a, const Schedule& b) {
    return a.ranks_ == b.ranks_ && a.stages_ == b.stages_;
  }

 private:
  /// How the ranks are numbered in a stage: only `active` of them take part in factor stages, as virtual 0 ..
  struct Numbering {
    std::int64_t product = 1;  ///< of the bases of the earlier stages: m
    std::int64_t active = 1;
    int collapsed = 0;  ///< T of a collapse before (or in) this stage
    int collapse_base = 2;
    int remainder = 0;           ///< R of a merge before (or in) this stage
    int fours = -1, threes = 0;  ///< Q and T of an elimination before (or in) this stage; -1: none
  };

  void number_ranks();
  std::int64_t virtual_of(const Numbering& p, int rank) const;  ///< -1: not active
  int real_of(const Numbering& p, std::int64_t virtual_rank) const;
  void factor_actions(int stage, std::int64_t w, StageActions& a) const;
  void collapse_actions(int stage, int rank, StageActions& a) const;
  void merge_actions(int stage, int rank, StageActions& a) const;
  void inverse_merge_actions(int stage, int rank, StageActions& a) const;
  void elimination_actions(int stage, int rank, StageActions& a) const;
  void dissemination_actions(int stage, std::int64_t w, StageActions& a) const;

  std::vector<Stage> stages_;
  std::vector<Numbering> numberings_;
  int ranks_ = 1;
};

}  // namespace isohalo
