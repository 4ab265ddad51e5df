#include "stencils/kernel_sweep.hpp"

#include <algorithm>
#include <array>

namespace isohalo {

namespace {

using detail::ChangingKernel;
using detail::place_of;
using detail::squared_change;
using detail::UpdatedRows;

/// The squared changes of cells; of several arrays the sum in their order. The cells lie `at` behind `before` and
/// `to` behind `after`. N arrays, or with 0 as many as there are.
template <class T, std::size_t N>
class SquaredChanges {
 public:
  SquaredChanges(std::span<T* const> before, std::int64_t at, std::span<T* const> after, std::int64_t to)
      : before_(before), after_(after), at_(at), to_(to) {
    for (std::size_t f = 0; f < N; ++f) old_[f] = before[f] + at, now_[f] = after[f] + to;
  }
  double operator()(std::int64_t x) const {
    if constexpr (N > 0) {
      double all = squared_change(now_[0][x], old_[0][x]);
      for (std::size_t f = 1; f < N; ++f) all = all + squared_change(now_[f][x], old_[f][x]);
      return all;
    } else {
      double all = squared_change(after_[0][to_ + x], before_[0][at_ + x]);
      for (std::size_t f = 1; f < before_.size(); ++f)
        all = all + squared_change(after_[f][to_ + x], before_[f][at_ + x]);
      return all;
    }
  }

 private:
  std::span<T*const> before_, after_;
  std::int64_t at_, to_;
  std::array<const T*, N> old_, now_;
};

/// A row that is updated, from cell i on; `later`: where it begins what is to be fetched on the way.
template <class T, int D>
class SweptRow {
 public:
  using Rows = UpdatedRows<T, D>;
  SweptRow(const Rows& rows, const Index<D>& i, const Index<D>& later)
      : rows_(rows),
        i_(behind<D>(i, 0)),
        at_(place_of(rows.update().like, i)),
        later_(rows.fetches() ? place_of(rows.update().like, later) : 0),
        source_(rows.source_at(later)) {}

 protected:
  /// Cells that are updated at one go and then added: as many as stay in the first-level cache.
  static constexpr std::int64_t kUnfetched = 512;

  /// Where memory is fetched some of its pieces at a time: the loop over their terms is so short that its beginning
  /// and end count.
  std::int64_t piece() const { return rows_.fetches() ? Rows::kMost : kUnfetched; }
  /// Rows of the second fastest dimension, that far apart in memory.
  std::int64_t apart() const { return rows_.update().like.stride[D > 1 ? D - 2 : 0]; }

  /// run(k, m) for the m cells from the x + k-th on, until there were n, fetching on the way.
  template <class Run>
  void in_pieces(std::int64_t x, std::int64_t n, const Run& run) const {
    if (!rows_.fetches()) return run(0, n);
    for (std::int64_t k = 0, m = 0; k < n; k += m) {
      m = std::min(rows_.piece(at_ + x + k), n - k);
      rows_.fetch(later_ + x + k, m, source_ ? source_ + x + k : nullptr);
      run(k, m);
    }
  }

  const Rows& rows_;
  Index<D> i_;
  std::int64_t at_, later_;
  const T* source_;
};

/// It gives the squared changes from N arrays, or any number of them with 0 (see TreeReducer::run_band).
template <class T, int D, std::size_t N>
class SummedRow : public SweptRow<T, D> {
 public:
  using typename SweptRow<T, D>::Rows;
  SummedRow(const Rows& rows, std::span<T* const> before, const Index<D>& i, const Index<D>& later)
      : SweptRow<T, D>(rows, i, later), before_(before) {}
  bool takes_four() const { return rows_.by_four(); }
  void add(double* sums, std::int64_t n, std::int64_t rows, bool first) {
    const std::int64_t most = rows == 1 ? this->piece() : this->kUnfetched / 4;
    for (std::int64_t x = 0; x < n; x += most) {
      const std::int64_t m = std::min(most, n - x);
      if (rows == 1)
        detail::add_row(sums + x, m, first, update(x, m), Sum());
      else
        detail::add_four(sums + x, m, first, update_four(x, m), Sum());
    }
  }

 private:
  using SweptRow<T, D>::rows_;
  using SweptRow<T, D>::i_;
  using SweptRow<T, D>::at_;

  SquaredChanges<T, N> update(std::int64_t x, std::int64_t n) {
    const bool past = rows_.past_caches();
    this->in_pieces(x, n, [&](std::int64_t k, std::int64_t m) {
      past ? rows_.run(i_, at_, x + k, m, values_.addresses(), k) : rows_.run(i_, at_, x + k, {m});
    });
    return past ? changes(x, values_.addresses(), 0) : changes(x, rows_.update().out, at_ + x);
  }
  auto update_four(std::int64_t x, std::int64_t n) {
    rows_.run(i_, at_, x, {n, 4, this->apart(), rows_.in_cache()});
    return [value = changes(x, rows_.update().out, at_ + x), apart = this->apart()](int r, std::int64_t k) {
      return value(k + r * apart);
    };
  }
  SquaredChanges<T, N> changes(std::int64_t x, std::span<T* const> after, std::int64_t to) const {
    return {before_, at_ + x, after, to};
  }

  std::span<T* const> before_;
  typename Rows::Piece values_;
};

/// It adds the squared changes while rows are updated, line by line.
template <class T, int D>
class StreamedRow {
 public:
  StreamedRow(const UpdatedRows<T, D>& rows, std::span<T* const> before, const Index<D>& i, const Index<D>& later)
      : rows_(rows),
        i_(behind<D>(i, 0)),
        at_(place_of(rows.update().like, i)),
        later_(place_of(rows.update().like, later) - at_) {
    fields_ = before.size();
    for (std::size_t f = 0; f < fields_; ++f) before_[f] = before[f];
  }
  bool takes_four() const { return true; }
  void add(double* sums, std::int64_t n, std::int64_t rows, bool first) const {
    const std::int64_t apart = rows_.update().like.stride[D > 1 ? D - 2 : 0];
    rows_.stream(i_, at_, {n, rows, apart},
                 {.later = later_, .before = before_.data(), .sums = sums, .first = first},
                 [&](std::int64_t x, std::int64_t m) {
                   for (std::int64_t r = 0; r < rows; ++r)
                     add_some(at_ + x + r * apart, m, r, x, sums + x, first && r == 0);
                 });
  }

 private:
  static constexpr std::size_t kFields = UpdatedRows<T, D>::kArrays;
  static constexpr std::int64_t kMost = UpdatedRows<T, D>::kLine;

  /// m cells of row r from the x-th on, fewer than a line, that lie at `at`.
  void add_some(std::int64_t at, std::int64_t m, std::int64_t r, std::int64_t x, double* sums, bool first) const {
    std::array<std::array<T, kMost>, kFields> old;  // which may be replaced
    for (std::size_t f = 0; f < fields_; ++f) std::copy_n(before_[f] + at, m, old[f].data());
    Index<D> i = i_;
    if constexpr (D > 1) i[D - 2] += r;
    rows_.run(i, at - x, x, {m});
    for (std::int64_t k = 0; k < m; ++k) {
      double change = squared_change(rows_.update().out[0][at + k], old[0][k]);
      for (std::size_t f = 1; f < fields_; ++f)
        change = change + squared_change(rows_.update().out[f][at + k], old[f][k]);
      sums[k] = first ? change : sums[k] + change;
    }
  }

  const UpdatedRows<T, D>& rows_;
  Index<D> i_;
  std::int64_t at_, later_;
  std::size_t fields_;
  std::array<const T*, kFields> before_{};
};

/// The same by a kernel that adds its terms up itself.
template <class T, int D>
class ChangingRow : public SweptRow<T, D> {
 public:
  using typename SweptRow<T, D>::Rows;
  ChangingRow(const Rows& rows, const ChangingKernel<T, D>& kernel, const Index<D>& i, const Index<D>& later)
      : SweptRow<T, D>(rows, i, later), kernel_(kernel) {}
  bool takes_four() const { return this->rows_.by_four() || this->rows_.streams(); }
  /// The whole row, or four from it on, by pieces whose sums stay in the first-level cache.
  void add(double* sums, std::int64_t n, std::int64_t rows, bool first) const {
    if (this->rows_.streams()) return stream(sums, n, rows, first);
    if (rows == 1)
      return this->in_pieces(0, n, [&](std::int64_t k, std::int64_t m) { run(k, {m}, sums + k, first); });
    for (std::int64_t x = 0; x < n; x += this->kUnfetched)
      run(x, {std::min(this->kUnfetched, n - x), rows, this->apart()}, sums + x, first);
  }

 private:
  void stream(double* sums, std::int64_t n, std::int64_t rows, bool first) const {
    this->rows_.stream(this->i_, this->at_, {n, rows, this->apart()},
                       {.later = this->later_ - this->at_, .sums = sums, .first = first},
                       [&](std::int64_t x, std::int64_t m) {
                         run(x, {m, rows, this->apart()}, sums + x, first);
                       });
  }
  void run(std::int64_t x, const CellRows& rows, double* sums, bool first) const {
    const RowUpdate<T, D>& u = this->rows_.update();
    const std::int64_t at = this->at_ + x;
    kernel_.run_adding(u.in.data(), at, u.out.data(), at, rows, behind<D>(this->i_, x), sums, first);
  }

  const ChangingKernel<T, D>& kernel_;
};

/// f with the number of arrays as a constant, for which loops over cells are vectorised; 0 for many.
template <class F>
void with_number(std::size_t arrays, const F& f) {
  switch (arrays) {
    case 1:
      return f(std::integral_constant<std::size_t, 1>());
    case 2:
      return f(std::integral_constant<std::size_t, 2>());
    case 3:
      return f(std::integral_constant<std::size_t, 3>());
    default:
      return f(std::integral_constant<std::size_t, 0>());
  }
}

}  // namespace

template <class T, int D>
void sweep(const SweepRegion<D>& region, const RowUpdate<T, D>& update, const Fetch& how, std::int64_t part,
           std::int64_t parts) {
  const UpdatedRows<T, D> rows(update, how);
  const auto work = [&rows](const Box<D>& piece, const Box<D>& block) { rows.run(piece, block); };
  for_each_piece_of("isohalo::sweep", region, work, part, parts, detail::streaming_fence);
}

template <class T, int D>
void sweep_box(const Box<D>& box, const RowUpdate<T, D>& update, std::int64_t next, T* kept) {
  const UpdatedRows<T, D> rows(update, {.in_cache = true, .next = next});
  for_each_share_of("isohalo::tile", box, [&](const Box<D>& share) {
    if (!kept) return rows.run_box(share);
    for_each_row(share, [&](const Index<D>& i) {  // the row's neighbors are in cache when its turn comes
      Box<D> row = Box<D>::of_cell(i);
      row.high[D - 1] = share.high[D - 1];
      const std::int64_t at = place_of(update.like, i);
      std::copy_n(update.out[0] + at, row.extent(D - 1), kept + at);
      rows.run_box(row);
    });
  });
}

namespace {

/// Cells of whole numbers: those that change are counted while they are in cache.
template <class T, int D>
void count_with_change(ChangeCount<D>& sum, const UpdatedRows<T, D>& rows, const T* before) {
  const auto work = [&](const Box<D>& piece, const Box<D>& block) {
    std::int64_t count = 0;
    if (!rows.fetches()) rows.run_box(piece);
    for_each_row(piece, [&, n = piece.extent(D - 1)](const Index<D>& i) {
      const std::int64_t at = place_of(rows.update().like, i);
      const auto add = [&](std::int64_t x, std::int64_t m, const T* values) {
        count += count_changes(before + at + x, values, m);
      };
      rows.fetches() ? rows.run_row(i, n, block, add) : add(0, n, rows.update().out[0] + at);
    });
    sum.add(count);
  };
  for_each_piece_of("isohalo::change", sum.owned(), work, 0, 1, detail::streaming_fence);
}

}  // namespace

template <class T, int D>
void sweep_with_change(ChangeSum<T, D>& sum, std::vector<double>& scratch, const RowUpdate<T, D>& update,
                       std::span<T* const> before, const Fetch& how) {
  const UpdatedRows<T, D> rows(update, how);
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    count_with_change(sum, rows, before[0]);
  } else {
    const auto form = [&](const auto& row) {
      form_tile_values("isohalo::change", sum, scratch,
                       [&](const Index<D>& i, std::int64_t, const Index<D>& later) { return row(i, later); });
    };
    if (rows.streams() && before.size() <= UpdatedRows<T, D>::kArrays)
      return form([&](const Index<D>& i, const Index<D>& later) { return StreamedRow(rows, before, i, later); });
    with_number(update.out.size(), [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
      form([&](const Index<D>& i, const Index<D>& later) { return SummedRow<T, D, N>(rows, before, i, later); });
    });
  }
}

template <class T, int D>
void sweep_planes_with_change(CellSum<D>& sum, std::vector<double>& lanes, std::int64_t low, std::int64_t high,
                              const RowUpdate<T, D>& update, const Fetch& how) {
  const UpdatedRows<T, D> rows(update, how);
  const auto& kernel = dynamic_cast<const ChangingKernel<T, D>&>(update.kernel);
  // What comes next in memory is fetched, which may be of the planes of the next call: whole rows, at least four.
  const std::int64_t ahead = std::max<std::int64_t>(4, UpdatedRows<T, D>::kAhead / update.like.owned.extent(D - 1));
  const auto row = [&](const Index<D>& i, std::int64_t) {
    Index<D> later = i;
    later[D > 1 ? D - 2 : 0] += D > 1 ? ahead : UpdatedRows<T, D>::kAhead;
    return ChangingRow<T, D>(rows, kernel, i, later);
  };
  if constexpr (D == 1)
    form_tile_values("isohalo::change", sum, lanes, row);
  else
    form_tile_values_of_planes("isohalo::change", sum, lanes, low, high, row);
}

template <class T, int D>
void change_in_box(ChangeSum<T, D>& sum, std::vector<double>& scratch, const Box<D>& box,
                   const ArrayRef<T, D>& like, std::span<T* const> after, std::span<T* const> before) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    const auto row = [&](const Index<D>& i, std::int64_t n) {
      const std::int64_t at = place_of(like, i);
      sum.add(count_changes(before[0] + at, after[0] + at, n));
    };
    for_each_row_of("isohalo::change", box, row);
  } else {
    const auto form = [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
      form_tile_values("isohalo::change", sum, scratch, box, [&](const Index<D>& i, std::int64_t) {
        return SquaredChanges<T, N>(before, place_of(like, i), after, place_of(like, i));
      });
    };
    with_number(after.size(), form);
  }
}

template <class T, int D>
void sweep_with_terms(CellSum<D>& sum, CellSum<D>* second, std::vector<double>& scratch,
                      const RowUpdate<T, D>& update, const Fetch& how) {
  const UpdatedRows<T, D> rows(update, how);
  const auto& kernel = dynamic_cast<const ChangingKernel<T, D>&>(update.kernel);
  const auto row = [&](const Index<D>& i, std::int64_t, const Index<D>& later) {
    return ChangingRow<T, D>(rows, kernel, i, later);
  };
  const auto value = [&](const Index<D>& i, std::int64_t) {
    return [b = update.out.back() + place_of(update.like, i)](std::int64_t x) { return static_cast<double>(b[x]); };
  };
  form_tile_values("isohalo::terms", sum, scratch, row, [&](std::int64_t band, double* space) {
    if (second) second->run_band(band, space, value);  // while it is in cache
  });
}

#define ISOHALO_INSTANTIATE(T, D)                                                                               \
  template void sweep(const SweepRegion<D>&, const RowUpdate<T, D>&, const Fetch&, std::int64_t, std::int64_t); \
  template void sweep_box(const Box<D>&, const RowUpdate<T, D>&, std::int64_t, T*);                             \
  template void sweep_with_change(ChangeSum<T, D>&, std::vector<double>&, const RowUpdate<T, D>&,               \
                                  std::span<T* const>, const Fetch&);                                           \
  template void change_in_box(ChangeSum<T, D>&, std::vector<double>&, const Box<D>&, const ArrayRef<T, D>&,     \
                              std::span<T* const>, std::span<T* const>);
#define ISOHALO_INSTANTIATE_SUMS(T, D)                                                                   \
  template void sweep_planes_with_change(CellSum<D>&, std::vector<double>&, std::int64_t, std::int64_t,  \
                                         const RowUpdate<T, D>&, const Fetch&);                          \
  template void sweep_with_terms(CellSum<D>&, CellSum<D>*, std::vector<double>&, const RowUpdate<T, D>&, \
                                 const Fetch&);
ISOHALO_FOR_EACH_FIELD(ISOHALO_INSTANTIATE)
ISOHALO_FOR_EACH_FLOAT_FIELD(ISOHALO_INSTANTIATE_SUMS)
#undef ISOHALO_INSTANTIATE_SUMS
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
