#pragma once
/// Halo exchange for Kokkos views in any memory space, by pack and unpack kernels. Header only; needs Kokkos, and
/// is not part of isohalo::halo.

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "datatypes/error.hpp"
#include "framework/halo/array_ref.hpp"
#include "framework/halo/exchange_timing.hpp"
#include "framework/halo/view_mover.hpp"
#include "framework/mpi/agreement.hpp"

namespace isohalo {

template <int D>
struct ViewExchangeOptions {
  /// How the ghosts are cut into messages; none: the fastest by timing, the same on all ranks. The bits do not
  /// depend on it.
  std::optional<HaloPattern> pattern{};
  /// Messages go through host memory even where the host can reach the view's.
  bool staged = false;
  /// Test only.
  HaloMutation<D> mutation{};
};

/// The halo exchange of `HaloPlan` for views of rank 1 to 4, of any layout, that hold the owned box and its ghosts;
/// index 0 of the view is the lowest ghost.
///
/// Messages are sent from host memory: where the host cannot reach the view's memory, or when they are staged,
/// buffers are copied there; otherwise they are used in place.
template <class View>
class KokkosViewExchange {
 public:
  static constexpr int D = static_cast<int>(View::rank);
  static_assert(std::is_trivially_copyable_v<typename View::non_const_value_type>, ISOHALO_TRIVIALLY_COPYABLE);

  /// Plans for `depth` steps of `shape`; `ghost_low` and `ghost_high` are the ghost layers of the views.
  /// Collective: the ranks compare depth, shape, pattern and element size. Fences. Throws UsageError, the same on
  /// all ranks, when these differ, when depth < 0, when the layers are fewer than the steps need, or for slabs of a
  /// shape that has no name.
  KokkosViewExchange(const CartesianDomain<D>& domain, const StencilShape<D>& shape, int depth,
                     const Index<D>& ghost_low, const Index<D>& ghost_high,
                     const ViewExchangeOptions<D>& options = {})
      : domain_(domain),
        shape_(shape),
        depth_(depth),
        options_(options),
        origin_(domain.owned().low),
        tag_(agreed_tag(ghost_low, ghost_high)),
        farewell_(domain.comm()) {
    for (int j = 0; j < D; ++j) {
      origin_[j] -= ghost_low[j];
      extents_[j] = domain.owned().extent(j) + ghost_low[j] + ghost_high[j];
    }
  }
  KokkosViewExchange(const KokkosViewExchange&) = delete;
  KokkosViewExchange& operator=(const KokkosViewExchange&) = delete;
  ~KokkosViewExchange() {
    if (farewell_.say(in_flight_) && mover_ && !mover_->withdraw())
      Progressable::deactivate(mover_.release());  // MPI may still read its buffers
  }

  /// Posts all receives, packs and sends the first stage. Until `finish` the ghosts must not be touched and the
  /// owned cells not be written. Fences the packing kernel. Throws UsageError when an exchange is in flight or the
  /// view has other extents.
  ///
  /// The first start is collective in order: the ranks agree that their views fit (errors are the same on all), and
  /// without a given pattern time those there are on this view (about 20 ms). Later ones are local: see HaloPlan
  /// for what becomes of ranks that wait for one that was refused.
  void start(const View& view) {
    farewell_.refuse_if_broken();
    if (in_flight_) throw UsageError("view exchange: start() while an exchange is in flight; call finish() first");
    farewell_.attempt([&] {
      if (mover_) check(view);
    });
    if (!mover_) prepare(view);
    in_flight_ = true;
    mover_->start(view);
    farewell_.count_exchange();
  }

  /// Moves on what can move, between `start` and `finish`. Never waits. Local.
  void progress() {
    farewell_.refuse_if_broken();
    if (!in_flight_) throw UsageError("view exchange: progress() without start()");
    mover_->advance();
  }

  /// Completes the exchange: the ghosts are in place. Waits with back-off; exchanges may be finished in different
  /// orders on different ranks. Fences. Throws UsageError when another rank's plan has gone after a start that was
  /// refused there, or in the middle of an exchange; nothing can be exchanged by this one then.
  void finish() {
    farewell_.refuse_if_broken();
    if (!in_flight_) throw UsageError("view exchange: finish() without start()");
    try {
      mover_->finish(&farewell_);
    } catch (const Error& e) {
      farewell_.break_off(e);
      mover_->withdraw();
      throw;
    }
    in_flight_ = false;
  }

  void exchange(const View& view) {
    start(view);
    finish();
  }

  /// The pattern in use; none before the first start that has to choose.
  std::optional<HaloPattern> pattern() const { return used_; }
  /// Seconds measured per pattern, the same on all ranks; none when it was given.
  const std::vector<std::pair<HaloPattern, double>>& seconds() const { return seconds_; }

 private:
  using Mover = detail::ViewMover<View>;

  /// A tag only when all ranks make this exchange: where one makes something else their counters would part for
  /// good.
  int agreed_tag(const Index<D>& ghost_low, const Index<D>& ghost_high) const {
    const auto pattern = options_.pattern ? std::to_string(static_cast<int>(*options_.pattern)) : "chosen";
    agree_same(domain_.comm(), "KokkosViewExchange",
               {{"depth", std::to_string(depth_)},
                {"shape", shape_.text()},
                {"pattern", pattern},
                {"element size", std::to_string(sizeof(typename View::non_const_value_type))}},
               error_of([&] { check_needs(ghost_low, ghost_high); }).get());
    return domain_.comm().take_tags(1);
  }

  Surroundings<D> around() const { return {domain_.global(), domain_.periodic(), {}, {}}; }

  std::unique_ptr<Mover> mover_of(HaloPattern pattern) const {
    const auto schedule = halo_schedule(pattern, domain_.decomposition(), domain_.coordinates(), shape_, depth_,
                                        around(), options_.mutation);
    return std::make_unique<Mover>(domain_.comm(), tag_, schedule, origin_, options_.staged);
  }

  void prepare(const View& view) {
    const Communicator& comm = domain_.comm();
    farewell_.meet();
    agree_as<UsageError>(comm, error_of([&] { check(view); }).get());
    if (options_.pattern) {
      mover_ = mover_of(*options_.pattern);
      used_ = options_.pattern;
    } else {
      choose(view);
    }
    farewell_.set_neighbors(mover_->peers());
  }

  void choose(const View& view) {
    using Clock = std::chrono::steady_clock;
    std::vector<std::unique_ptr<Mover>> movers;
    for (const HaloPattern p : {HaloPattern::coalesced, HaloPattern::direct, HaloPattern::slabs}) {
      if (p == HaloPattern::slabs && !slabs_possible(shape_)) continue;
      if (p != HaloPattern::coalesced && detail::repeats_grid(domain_.decomposition(), shape_, depth_, around()))
        continue;
      movers.push_back(mover_of(p));
      seconds_.emplace_back(p, 0);
    }
    const auto times = detail::least_seconds(
        domain_.comm(), movers.size(),
        [&](std::size_t k) {
          const auto begin = Clock::now();
          movers[k]->start(view);
          movers[k]->finish();
          return std::chrono::duration<double>(Clock::now() - begin).count();
        },
        detail::kTimingBudget_s);
    const auto best = static_cast<std::size_t>(std::min_element(times.begin(), times.end()) - times.begin());
    for (std::size_t k = 0; k < times.size(); ++k) seconds_[k].second = times[k];
    mover_ = std::move(movers[best]);
    used_ = seconds_[best].first;
  }

  void check_needs(const Index<D>& ghost_low, const Index<D>& ghost_high) const {
    if (depth_ < 0) throw UsageError("halo depth " + std::to_string(depth_) + " is negative");
    if (options_.pattern == HaloPattern::slabs && !slabs_possible(shape_))
      throw UsageError("view exchange: slabs need a shape with a name (star, moore, ..), not a list of offsets");
    const auto needed = shape_.ghost_widths(depth_, around());
    for (int j = 0; j < D; ++j)
      if (ghost_low[j] < needed[0][j] || ghost_high[j] < needed[1][j])
        throw UsageError("view exchange: the view has " + std::to_string(std::min(ghost_low[j], ghost_high[j])) +
                         " ghost layers in dimension " + std::to_string(j) + ", the plan needs " +
                         std::to_string(std::max(needed[0][j], needed[1][j])));
  }

  void check(const View& view) const {
    for (int j = 0; j < D; ++j)
      if (static_cast<std::int64_t>(view.extent(static_cast<std::size_t>(j))) != extents_[j])
        throw UsageError("view exchange: the view has " + std::to_string(view.extent(static_cast<std::size_t>(j))) +
                         " cells in dimension " + std::to_string(j) + ", block and ghosts have " +
                         std::to_string(extents_[j]));
  }

  CartesianDomain<D> domain_;
  StencilShape<D> shape_;
  int depth_;
  ViewExchangeOptions<D> options_;
  Index<D> origin_, extents_{};
  int tag_;
  detail::Farewell farewell_;
  std::unique_ptr<Mover> mover_;
  std::optional<HaloPattern> used_;
  std::vector<std::pair<HaloPattern, double>> seconds_;
  bool in_flight_ = false;
};

}  // namespace isohalo
