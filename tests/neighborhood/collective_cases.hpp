#pragma once
/// Random collectives with everything needed to run them through the C interface and to predict, byte for byte and
/// without it, what the receive buffer must hold afterwards.

#include <mpi.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "datatypes/datatype.hpp"
#include "framework/isohalo.h"
#include "tests/mpi_main.hpp"

namespace isohalo::test {

/// A datatype of two int64 values, and where these lie.
struct PairType {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int per_element = 2;                   ///< values in one element
  std::array<std::int64_t, 2> offset{};  ///< bytes
  std::int64_t extent = 0;
  Datatype owner;

  std::int64_t place(std::int64_t value) const {  // of the value-th value of a block, in bytes
    return value / per_element * extent + offset[static_cast<std::size_t>(value % per_element)];
  }
};

inline PairType pair_type(int kind) {
  PairType p;
  MPI_Datatype t = MPI_DATATYPE_NULL;
  if (kind == 0) {  // predefined
    p.type = MPI_INT64_T, p.per_element = 1, p.offset = {0, 0}, p.extent = 8;
    return p;
  }
  if (kind == 1) {  // dense, derived
    MPI_Type_contiguous(2, MPI_INT64_T, &t);
    p.offset = {0, 8}, p.extent = 16;
  } else if (kind == 2) {  // a hole
    MPI_Type_vector(2, 1, 2, MPI_INT64_T, &t);
    p.offset = {0, 16}, p.extent = 24;
  } else if (kind == 4) {  // a struct that begins behind its address
    const int lengths[2] = {1, 1};
    const MPI_Aint places[2] = {24, 8};
    const MPI_Datatype types[2] = {MPI_INT64_T, MPI_INT64_T};
    MPI_Type_create_struct(2, lengths, places, types, &t);
    p.offset = {24, 8}, p.extent = 24;
  } else {  // back to front, with a lower bound below zero and a padded extent
    const int lengths[2] = {1, 1};
    const MPI_Aint places[2] = {8, 0};
    MPI_Datatype reversed = MPI_DATATYPE_NULL;
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT64_T, &reversed);
    MPI_Type_create_resized(reversed, -8, 32, &t);
    MPI_Type_free(&reversed);
    p.offset = {8, 0}, p.extent = 32;
  }
  p.owner = Datatype::adopt(t);
  p.type = p.owner.get();
  return p;
}

/// The type at `memory`, wherever the buffer of a call begins: for MPI_BOTTOM.
inline Datatype at_absolute_address(const PairType& p, const void* memory) {
  MPI_Aint address = 0, low = 0, extent = 0;
  MPI_Get_address(memory, &address);
  MPI_Type_get_extent(p.type, &low, &extent);
  const int one = 1;
  MPI_Datatype moved = MPI_DATATYPE_NULL, t = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(1, &one, &address, &p.type, &moved);
  MPI_Type_create_resized(moved, address + low, extent, &t);
  MPI_Type_free(&moved);
  return Datatype::adopt(t);
}

/// A Cartesian communicator and a list on it, with ranks computed by MPI_Cart_rank alone.
struct Setting {
  MPI_Comm cart = MPI_COMM_NULL;
  int d = 1, s = 0;
  std::vector<int> dims, periods, relative;
  std::vector<int> sources, targets;  ///< -1 where absent

  Setting(const Setting&) = delete;
  Setting(Setting&&) = delete;
  ~Setting() {
    if (cart != MPI_COMM_NULL) MPI_Comm_free(&cart);
  }
  Setting(MPI_Comm comm, std::vector<int> extents, std::vector<int> wraps, std::vector<int> list)
      : d(static_cast<int>(extents.size())),
        dims(std::move(extents)),
        periods(std::move(wraps)),
        relative(std::move(list)) {
    MPI_Cart_create(comm, d, dims.data(), periods.data(), 0, &cart);
    s = static_cast<int>(relative.size()) / d;
    for (int i = 0; i < s; ++i) {
      targets.push_back(neighbor(i, 1));
      sources.push_back(neighbor(i, -1));
    }
  }

  int neighbor(int i, int sign) const {
    int me = 0, found = -1;
    MPI_Comm_rank(cart, &me);
    std::vector<int> at(static_cast<std::size_t>(d));
    MPI_Cart_coords(cart, me, d, at.data());
    for (int j = 0; j < d; ++j) {
      auto& c = at[static_cast<std::size_t>(j)];
      const auto jj = static_cast<std::size_t>(j);
      c += sign * relative[static_cast<std::size_t>(i * d + j)];
      if (periods[jj])
        c = ((c % dims[jj]) + dims[jj]) % dims[jj];
      else if (c < 0 || c >= dims[jj])
        return -1;
    }
    MPI_Cart_rank(cart, at.data(), &found);
    return found;
  }
};

/// The same random setting on all ranks.
inline std::unique_ptr<Setting> random_setting(MPI_Comm comm, Random& random) {
  int p = 1;
  MPI_Comm_size(comm, &p);
  const int d = static_cast<int>(random.in(1, 4));
  std::vector<int> dims(static_cast<std::size_t>(d), 1), periods, list;
  for (int left = p, f = 2; left > 1;) {  // prime factors to random dimensions
    if (left % f == 0)
      dims[static_cast<std::size_t>(random.in(0, d - 1))] *= f, left /= f;
    else
      ++f;
  }
  for (int j = 0; j < d; ++j) periods.push_back(static_cast<int>(random.in(0, 1)));
  const int s = static_cast<int>(random.in(0, 14)), reach = static_cast<int>(random.in(1, 4));
  for (int k = 0; k < s * d; ++k) list.push_back(static_cast<int>(random.in(-reach, reach)));
  if (s > 2 && random.in(0, 2) == 0) std::copy_n(list.begin(), d, list.end() - d);          // a repeat
  if (s > 2 && random.in(0, 2) == 0) std::fill(list.begin() + d, list.begin() + 2 * d, 0);  // itself
  return std::make_unique<Setting>(comm, dims, periods, list);
}

enum class Kind { alltoall, alltoallv, alltoallw, allgather, allgatherv, allgatherw, reduce, scatter_reduce };
inline constexpr int kKinds = 8;

inline bool is_gather(Kind k) {
  return k == Kind::allgather || k == Kind::allgatherv || k == Kind::allgatherw || k == Kind::reduce;
}
inline bool is_reduction(Kind k) {
  return k == Kind::reduce || k == Kind::scatter_reduce;
}
inline bool is_regular(Kind k) {
  return k == Kind::alltoall || k == Kind::allgather || is_reduction(k);
}

/// 31 a + b, with numbers that come round again.
inline std::int64_t in_order(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * 31u + static_cast<std::uint64_t>(b));
}

/// inout = 31 in + inout: neither commutative nor associative, so the order of the fold shows.
inline void ordered(void* in, void* inout, int* n, MPI_Datatype* type) {
  int size = 0;
  MPI_Type_size(*type, &size);
  const auto* a = static_cast<const std::int64_t*>(in);
  auto* b = static_cast<std::int64_t*>(inout);
  for (int k = 0; k < *n * size / 8; ++k) b[k] = in_order(a[k], b[k]);
}

/// One collective with its buffers and arguments.
class Case {
 public:
  Case(const Setting& setting, Kind kind, bool one_size, MPI_Op op, Random& random)
      : at_(setting), kind_(kind), op_(op) {
    const auto s = static_cast<std::size_t>(setting.s);
    base_ = random.in(0, 1000);
    most_ = random.in(0, 6) == 0 ? random.in(600, 1500) : random.in(0, 5);  // sometimes beyond the packing limit
    one_size_ = one_size || is_regular(kind);
    const int reduced =
        static_cast<int>(random.in(0, 1)) && op != MPI_SUM;  // MPI's own operations take predefined types
    for (auto* side : {&send_types_, &receive_types_})
      for (std::size_t i = 0; i < std::max<std::size_t>(s, 1); ++i)
        side->push_back(pair_type(is_reduction(kind) ? reduced : static_cast<int>(random.in(0, 4))));
    if (kind != Kind::alltoallw && kind != Kind::allgatherw)  // one type for all blocks
      for (auto* side : {&send_types_, &receive_types_})
        for (std::size_t i = 1; i < side->size(); ++i) copy_type((*side)[i], side->front());
    bottom_ = kind != Kind::reduce && random.in(0, 1);  // a reduction's vectors share one type: one address
    lay_out(send_, send_types_, is_gather(kind) ? 1 : s, false);
    if (is_reduction(kind))
      lay_out_one(receive_, send_types_.front());
    else
      lay_out(receive_, receive_types_, s, true);
    if (!bottom_) return;
    if (kind != Kind::alltoallw && kind != Kind::scatter_reduce)
      absolute_[0] = at_absolute_address(send_types_.front(), send_.memory.data());
    if (kind != Kind::alltoallw && kind != Kind::allgatherw && !is_reduction(kind))
      absolute_[1] = at_absolute_address(receive_types_.front(), receive_.memory.data());
  }

  /// request == nullptr: blocking.
  int call(isohalo_neighborhood iso, isohalo_request* r, bool persistent) {
    const void* sb = bottom_ ? MPI_BOTTOM : send_.memory.data();
    void* rb = bottom_ && !is_reduction(kind_) ? MPI_BOTTOM : receive_.memory.data();
    const auto &S = send_, &R = receive_;
    const MPI_Datatype st = absolute_[0] ? absolute_[0].get() : send_types_.front().type;
    const MPI_Datatype rt = absolute_[1] ? absolute_[1].get() : receive_types_.front().type;
    const int sn = S.counts.empty() ? 0 : S.counts.front(), rn = R.counts.empty() ? 0 : R.counts.front();
#define ISOHALO_FORMS(name, ...)                                            \
  return !r           ? isohalo_neighbor_##name(__VA_ARGS__, iso)           \
         : persistent ? isohalo_neighbor_##name##_init(__VA_ARGS__, iso, r) \
                      : isohalo_ineighbor_##name(__VA_ARGS__, iso, r)
    switch (kind_) {
      case Kind::alltoall:
        ISOHALO_FORMS(alltoall, sb, sn, st, rb, rn, rt);
      case Kind::alltoallv:
        ISOHALO_FORMS(alltoallv, sb, S.counts.data(), S.places.data(), st, rb, R.counts.data(), R.places.data(),
                      rt);
      case Kind::alltoallw:
        ISOHALO_FORMS(alltoallw, sb, S.counts.data(), S.bytes.data(), S.types.data(), rb, R.counts.data(),
                      R.bytes.data(), R.types.data());
      case Kind::allgather:
        ISOHALO_FORMS(allgather, sb, sn, st, rb, rn, rt);
      case Kind::allgatherv:
        ISOHALO_FORMS(allgatherv, sb, sn, st, rb, R.counts.data(), R.places.data(), rt);
      case Kind::allgatherw:
        ISOHALO_FORMS(allgatherw, sb, sn, st, rb, R.counts.data(), R.bytes.data(), R.types.data());
      case Kind::reduce:
        ISOHALO_FORMS(reduce, sb, rb, sn, st, op_);
      case Kind::scatter_reduce:
        ISOHALO_FORMS(scatter_reduce, sb, S.counts.data(), S.bytes.data(), S.types.data(), rb, rn, st, op_);
    }
#undef ISOHALO_FORMS
    return MPI_ERR_OTHER;
  }

  /// The caller of a started or persistent operation may free its datatypes at once.
  void free_types() {
    for (auto* side : {&send_types_, &receive_types_})
      for (PairType& t : *side) t.owner = Datatype();
    for (Datatype& t : absolute_) t = Datatype();
  }

  /// New values to send, and the receive buffer as it was in the beginning.
  void refill(std::int64_t turn) {
    turn_ = turn;
    int me = 0;
    MPI_Comm_rank(at_.cart, &me);
    std::fill(send_.memory.begin(), send_.memory.end(), std::byte{0x5a});
    std::fill(receive_.memory.begin(), receive_.memory.end(), std::byte{0xa5});
    for (std::size_t i = 0; i < send_.start.size(); ++i)
      for (std::int64_t v = 0; v < send_.values[i]; ++v)
        put(send_.memory, send_.start[i] + send_types_[i].place(v),
            value(me, is_gather(kind_) ? 0 : static_cast<int>(i), v));
  }

  /// Bytes of the receive buffer that are not what the definition says.
  std::int64_t wrong() const {
    std::vector<std::byte> right(receive_.memory.size(), std::byte{0xa5});
    if (is_reduction(kind_)) {
      for (std::int64_t v = 0; v < receive_.values[0]; ++v) {
        bool any = false;
        std::int64_t acc = 0;
        for (std::size_t i = 0; i < at_.sources.size(); ++i) {
          if (at_.sources[i] < 0) continue;
          const std::int64_t next = value(at_.sources[i], is_gather(kind_) ? 0 : static_cast<int>(i), v);
          acc = !any ? next : op_ == MPI_SUM ? acc + next : in_order(acc, next);
          any = true;
        }
        if (any) put(right, receive_.start[0] + send_types_.front().place(v), acc);
      }
    } else {
      for (std::size_t i = 0; i < at_.sources.size(); ++i)
        if (at_.sources[i] >= 0)
          for (std::int64_t v = 0; v < receive_.values[i]; ++v)
            put(right, receive_.start[i] + receive_types_[i].place(v),
                value(at_.sources[i], is_gather(kind_) ? 0 : static_cast<int>(i), v));
    }
    std::int64_t n = 0;
    for (std::size_t k = 0; k < right.size(); ++k) n += right[k] != receive_.memory[k];
    return n;
  }

  std::string text() const {
    std::string t = "kind " + std::to_string(static_cast<int>(kind_)) + ", dims";
    for (int n : at_.dims) t += " " + std::to_string(n);
    t += ", periods";
    for (int n : at_.periods) t += " " + std::to_string(n);
    t += ", list";
    for (int c : at_.relative) t += " " + std::to_string(c);
    return t + ", up to " + std::to_string(most_) + " pairs" + (bottom_ ? ", from MPI_BOTTOM" : "");
  }

 private:
  struct Buffer {
    std::vector<std::byte> memory;
    std::vector<std::int64_t> start, values;  // per block: byte of its address, number of values
    std::vector<int> counts, places;
    std::vector<MPI_Aint> bytes;
    std::vector<MPI_Datatype> types;
  };

  static void copy_type(PairType& to, const PairType& from) {
    to.type = from.type, to.per_element = from.per_element, to.offset = from.offset, to.extent = from.extent;
  }
  static void put(std::vector<std::byte>& memory, std::int64_t at, std::int64_t v) {
    std::memcpy(memory.data() + at, &v, sizeof v);
  }
  std::int64_t value(int origin, int block, std::int64_t v) const {
    return ((turn_ * 64 + origin) * 64 + block) * 4096 + v;
  }
  /// Pairs of the block that `origin` sends as block i.
  std::int64_t pairs(int origin, std::size_t i) const {
    if (is_regular(kind_)) return most_;
    const std::int64_t which = is_gather(kind_) ? (one_size_ ? 0 : origin) : static_cast<std::int64_t>(i);
    const std::int64_t more = one_size_ || is_gather(kind_) ? 0 : origin;
    return (base_ + 3 * which + more) % (most_ + 1);
  }

  void lay_out(Buffer& b, const std::vector<PairType>& types, std::size_t blocks, bool receiving) {
    int me = 0;
    MPI_Comm_rank(at_.cart, &me);
    const std::int64_t room = (most_ + 1) * 2 * 32 + 64;  // more than any block needs
    std::int64_t next = 64;
    for (std::size_t i = 0; i < blocks; ++i) {
      const PairType& t = types[i];
      const int other = receiving ? at_.sources[i] : is_gather(kind_) ? me : at_.targets[i];
      // Nothing that is passed for an absent neighbor may be looked at.
      std::int64_t n = pairs(receiving && other >= 0 ? other : me, i);
      const bool absent = other < 0 && !is_regular(kind_);
      if (absent) n = 7;
      b.values.push_back(2 * n);
      b.counts.push_back(absent ? -3 : static_cast<int>(2 * n / t.per_element));
      b.types.push_back(absent ? MPI_DATATYPE_NULL : t.type);
      if (kind_ == Kind::alltoall || kind_ == Kind::allgather || (kind_ == Kind::allgatherv && !receiving) ||
          (kind_ == Kind::allgatherw && !receiving) || kind_ == Kind::reduce) {
        b.start.push_back(static_cast<std::int64_t>(i) * b.counts.back() * t.extent);
        next = b.start.back() + room;
      } else if (kind_ == Kind::alltoallv || kind_ == Kind::allgatherv) {
        const auto place = static_cast<int>((next + t.extent - 1) / t.extent);
        b.places.push_back(place);
        b.start.push_back(place * t.extent);
        next = b.start.back() + room;
      } else {
        b.start.push_back(next);
        next += room + 8 * static_cast<std::int64_t>(i);
      }
    }
    b.memory.resize(static_cast<std::size_t>(next + room));
    for (std::int64_t start : b.start) {
      MPI_Aint address = 0;
      if (bottom_) MPI_Get_address(b.memory.data(), &address);
      b.bytes.push_back(address + static_cast<MPI_Aint>(start));
    }
  }

  void lay_out_one(Buffer& b, const PairType& t) {
    b.values = {2 * most_};
    b.counts = {static_cast<int>(2 * most_ / t.per_element)};
    b.start = {0};
    b.memory.resize(static_cast<std::size_t>((most_ + 1) * 64));
  }

  const Setting& at_;
  Kind kind_;
  MPI_Op op_;
  bool one_size_ = false, bottom_ = false;
  std::int64_t base_ = 0, most_ = 0, turn_ = 0;
  std::vector<PairType> send_types_, receive_types_;
  Datatype absolute_[2];  ///< of the send and the receive buffer, where MPI_BOTTOM is passed for them
  Buffer send_, receive_;
};

}  // namespace isohalo::test
