#include "framework/run/initial.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "datatypes/error.hpp"
#include "framework/io/checkpoint.hpp"
#include "framework/io/digest.hpp"
#include "framework/mpi/agreement.hpp"
#include "framework/run/cell_text.hpp"

namespace isohalo {

namespace {
constexpr double kMost = 1e300;
}

const std::vector<std::string>& initial_kinds() {
  static const std::vector<std::string> kinds{"constant", "linear",       "sine",   "gaussian",
                                              "box",      "checkerboard", "random", "file"};
  return kinds;
}

template <int D>
InitialField<D> InitialField<D>::read(Config& config, const GridSettings<D>& grid, const std::string& name,
                                      bool only, const std::filesystem::path& input_directory) {
  const std::string own = "initial." + name;
  const bool both = only && config.has(own) && config.has("initial.kind");
  if (both) {
    config.error(own, own + " and initial.kind are both given: write all keys of the field in one table, [" + own +
                          "] or [initial]");
    config.excuse(own);
  }
  const std::string given = only && (both || !config.has(own)) ? "initial" : own;
  return read_table(config, grid, given, "initial." + name, std::nullopt, input_directory);
}

template <int D>
InitialField<D> InitialField<D>::read_source(Config& config, const GridSettings<D>& grid,
                                             const std::filesystem::path& input_directory) {
  return read_table(config, grid, "source", "source", "constant", input_directory);
}

template <int D>
InitialField<D> InitialField<D>::read_table(Config& config, const GridSettings<D>& grid, const std::string& given,
                                            const std::string& prefix, const std::optional<std::string>& kind,
                                            const std::filesystem::path& input_directory) {
  constexpr auto d = static_cast<std::size_t>(D);
  InitialField f;
  f.grid_ = grid;
  f.prefix_ = prefix;
  const auto key = [&](const char* k) { return given + "." + k; };
  const auto number = [&](const char* k, std::optional<double> fallback, const char* help) {
    return config.number(key(k), {fallback, -kMost, kMost, false, "", help});
  };
  const auto list = [&](const char* k, double fallback, const char* help) {
    return config.numbers(key(k),
                          {d, std::vector<double>(d, fallback), -kMost, kMost, false, "value/length", help});
  };
  const std::size_t before = config.error_count();
  f.kind_ =
      config.text(key("kind"), {kind, initial_kinds(),
                                kind ? "how the source is made; each kind has keys of its own, those of [initial]"
                                     : "how the field begins; each kind has keys of its own"});
  if (config.error_count() > before) config.excuse(given, false);  // with the right kind other keys would be known
  if (f.kind_ == "constant") {
    f.value_ = number("value", 0.0, "value of every cell");
  } else if (f.kind_ == "linear") {
    f.value_ = number("value", 0.0, "value where all coordinates are 0");
    f.gradient_ = list("gradient", 0.0, "change of the value per length, in each dimension");
  } else if (f.kind_ == "sine") {
    f.amplitude_ = number("amplitude", 1.0, "factor of the product of one sine per dimension");
    f.modes_ = config.integers(key("modes"), {d, std::vector<std::int64_t>(d, 1), -1000000, 1000000, false, "",
                                              "half waves across the domain, per dimension"});
  } else if (f.kind_ == "gaussian") {
    f.amplitude_ = number("amplitude", 1.0, "value at the centre");
    std::vector<double> middle;
    for (int j = 0; j < D; ++j) middle.push_back(grid.origin[j] + 0.5 * grid.length[j]);
    f.center_ = config.numbers(
        key("center"), {d, middle, -kMost, kMost, false, "length", "centre; by default the middle of the domain"});
    f.width_ = config.number(key("width"), {0.1, 0, kMost, true, "length", "standard deviation"});
  } else if (f.kind_ == "box") {
    f.corner_low_ = config.numbers(key("low"), {d, {}, -kMost, kMost, false, "length", "lower corner of the box"});
    f.corner_high_ =
        config.numbers(key("high"), {d, {}, -kMost, kMost, false, "length", "upper corner of the box"});
    f.inside_ = number("inside", 1.0, "value of cells whose centre c has low <= c < high in every dimension");
    f.outside_ = number("outside", 0.0, "value of all other cells");
  } else if (f.kind_ == "checkerboard") {
    f.size_ = config.integer(key("size"),
                             {1, 1, std::int64_t{1} << 53, "cells", "edge of a square, in 3 dimensions of a cube"});
    f.even_ = number("even", 0.0, "value of the square that holds cell 0, and of every second one");
    f.odd_ = number("odd", 1.0, "value of the other squares");
  } else if (f.kind_ == "random") {
    f.seed_ = config.integer(
        key("seed"), {0, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), "",
                      "any integer; each gives other numbers (it is the seed of SplitMix64)"});
    f.low_ = number("low", 0.0, "the values are spread evenly from here");
    f.high_ = number("high", 1.0, "up to here");
  } else {
    f.file_ =
        config.text(key("file"), {{}, {}, "HDF5 file; a relative path starts at the directory of the input file"});
    f.dataset_ = config.text(key("dataset"), {{}, {}, "path in it of a dataset with the shape of the grid"});
    if (f.file_.is_relative()) f.file_ = input_directory / f.file_;
    // Where the values come from is no physics (see physics_text): they are named by their digest once they are
    // read.
    std::error_code ignored;  // of a file that was not given
    if (config.error_count() == before)
      config.set_effective(key("file"), Config::canonical(std::filesystem::absolute(f.file_, ignored).string()));
  }
  if (given != f.prefix_) {  // one spelling in the canonical text
    std::vector<std::string> moved;
    for (const auto& [k, v] : config.effective())
      if (k.starts_with("initial.") && k.find('.', 8) == std::string::npos) moved.push_back(k);
    for (const auto& k : moved) config.rename_effective(k, f.prefix_ + k.substr(7));
  }
  return f;
}

template <int D>
void InitialField<D>::row(const Index<D>& first, std::int64_t n, double* out) const {
  Index<D> i = first;
  for (std::int64_t x = 0; x < n; ++x, ++i[D - 1]) {
    double v = value_;
    if (kind_ == "linear") {
      for (int j = 0; j < D; ++j) v = v + gradient_[static_cast<std::size_t>(j)] * grid_.centre(j, i[j]);
    } else if (kind_ == "sine") {
      v = amplitude_;
      for (int j = 0; j < D; ++j) v = v * sines_[j][static_cast<std::size_t>(i[j])];
    } else if (kind_ == "gaussian") {
      double s = 0;
      for (int j = 0; j < D; ++j) {
        const double t = grid_.centre(j, i[j]) - center_[static_cast<std::size_t>(j)];
        s = j == 0 ? t * t : s + t * t;
      }
      v = amplitude_ * std::exp(-(s / (2 * width_ * width_)));
    } else if (kind_ == "box") {
      bool inside = true;
      for (int j = 0; j < D; ++j) {
        const double c = grid_.centre(j, i[j]);
        inside = inside && c >= corner_low_[static_cast<std::size_t>(j)] &&
                 c < corner_high_[static_cast<std::size_t>(j)];
      }
      v = inside ? inside_ : outside_;
    } else if (kind_ == "checkerboard") {
      std::int64_t squares = 0;
      for (int j = 0; j < D; ++j) squares += i[j] / size_;
      v = squares % 2 == 0 ? even_ : odd_;
    } else if (kind_ == "random") {
      const auto l = static_cast<std::uint64_t>(linear_index(box_of_shape<D>(grid_.shape), i));
      const std::uint64_t z = mix64(static_cast<std::uint64_t>(seed_) + (l + 1) * kGolden);
      v = low_ + (high_ - low_) * (static_cast<double>(z >> 11) * 0x1p-53);
    }
    out[x] = v;
  }
}

template <int D>
std::vector<double> InitialField<D>::file_values(const CartesianDomain<D>& domain) const {
  std::vector<double> values;
  agreed(domain.comm(), [&] { values = read_dataset<D>(file_, dataset_, grid_.shape, domain.owned()); });
  return values;
}

template <int D>
void InitialField<D>::check_file(const Communicator& comm) const {
  if (!from_file()) return;
  Box<D> first;
  for (int j = 0; j < D; ++j) first.high[j] = 1;
  agreed(comm, [&] { read_dataset<D>(file_, dataset_, grid_.shape, first); });
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
void InitialField<D>::prepare() {
  if (kind_ != "sine") return;
  for (int j = 0; j < D; ++j) {  // one evaluation per coordinate: the same bits as one per cell
    const auto m = static_cast<double>(modes_[static_cast<std::size_t>(j)]);
    sines_[j].resize(static_cast<std::size_t>(grid_.shape[j]));
    for (std::int64_t x = 0; x < grid_.shape[j]; ++x)
      sines_[j][static_cast<std::size_t>(x)] =
          std::sin(std::numbers::pi * m * (grid_.centre(j, x) - grid_.origin[j]) / grid_.length[j]);
  }
}

template <int D>
void InitialField<D>::fill(const CartesianDomain<D>& domain, const FieldHandle<D>& field, Config& config) const {
  InitialField ready = *this;
  const std::vector<double> from_disk = from_file() ? file_values(domain) : std::vector<double>{};
  const std::string what = (prefix_ == "source" ? "the source \"" : "the initial field \"") + field.name + "\"";
  const std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::int64_t bad = none;  // the first value beyond the type's range
  double bad_value = 0;
  agreed(domain.comm(), [&] {
    ready.prepare();
    const Box<D>& owned = domain.owned();
    const std::int64_t n = owned.extent(D - 1);
    std::vector<double> line(static_cast<std::size_t>(n));
    std::visit(
        [&](const auto& a) {
          using T = std::remove_const_t<std::remove_pointer_t<decltype(a.data)>>;
          for_each_row(owned, [&](Index<D> i) {
            if (from_file())
              std::copy_n(from_disk.data() + linear_index(owned, i), n, line.data());
            else
              ready.row(i, n, line.data());
            for (std::int64_t x = 0; x < n; ++x, ++i[D - 1])
              if (const double value = line[static_cast<std::size_t>(x)];
                  !round_to<T>(value, a.at(i)) && bad == none)
                bad = linear_index(domain.global(), i), bad_value = value;
          });
        },
        field.array);
  });
  const std::int64_t first = domain.comm().min(bad);
  agreed(domain.comm(), [&] {
    if (bad != none && bad == first)
      throw UsageError(what + " is " + Config::canonical(bad_value) + " at " + cell_text(domain.global(), bad) +
                       ", out of range of " +
                       (grid_.type == ElementType::uint8 ? "uint8 (0 .. 255)" : "float32 (up to 3.4e+38)") +
                       ": use other values in [" + prefix_.substr(0, prefix_.find('.')) + "]");
  });
  const FieldStatistics s = field_statistics(domain, field.array);
  if (s.first_not_finite >= 0)
    throw UsageError(what + " is NaN or infinite at " + cell_text(domain.global(), s.first_not_finite));
  if (from_file()) config.set_effective(prefix_ + ".data", Config::canonical(hex_digest(s.digest)));
}

template class InitialField<1>;
template class InitialField<2>;
template class InitialField<3>;
template class InitialField<4>;

}  // namespace isohalo
