#pragma once
/// Initial fields: values from global indices, the same on any decomposition (docs/model.md, "Initial fields").

#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "framework/run/config.hpp"
#include "framework/run/solver.hpp"

namespace isohalo {

/// The least and the largest of values.
struct Extremes {
  double least, largest;
};

/// The kinds of initial fields.
const std::vector<std::string>& initial_kinds();

/// One [initial] (or [initial.NAME], or [source]) table, read and checked.
template <int D>
class InitialField {
 public:
  /// Reads the keys for the field `name`; `only` when the solver has no other field, so that the name may be left
  /// out. `grid`: for a field on faces, `on_faces` of them.
  static InitialField read(Config& config, const GridSettings<D>& grid, const std::string& name, bool only);

  /// The table `path`, [source] (or [source.NAME]) or that of a coefficient, with the same keys; without `kind` it
  /// must say its own.
  static InitialField read_table(Config& config, const GridSettings<D>& grid, const std::string& path,
                                 const std::optional<std::string>& kind = {});
  /// A coefficient that is no table: of this value by cell, whose magnitude is at most `largest`.
  static InitialField coefficient(const GridSettings<D>& grid, const std::string& path,
                                  std::function<double(const Index<D>&)> value, double largest);

  /// Sets the owned cells. Values are computed in binary64 and rounded once to the field's type. Collective; throws
  /// UsageError, agreed, for an unfit file, a value beyond the type's range, NaN or infinity. For a field from a
  /// file the configuration then names it by its digest.
  void fill(const CartesianDomain<D>& domain, const FieldHandle<D>& field, Config& config) const;

  /// Throws UsageError, agreed, when the file of a field has no such dataset of this shape and of numbers. Reads
  /// one value. Collective.
  void check_file(const Communicator& comm) const;

  /// The least and the largest of the values, rounded to the field's type, without the memory of a field: a file is
  /// read in pieces. Collective; throws as `fill` does.
  Extremes extremes(const CartesianDomain<D>& domain) const;

  /// The values where they depend on the time: those of an expression with t. `fill` gives those of time 0.
  const std::optional<ValuesInTime<D>>& in_time() const { return in_time_; }

  bool from_file() const { return kind_ == "file"; }
  /// A bound of the magnitude of the values, before they are rounded, that is known before they are; none of a
  /// file.
  std::optional<double> largest() const { return largest_; }
  /// The seed of a random field, 0 otherwise.
  std::int64_t seed() const { return seed_; }

 private:
  /// The value of a cell; a copy of it may keep what it has worked out.
  using CellValue = std::function<double(const Index<D>&)>;

  /// A value that the field's type does not have: its linear index, the largest integer for none.
  struct Bad {
    std::int64_t at = std::numeric_limits<std::int64_t>::max();
    double value = 0;
    void note(std::int64_t index, double v) {
      if (index < at) at = index, value = v;
    }
  };
  /// The keys below `given`, which are called `prefix` in the effective configuration.
  static InitialField read_as(Config& config, const GridSettings<D>& grid, const std::string& given,
                              const std::string& prefix, const std::optional<std::string>& kind);

  /// Throws UsageError, agreed, where any rank has such a value. Collective.
  void refuse(const Communicator& comm, const std::string& what, const Bad& bad) const;
  /// Where to change them, as the end of a message.
  std::string other_values() const;
  /// f(i, value, thread) for the cells of `box`, by several threads.
  template <class F>
  void for_each_value(const Box<D>& box, const F& f) const;
  /// The part `box` of the values in the file.
  std::vector<double> from_file_in(const Box<D>& box) const;

  InitialField() = default;

  GridSettings<D> grid_;
  std::string prefix_, given_, kind_;  ///< the table in the canonical text, in the input
  CellValue value_;                    ///< none of a field from a file
  std::optional<ValuesInTime<D>> in_time_;
  std::optional<double> largest_;
  std::int64_t seed_ = 0;
  std::filesystem::path file_;
  std::string dataset_;
};

}  // namespace isohalo
