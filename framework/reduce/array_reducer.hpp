#pragma once
/// Reductions of N numbers of a user's own that ranks hold in contiguous ranges: the bits depend on the numbers and
/// their order only, not on where one rank's range ends and the next begins.

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "framework/mpi/agreement.hpp"
#include "framework/mpi/communicator.hpp"
#include "framework/reduce/operations.hpp"
#include "framework/reduce/reduction.hpp"

namespace isohalo {

/// Numbers dealt out to p ranks: rank r holds the indices starts[r] .. starts[r+1]-1; p+1 numbers from 0 to N that
/// do not fall. Ranks may be empty.
using RangeStarts = std::vector<std::int64_t>;

/// Who holds which of the numbers. Local.
struct ArrayLayout {
  /// Cuts between the ranks that hold numbers, and those ranks.
  std::vector<std::int64_t> cuts;
  std::vector<int> ranks;
};

/// Drops empty ranges. Throws UsageError when there is no number at all.
ArrayLayout array_layout(const RangeStarts& starts);

/// The counts of all ranks as starts. Collective. Throws UsageError, on all ranks, for a negative count or more
/// than 2^53 numbers.
RangeStarts gather_starts(const Communicator& comm, std::int64_t count);

/// Reduces the numbers x_0 .. x_{N-1} of all ranks, in rank order, with the tree of version 1 in one dimension:
/// tiles of `tile` numbers, the binary tree of Stelz 2022 (equation 2.1) above them; tile = 1 is the thesis' own
/// tree. V is any trivially copyable type (a number, a struct of several sums), Op any function of two values,
/// associative or not. Sums of float64 may also be exact (`ReductionMethod::exact_over_terms`): the sum of all
/// terms as real numbers, rounded once to nearest, in tens of times the time of the tree.
///
/// Persistent: made once for given counts, used as often as wanted, with other data each time if need be.
template <class V, class Op = Sum>
class ArrayReducer {
 public:
  /// `count` >= 0: numbers of this rank; ranks may have none. Collective. Throws UsageError, on all ranks, for
  /// counts, a tile or options that do not fit, or when there is no number at all: an Op has no value for that.
  ArrayReducer(MPI_Comm user, std::int64_t count, Op op = {}, const ReductionOptions& options = {},
               std::int64_t tile = default_tile<1>()[0])
      : comm_(Communicator::of(user)) {
    agree_same(comm_, "ArrayReducer",
               {{"tile", std::to_string(tile)},
                {"type of a value", type_text(typeid(V))},
                {"operation", type_text(typeid(Op))}},
               error_of([&] {
                 Tiling<1>(Decomposition<1>(Index<1>{1}, {std::vector<std::int64_t>{0, 1}}), {tile});
               }).get());
    starts_ = gather_starts(comm_, count);
    agreed(comm_, [&] {
      const ArrayLayout layout = array_layout(starts_);
      std::optional<PerDim<int, 1>> block;
      for (std::size_t b = 0; b < layout.ranks.size(); ++b)
        if (layout.ranks[b] == comm_.rank()) block = PerDim<int, 1>{static_cast<int>(b)};
      const Tiling<1> tiling(Decomposition<1>({starts_.back()}, {layout.cuts}), {tile});
      reduction_ = std::make_unique<detail::Reduction<V, 1, Op>>(comm_, tiling, block, layout.ranks, op, true);
    });
    reduction_->reduce_by(options);
  }

  /// The result, the same bits on all ranks that get it (see `ReductionOptions::root`). `data`: this rank's
  /// numbers, in host memory. Collective.
  V reduce(const V* data) {
    read(data);
    return reduction_->combine();
  }
  /// The same of value(0), .., value(count - 1), this rank's numbers, without an array of them: a dot product is
  /// `reduce([&](std::int64_t i) { return x[i] * y[i]; })`. Each is asked for once, in no promised order; the bits
  /// are those of an array that holds them. Collective.
  template <class Value>
  requires std::is_invocable_r_v<V, const Value&, std::int64_t> V reduce(const Value& value) {
    read(value);
    return reduction_->combine();
  }

  /// The same in parts. `start` reads all numbers and is collective; `test` goes on without waiting and tells
  /// whether this rank is done, `wait` waits; both are local. Once started it goes on in every wait of this
  /// library, so several operations may be waited for in different orders on different ranks. Throws UsageError
  /// where one is in flight, `wait` where none was started.
  void start(const V* data) {
    read(data);
    reduction_->start();
  }
  template <class Value>
  requires std::is_invocable_r_v<V, const Value&, std::int64_t>
  void start(const Value& value) {
    read(value);
    reduction_->start();
  }
  bool test() { return reduction_->test(); }
  V wait() { return reduction_->wait(); }

  /// Changes the method. Collective; throws UsageError on all ranks.
  void reduce_by(const ReductionOptions& options) { reduction_->reduce_by(options); }
  /// The schedule in use, what chose it and by which times.
  ScheduleChoice choice() const { return reduction_->choice(); }

  /// Where each rank's numbers begin, and N.
  const RangeStarts& starts() const { return starts_; }

 private:
  std::int64_t count() const {
    const auto me = static_cast<std::size_t>(comm_.rank());
    return starts_[me + 1] - starts_[me];
  }
  bool takes_terms() const { return reduction_->options().method == ReductionMethod::exact_over_terms; }
  void read(const V* data) {
    reduction_->refuse_in_flight();
    if (!data && count() > 0) throw UsageError("ArrayReducer: the numbers are NULL");
    if (takes_terms())
      reduction_->give_terms(count(), [data](std::int64_t i) { return data[i]; });
    else
      reduction_->tiles().run_array(data);
  }
  template <class Value>
  void read(const Value& value) {
    reduction_->refuse_in_flight();
    if (takes_terms()) return reduction_->give_terms(count(), value);
    const std::int64_t first = starts_[static_cast<std::size_t>(comm_.rank())];
    const auto row = [&value, first](const Index<1>& i, std::int64_t) {
      return [&value, from = i[0] - first](std::int64_t x) { return static_cast<V>(value(from + x)); };
    };
    reduction_->tiles().run_all(reduction_->tiles().rows_by(row));
  }

  Communicator comm_;
  RangeStarts starts_;
  std::unique_ptr<detail::Reduction<V, 1, Op>> reduction_;
};

}  // namespace isohalo
