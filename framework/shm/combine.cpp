#include "framework/shm/combine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

namespace {

struct Sum {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Product {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a * b);
  }
};
struct Largest {
  template <class T>
  static T of(T a, T b) {
    return a > b ? a : b;
  }
};
struct Least {
  template <class T>
  static T of(T a, T b) {
    return a < b ? a : b;
  }
};

template <class T, class Op>
void loop(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T x, y;  // user buffers need not be aligned
    std::memcpy(&x, a + i * sizeof(T), sizeof(T));
    std::memcpy(&y, b + i * sizeof(T), sizeof(T));
    x = Op::of(x, y);
    std::memcpy(out + i * sizeof(T), &x, sizeof(T));
  }
}

using Loop = void (*)(const std::byte*, const std::byte*, std::byte*, std::size_t);

template <class T>
Loop loop_of(MPI_Op op) {
  if (op == MPI_SUM) return loop<T, Sum>;
  if (op == MPI_PROD) return loop<T, Product>;
  if (op == MPI_MAX) return loop<T, Largest>;
  if (op == MPI_MIN) return loop<T, Least>;
  return nullptr;
}

/// Signed overflow wraps, as MPI's own sums do on every processor that we know.
Loop integer_loop(std::size_t bytes, bool is_signed, MPI_Op op) {
  if (op == MPI_SUM || op == MPI_PROD) is_signed = false;
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
    add(Kind::complex,
        {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX,
         MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX});
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
  const Kind kind = kind_of(type);
  if (kind == Kind::other || (is_predefined(op) && !defined(kind, op))) return std::nullopt;
  MPI_Aint low = 0, extent = 0;
  mpi_check(MPI_Type_get_extent(type, &low, &extent), "MPI_Type_get_extent");
  const auto bytes = static_cast<std::size_t>(extent);
  Loop fast = nullptr;
  if (type == MPI_DOUBLE)
    fast = loop_of<double>(op);
  else if (type == MPI_FLOAT)
    fast = loop_of<float>(op);
  else if (kind == Kind::whole || kind == Kind::natural)
    fast = integer_loop(bytes, kind == Kind::whole, op);
  return Combine(type, op, bytes, fast);
}

void Combine::operator()(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count) const {
  if (loop_) return loop_(a, b, out, count);
  alignas(64) std::array<std::byte, kBlockBytes> block;
  const std::size_t most = kBlockBytes / bytes_;
  for (std::size_t at = 0; at < count; at += most) {
    const std::size_t n = std::min(most, count - at), bytes = n * bytes_;
    std::memcpy(block.data(), b + at * bytes_, bytes);
    mpi_check(MPI_Reduce_local(a + at * bytes_, block.data(), static_cast<int>(n), type_, op_), "MPI_Reduce_local");
    std::memcpy(out + at * bytes_, block.data(), bytes);
  }
}

/// One block of every vector.
class Combine::Tree {
 public:
  Tree(const Combine& combine, std::span<const std::byte* const> vectors)
      : combine_(combine),
        vectors_(vectors),
        leaves_(std::bit_floor(vectors.size())),
        excess_(vectors.size() - leaves_) {}

  void run(std::byte* out, std::size_t offset, std::size_t count) {
    offset_ = offset;
    count_ = count;
    const std::byte* const result = value(0, leaves_, 0, out);
    if (result != out) std::memmove(out, result, count * combine_.bytes_);
  }

 private:
  /// The leaves from `first` to before `last`, in `into` unless they are one vector.
  const std::byte* value(std::size_t first, std::size_t last, std::size_t level, std::byte* into) {
    if (last - first == 1) {
      if (first >= excess_) return vectors_[first + excess_] + offset_;
      combine_(vectors_[2 * first] + offset_, vectors_[2 * first + 1] + offset_, into, count_);
      return into;
    }
    const std::size_t middle = (first + last) / 2;
    const std::byte* const left = value(first, middle, level + 1, between_[2 * level].data());
    const std::byte* const right = value(middle, last, level + 1, between_[2 * level + 1].data());
    combine_(left, right, into, count_);
    return into;
  }

  const Combine& combine_;
  std::span<const std::byte* const> vectors_;
  std::size_t leaves_, excess_, offset_ = 0, count_ = 0;
  static constexpr std::size_t kLevels = 12;  // of 2^12 ranks of a compute node
  alignas(64) std::array<std::array<std::byte, kBlockBytes>, 2 * kLevels> between_;
};

void Combine::all(std::span<const std::byte* const> vectors, std::byte* out, std::size_t count) const {
  if (vectors.size() == 1) {
    if (out != vectors[0]) std::memmove(out, vectors[0], count * bytes_);
    return;
  }
  if (vectors.size() == 2) return (*this)(vectors[0], vectors[1], out, count);
  Tree tree(*this, vectors);
  const std::size_t most = kBlockBytes / bytes_;
  for (std::size_t at = 0; at < count; at += most)
    tree.run(out + at * bytes_, at * bytes_, std::min(most, count - at));
}

}  // namespace isohalo::detail
