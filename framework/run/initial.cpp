#include "framework/run/initial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "datatypes/error.hpp"
#include "framework/halo/faces.hpp"
#include "framework/halo/host_threads.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/digest.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/run/cell_text.hpp"
#include "framework/run/expression.hpp"

namespace isohalo {

namespace {
constexpr double kMostValue = 1e300;

/// Records an error for what is none.
template <int D>
std::optional<Expression> read_expression(Config& config, const std::string& key, const std::string& text) {
  try {
    return Expression(text, D);
  } catch (const UsageError& e) {
    config.error(key, key + ": " + e.what());
    return {};
  }
}

/// The values at cells' centres at any time; beyond a periodic side those of the cells that are repeated there.
template <int D>
typename ValuesInTime<D>::Row rows_in_time(const GridSettings<D>& grid, const Expression& e) {
  return [grid, e](const Index<D>& first, std::int64_t n, double time, auto steady, double* values) {
    const auto inside = [&](int j) { return (first[j] % grid.shape[j] + grid.shape[j]) % grid.shape[j]; };
    PerDim<double, D> x;
    for (int j = 0; j < D; ++j) x[j] = grid.centre(j, inside(j));
    static thread_local std::vector<double> along;
    along.resize(static_cast<std::size_t>(n));
    const std::int64_t cells = grid.shape[D - 1];
    for (std::int64_t k = 0, i = inside(D - 1); k < n; i = 0) {
      const std::int64_t m = std::min(n - k, cells - i);
      double* const at = along.data() + k;
      for (std::int64_t c = 0; c < m; ++c) at[c] = grid.centre(D - 1, i + c);
      k += m;
    }
    e.row(x, D - 1, along, time, values, steady);
  };
}
template <int D>
ValuesInTime<D> values_in_time(const GridSettings<D>& grid, Expression e) {
  ValuesInTime<D> values;
  for (const Expression& part : e.take_steady(ValuesInTime<D>::kMostParts)) {
    values.steady.push_back({{}, rows_in_time(grid, part)});
    for (int j = 0; j < D; ++j) values.steady.back().depends_on[j] = part.uses(j);
  }
  values.row = rows_in_time(grid, e);
  return values;
}

/// The value at a cell's centre at time 0. Works out and keeps those of a piece of its row.
template <int D>
std::function<double(const Index<D>&)> value_at_start(const GridSettings<D>& grid, const Expression& e) {
  return [row = rows_in_time(grid, e), end = grid.shape[D - 1], first = Index<D>{},
          values = std::vector<double>()](const Index<D>& i) mutable {
    constexpr std::int64_t piece = 128;
    Index<D> begin = i;
    begin[D - 1] -= i[D - 1] % piece;
    if (values.empty() || begin != first) {
      first = begin;
      values.resize(static_cast<std::size_t>(std::min(piece, end - begin[D - 1])));
      row(first, std::ssize(values), 0.0, nullptr, values.data());
    }
    return values[static_cast<std::size_t>(i[D - 1] - begin[D - 1])];
  };
}

}  // namespace

const std::vector<std::string>& initial_kinds() {
  static const std::vector<std::string> kinds{"constant",     "linear", "sine",       "gaussian", "box",
                                              "checkerboard", "random", "expression", "file"};
  return kinds;
}

template <int D>
InitialField<D> InitialField<D>::read(Config& config, const GridSettings<D>& grid, const std::string& name,
                                      bool only) {
  const std::string own = "initial." + name;
  const bool both = only && config.has(own) && config.has("initial.kind");
  if (both) {
    config.error(own, own + " and initial.kind are both given: write all keys of the field in one table, [" + own +
                          "] or [initial]");
    config.excuse(own);
  }
  return read_as(config, grid, only && (both || !config.has(own)) ? "initial" : own, own, std::nullopt);
}

template <int D>
InitialField<D> InitialField<D>::read_table(Config& config, const GridSettings<D>& grid, const std::string& path,
                                            const std::optional<std::string>& kind) {
  return read_as(config, grid, path, path, kind);
}

template <int D>
InitialField<D> InitialField<D>::coefficient(const GridSettings<D>& grid, const std::string& path,
                                             std::function<double(const Index<D>&)> value, double largest) {
  InitialField f;
  f.grid_ = grid;
  f.prefix_ = path;
  f.kind_ = "coefficient";
  f.value_ = std::move(value);
  f.largest_ = largest;
  return f;
}

namespace {

/// What messages call the field of a table, and how --help-input says that it is made.
std::pair<std::string, std::string> words_of(const std::string& prefix) {
  const std::string table = prefix.substr(0, prefix.find('.')), keys = "each kind has keys of its own";
  if (table == "source") return {"the source", "how the source is made; " + keys + ", those of [initial]"};
  if (table == "solver")
    return {"the coefficient", "how the coefficient is made; " + keys + ", those of [initial]"};
  return {"the initial field", "how the field begins; " + keys};
}

std::string field_text(const std::string& prefix, const std::string& name) {
  return words_of(prefix).first + " \"" + name + "\"";
}

}  // namespace

template <int D>
InitialField<D> InitialField<D>::read_as(Config& config, const GridSettings<D>& grid, const std::string& given,
                                         const std::string& prefix, const std::optional<std::string>& kind) {
  constexpr auto d = static_cast<std::size_t>(D);
  InitialField f;
  f.grid_ = grid;
  f.prefix_ = prefix;
  f.given_ = given;
  const auto key = [&](const char* k) { return given + "." + k; };
  const auto number = [&](const char* k, double fallback, const char* help) {
    return config.number(key(k), {fallback, -kMostValue, kMostValue, false, "", help});
  };
  const auto list = [&](const char* k, std::optional<std::vector<double>> fallback, const char* unit,
                        const char* help) {
    PerDim<double, D> values{};
    std::ranges::copy(config.numbers(key(k), {d, fallback, -kMostValue, kMostValue, false, unit, help}),
                      values.begin());
    return values;
  };
  const std::size_t before = config.error_count();
  f.kind_ = config.text(key("kind"), {kind, initial_kinds(), words_of(prefix).second});
  if (config.error_count() > before) config.excuse(given, false);  // with the right kind other keys would be known
  if (f.kind_ == "constant") {
    const double value = number("value", 0.0, "value of every cell");
    f.value_ = [=](const Index<D>&) { return value; };
    f.largest_ = std::abs(value);
  } else if (f.kind_ == "linear") {
    const double value = number("value", 0.0, "value where all coordinates are 0");
    const auto gradient = list("gradient", std::vector<double>(d, 0.0), "value/length",
                               "change of the value per length, in each dimension");
    f.value_ = [=](const Index<D>& i) {
      double v = value;
      for (int j = 0; j < D; ++j) v = v + gradient[j] * grid.centre(j, i[j]);
      return v;
    };
    Index<D> low{}, high{};  // the corner cells with the extremes: rounded sums and products keep the order
    for (int j = 0; j < D; ++j) (gradient[j] < 0 ? low : high)[j] = grid.shape[j] - 1;
    f.largest_ = std::max(std::abs(f.value_(low)), std::abs(f.value_(high)));
  } else if (f.kind_ == "sine") {
    const double amplitude = number("amplitude", 1.0, "factor of the product of one sine per dimension");
    const auto modes = config.integers(key("modes"), {d, std::vector<std::int64_t>(d, 1), -1000000, 1000000, false,
                                                      "", "half waves across the domain, per dimension"});
    f.largest_ = std::abs(amplitude);
    // One evaluation per coordinate, as cells are asked for in index order: the same bits as one per cell.
    f.value_ = [=, first = Index<D>{}, sines = PerDim<std::vector<double>, D>()](const Index<D>& i) mutable {
      double v = amplitude;
      for (int j = 0; j < D; ++j) {
        std::vector<double>& known = sines[j];
        if (i[j] < first[j] || i[j] > first[j] + std::ssize(known)) first[j] = i[j], known.clear();
        if (i[j] == first[j] + std::ssize(known)) {
          const auto m = static_cast<double>(modes[static_cast<std::size_t>(j)]);
          known.push_back(
              std::sin(std::numbers::pi * m * (grid.centre(j, i[j]) - grid.origin[j]) / grid.length[j]));
        }
        v = v * known[static_cast<std::size_t>(i[j] - first[j])];
      }
      return v;
    };
  } else if (f.kind_ == "gaussian") {
    const double amplitude = number("amplitude", 1.0, "value at the centre");
    std::vector<double> middle;
    for (int j = 0; j < D; ++j) middle.push_back(grid.origin[j] + 0.5 * grid.length[j]);
    const auto center = list("center", middle, "length", "centre; by default the middle of the domain");
    const double width = config.number(key("width"), {0.1, 0, kMostValue, true, "length", "standard deviation"});
    f.value_ = [=](const Index<D>& i) {
      double s = 0;
      for (int j = 0; j < D; ++j) {
        const double t = grid.centre(j, i[j]) - center[j];
        s = j == 0 ? t * t : s + t * t;
      }
      return amplitude * std::exp(-(s / (2 * width * width)));
    };
    f.largest_ = std::abs(amplitude);
  } else if (f.kind_ == "box") {
    const auto low = list("low", {}, "length", "lower corner of the box");
    const auto high = list("high", {}, "length", "upper corner of the box");
    const bool read = config.error_count() == before;
    for (int j = 0; j < D; ++j)
      if (read && low[j] > high[j])
        config.error(key("low"),
                     fmt::format("{}[{}] = {} is above {}[{}] = {}: no cell is in the box; exchange them",
                                 key("low"), j, low[j], key("high"), j, high[j]));
    const double inside =
        number("inside", 1.0, "value of cells whose centre c has low <= c < high in every dimension");
    const double outside = number("outside", 0.0, "value of all other cells");
    f.value_ = [=](const Index<D>& i) {
      bool in = true;
      for (int j = 0; j < D; ++j) in = in && grid.centre(j, i[j]) >= low[j] && grid.centre(j, i[j]) < high[j];
      return in ? inside : outside;
    };
    f.largest_ = std::max(std::abs(inside), std::abs(outside));
  } else if (f.kind_ == "checkerboard") {
    const std::int64_t size = config.integer(
        key("size"), {1, 1, std::int64_t{1} << 53, false, "cells", "edge of a square, in 3 dimensions of a cube"});
    const double even = number("even", 0.0, "value of the square that holds cell 0, and of every second one");
    const double odd = number("odd", 1.0, "value of the other squares");
    f.value_ = [=](const Index<D>& i) {
      std::int64_t squares = 0;
      for (int j = 0; j < D; ++j) squares += i[j] / size;
      return squares % 2 == 0 ? even : odd;
    };
    f.largest_ = std::max(std::abs(even), std::abs(odd));
  } else if (f.kind_ == "random") {
    f.seed_ = config.integer(
        key("seed"),
        {.fallback = 0, .help = "any integer; each gives other numbers (it is the seed of SplitMix64)"});
    const double low = number("low", 0.0, "the values are spread evenly from here");
    const double high = number("high", 1.0, "up to here");
    f.value_ = [=, seed = static_cast<std::uint64_t>(f.seed_)](const Index<D>& i) {
      const auto l = static_cast<std::uint64_t>(linear_index(box_of_shape<D>(grid.shape), i));
      const std::uint64_t z = mix64(seed + (l + 1) * kGolden);
      return low + (high - low) * (static_cast<double>(z >> 11) * 0x1p-53);
    };
    f.largest_ = std::max(std::abs(low), std::abs(high));
  } else if (f.kind_ == "expression") {
    const std::string text = config.text(
        key("expression"),
        {{}, {}, "value at a cell's centre, such as \"sin(pi*x)*y^2\"; see docs/model.md, Expressions (t is 0)"});
    if (config.error_count() == before)
      if (const auto e = read_expression<D>(config, key("expression"), text)) {
        f.value_ = value_at_start(grid, *e);
        if (e->uses_time()) f.in_time_ = values_in_time(grid, *e);
      }
  } else {
    f.file_ =
        config.text(key("file"), {{}, {}, "HDF5 file; a relative path starts at the directory of the input file"});
    f.dataset_ = config.text(key("dataset"), {{}, {}, "path in it of a dataset with the shape of the grid"});
    if (config.error_count() == before && f.file_.empty())
      config.error(key("file"), key("file") + " is empty: name a file");
    if (f.file_.is_relative()) f.file_ = grid.input_directory / f.file_;
    // Where the values come from is no physics (see physics_text): they are named by their digest once they are
    // read.
    std::error_code ignored;  // of a file that was not given
    if (config.error_count() == before)
      config.set_effective(key("file"), Config::canonical(std::filesystem::absolute(f.file_, ignored).string()));
  }
  if (given != prefix) config.rename_effective(given, prefix);  // one spelling in the canonical text
  return f;
}

template <int D>
void InitialField<D>::check_file(const Communicator& comm) const {
  if (!from_file()) return;
  Box<D> first;
  for (int j = 0; j < D; ++j) first.high[j] = 1;
  agreed(comm, [&] { from_file_in(first); });
}

template <int D>
std::vector<double> InitialField<D>::from_file_in(const Box<D>& box) const {
  const int face = grid_.face;
  try {
    return read_dataset<D>(file_, dataset_, grid_.shape, box,
                           face < 0 ? "the grid is" : "the faces of dimension " + std::to_string(face) + " are");
  } catch (const UsageError& e) {
    throw UsageError(given_ + ".file: " + e.what());
  }
}

namespace {

/// Rounds to the field's type; false for `x` beyond its range. Infinity and NaN of floating point pass and are
/// found later.
template <class T>
bool round_to(double x, T& v) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    if (!(x >= 0 && x <= 255)) return false;
    v = static_cast<T>(std::nearbyint(x));
    return true;
  } else {
    v = static_cast<T>(x);
    return std::isfinite(v) || !std::isfinite(x);
  }
}

}  // namespace

template <int D>
void InitialField<D>::refuse(const Communicator& comm, const std::string& what, const Bad& bad) const {
  const std::int64_t first = comm.min(bad.at);
  agreed(comm, [&] {
    if (bad.at == Bad().at || bad.at != first) return;
    const std::string cell = cell_text(box_of_shape<D>(grid_.shape), bad.at, grid_.face);
    if (!std::isfinite(bad.value)) throw UsageError(what + " is NaN or infinite at " + cell + other_values());
    throw UsageError(
        what + " is " + Config::canonical(bad.value) + " at " + cell + ", out of range of " +
        (grid_.type == ElementType::uint8 ? "uint8 (0 .. 255, or less of it)" : "float32 (up to 3.4e+38)") +
        other_values());
  });
}

template <int D>
std::string InitialField<D>::other_values() const {
  const std::string table = prefix_.starts_with("solver.") ? prefix_ : prefix_.substr(0, prefix_.find('.'));
  return ": use other values in [" + table + "]" +
         (from_file() ? " (dataset \"" + dataset_ + "\" of " + file_.string() + ")" : "");
}

template <int D>
template <class F>
void InitialField<D>::for_each_value(const Box<D>& box, const F& f) const {
  if (box.empty()) return;
  constexpr std::int64_t piece = std::int64_t{1} << 22;  // values of a file that are read together
  const std::int64_t layer = std::max<std::int64_t>(1, box.cells() / box.extent(0));
  const std::int64_t layers = from_file() ? std::max<std::int64_t>(1, piece / layer) : box.extent(0);
  for (Box<D> part = box; part.low[0] < box.high[0]; part.low[0] = part.high[0]) {
    part.high[0] = std::min(box.high[0], part.low[0] + layers);
    const std::vector<double> from_disk = from_file() ? from_file_in(part) : std::vector<double>();
    for_each_share("isohalo::initial", part, 4096, [&](const Box<D>& share, std::int64_t thread) {
      const CellValue value_of = value_;  // one for each thread: it may remember what it computed last
      for_each_cell(share, [&](const Index<D>& i) {
        f(i, value_of ? value_of(i) : from_disk[static_cast<std::size_t>(linear_index(part, i))],
          static_cast<std::size_t>(thread));
      });
    });
  }
}

template <int D>
void InitialField<D>::fill(const CartesianDomain<D>& domain, const FieldHandle<D>& field, Config& config) const {
  const std::string what = field_text(prefix_, field.name);
  const Box<D> global = box_of_shape<D>(grid_.shape);
  std::vector<Bad> bad(static_cast<std::size_t>(host_threads()));  // the first value beyond the type's range
  agreed(domain.comm(), [&] {
    std::visit(
        [&](const auto& a) {
          using T = std::remove_const_t<std::remove_pointer_t<decltype(a.data)>>;
          for_each_value(a.owned, [&](const Index<D>& i, double value, std::size_t thread) {
            if (!round_to<T>(value, a.at(i))) bad[thread].note(linear_index(global, i), value);
          });
        },
        field.array);
  });
  for (const Bad& b : bad) bad.front().note(b.at, b.value);
  refuse(domain.comm(), what, bad.front());
  const FieldStatistics s = field_statistics(domain, field.array, field.face);
  if (s.first_not_finite >= 0)
    throw UsageError(what + " is NaN or infinite at " + cell_text(global, s.first_not_finite, field.face) +
                     other_values());
  if (from_file()) config.set_effective(prefix_ + ".data", Config::canonical(hex_digest(s.digest)));
}

template <int D>
Extremes InitialField<D>::extremes(const CartesianDomain<D>& domain) const {
  struct Found {
    double least = std::numeric_limits<double>::infinity(), largest = -least;
    Bad bad;  // the first that `fill` would refuse
  };
  const Box<D> owned = field_domain(domain, grid_.face).owned(), global = box_of_shape<D>(grid_.shape);
  std::vector<Found> found(static_cast<std::size_t>(host_threads()));
  agreed(domain.comm(), [&] {
    const bool narrow = grid_.type == ElementType::float32;
    for_each_value(owned, [&](const Index<D>& i, double v, std::size_t thread) {
      const double rounded = narrow ? static_cast<double>(static_cast<float>(v)) : v;
      Found& f = found[thread];
      if (!std::isfinite(rounded)) return f.bad.note(linear_index(global, i), v);
      f.least = std::min(f.least, rounded);
      f.largest = std::max(f.largest, rounded);
    });
  });
  Found all;
  for (const Found& f : found) {
    all.bad.note(f.bad.at, f.bad.value);
    all.least = std::min(all.least, f.least);
    all.largest = std::max(all.largest, f.largest);
  }
  refuse(domain.comm(), field_text(prefix_, prefix_.substr(prefix_.find('.') + 1)), all.bad);
  double values[2] = {-all.least, all.largest};
  domain.comm().allreduce(values, 2, MPI_DOUBLE, MPI_MAX);
  return {-values[0], values[1]};
}

#define ISOHALO_INSTANTIATE(D) template class InitialField<D>;
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo
