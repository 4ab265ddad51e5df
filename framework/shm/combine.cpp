#include "framework/shm/combine.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "datatypes/large_count.hpp"
#include "datatypes/mpi_check.hpp"

namespace isohalo {

namespace {

template <class T, auto op>
void loop(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T x, y;  // user buffers need not be aligned
    std::memcpy(&x, a + i * sizeof(T), sizeof(T));
    std::memcpy(&y, b + i * sizeof(T), sizeof(T));
    x = op(x, y);
    std::memcpy(out + i * sizeof(T), &x, sizeof(T));
  }
}

using Loop = void (*)(const std::byte*, const std::byte*, std::byte*, std::size_t);

template <class T>
Loop loop_of(MPI_Op op) {
  if (op == MPI_SUM) return loop<T, [](T a, T b) { return static_cast<T>(a + b); }>;
  if (op == MPI_PROD) return loop<T, [](T a, T b) { return static_cast<T>(a * b); }>;
  if (op == MPI_MAX) return loop<T, [](T a, T b) { return b < a ? a : b; }>;
  if (op == MPI_MIN) return loop<T, [](T a, T b) { return a < b ? a : b; }>;
  return nullptr;
}

/// Signed overflow wraps, as MPI's own sums do on every processor that we know.
Loop integer_loop(std::size_t bytes, bool is_signed, MPI_Op op) {
  if (op == MPI_SUM || op == MPI_PROD) is_signed = false;
  // MPICH 4.0.2 compares unsigned types as signed ones.
  if (bytes == 1) return is_signed ? loop_of<std::int8_t>(op) : loop_of<std::uint8_t>(op);
  if (bytes == 2) return is_signed ? loop_of<std::int16_t>(op) : loop_of<std::uint16_t>(op);
  if (bytes == 4) return is_signed ? loop_of<std::int32_t>(op) : loop_of<std::uint32_t>(op);
  if (bytes == 8) return is_signed ? loop_of<std::int64_t>(op) : loop_of<std::uint64_t>(op);
  return nullptr;
}

enum class Kind { other, whole, natural, real, complex, logical, bytes, pair };

/// The classes of types that MPI's operations are defined on (MPI 4.0, section 6.9.2).
Kind kind_of(MPI_Datatype type) {
  static const auto kinds = [] {
    std::vector<std::pair<MPI_Datatype, Kind>> k;
    const auto add = [&](Kind kind, std::initializer_list<MPI_Datatype> types) {
      for (MPI_Datatype t : types)
        if (t != MPI_DATATYPE_NULL) k.emplace_back(t, kind);
    };
    add(Kind::real, {MPI_DOUBLE, MPI_FLOAT, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8});
    add(Kind::whole, {MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_SHORT, MPI_SIGNED_CHAR, MPI_INT8_T, MPI_INT16_T,
                      MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_OFFSET, MPI_COUNT, MPI_INTEGER, MPI_INTEGER1,
                      MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8});
    add(Kind::natural, {MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UNSIGNED_SHORT,
                        MPI_UNSIGNED_CHAR, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T});
    add(Kind::complex, {MPI_COMPLEX8, MPI_COMPLEX16, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX,
                        MPI_C_LONG_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_CXX_FLOAT_COMPLEX,
                        MPI_CXX_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX});
    add(Kind::logical, {MPI_C_BOOL, MPI_CXX_BOOL, MPI_LOGICAL});
    add(Kind::bytes, {MPI_BYTE});
    add(Kind::pair, {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT,
                     MPI_2REAL, MPI_2DOUBLE_PRECISION, MPI_2INTEGER});
    return k;
  }();
  for (const auto& [t, kind] : kinds)
    if (t == type) return kind;
  return Kind::other;
}

bool among(MPI_Op op, std::initializer_list<MPI_Op> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool defined(Kind kind, MPI_Op op) {
  const bool arithmetic = among(op, {MPI_SUM, MPI_PROD}), order = among(op, {MPI_MAX, MPI_MIN});
  const bool logical = among(op, {MPI_LAND, MPI_LOR, MPI_LXOR}), bits = among(op, {MPI_BAND, MPI_BOR, MPI_BXOR});
  switch (kind) {
    case Kind::whole:
    case Kind::natural:
      return arithmetic || order || logical || bits;
    case Kind::real:
      return arithmetic || order;
    case Kind::complex:
      return arithmetic;
    case Kind::logical:
      return logical;
    case Kind::bytes:
      return bits;
    case Kind::pair:
      return among(op, {MPI_MAXLOC, MPI_MINLOC});
    case Kind::other:
      break;
  }
  return false;
}

bool is_predefined(MPI_Op op) {
  return among(op, {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR,
                    MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP, MPI_OP_NULL});
}

constexpr std::size_t kBlockBytes =
    4096;  // of a vector at a time: what lies between two levels of the tree stays cached

}  // namespace

std::optional<Combine> Combine::of(MPI_Datatype type, MPI_Op op) {
  if (type == MPI_DATATYPE_NULL) return std::nullopt;
  const Kind kind = kind_of(type);
  if (is_predefined(op)) {
    if (!defined(kind, op)) return std::nullopt;
  } else if (kind == Kind::other) {
    int combiner = 0;
    mpi_check(mpi::type_get_combiner(type, &combiner), "MPI_Type_get_envelope");
    if (combiner != MPI_COMBINER_NAMED) return std::nullopt;
  }
  MPI_Aint low = 0, extent = 0;
  mpi_check(MPI_Type_get_extent(type, &low, &extent), "MPI_Type_get_extent");
  if (extent <= 0) return std::nullopt;
  const auto bytes = static_cast<std::size_t>(extent);
  Loop fast = nullptr;
  if (type == MPI_DOUBLE)
    fast = loop_of<double>(op);
  else if (type == MPI_FLOAT)
    fast = loop_of<float>(op);
  else if (kind == Kind::whole || kind == Kind::natural)
    fast = integer_loop(bytes, kind == Kind::whole, op);
  int commutes = 1;
  mpi_check(MPI_Op_commutative(op, &commutes), "MPI_Op_commutative");
  const bool exact =  // what rounds does not commute, and NaN has no order
      is_predefined(op) && kind != Kind::real && kind != Kind::complex && kind != Kind::pair;
  return Combine(type, op, bytes, fast, is_predefined(op), commutes != 0, exact);
}

void Combine::operator()(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count) const {
  if (loop_) return loop_(a, b, out, count);
  alignas(64) std::array<std::byte, kBlockBytes> block, aligned;
  const std::size_t most = kBlockBytes / bytes_;
  for (std::size_t at = 0; at < count; at += most) {
    const std::size_t n = std::min(most, count - at), bytes = n * bytes_;
    std::memcpy(block.data(), b + at * bytes_, bytes);
    const std::byte* from = a + at * bytes_;
    // Slots are aligned to 8 bytes, and an operation may count on more.
    if (reinterpret_cast<std::uintptr_t>(from) % alignof(std::max_align_t) != 0)
      from = static_cast<const std::byte*>(std::memcpy(aligned.data(), from, bytes));
    mpi_check(MPI_Reduce_local(from, block.data(), static_cast<int>(n), type_, op_), "MPI_Reduce_local");
    std::memcpy(out + at * bytes_, block.data(), bytes);
  }
}

void Combine::join(std::span<const Join> joins, std::span<const std::byte* const> inputs, std::byte* out,
                   std::size_t count) const {
  if (joins.size() == 1) return (*this)(inputs[0], inputs[1], out, count);
  constexpr std::size_t most_between = 16;  // of a balanced tree of 2^16 ranks
  alignas(64) std::array<std::array<std::byte, kBlockBytes>, most_between> between;
  const std::size_t most = kBlockBytes / bytes_;
  for (std::size_t at = 0; at < count; at += most) {
    const std::size_t n = std::min(most, count - at);
    const auto reg = [&](int k) {
      const auto place = static_cast<std::size_t>(k);
      return place < inputs.size() ? inputs[place] + at * bytes_ : between[place - inputs.size()].data();
    };
    for (const Join& j : joins)
      (*this)(reg(j.a), reg(j.b),
              j.to < 0 ? out + at * bytes_ : between[static_cast<std::size_t>(j.to) - inputs.size()].data(), n);
  }
}

}  // namespace isohalo
