#include "framework/halo/packed_mover.hpp"

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

template <int D>
PackedMover<D>::PackedMover(const CartesianDomain<D>& domain, int first_tag, HaloSchedule<D> schedule,
                            std::span<const std::int64_t> element_bytes)
    : HaloMover<D>(domain, first_tag, std::move(schedule)) {
  std::size_t most = 0;
  for (const auto& stage : this->schedule_.stages) {
    auto& out = out_.emplace_back();
    auto& in = in_.emplace_back();
    for (const auto& m : stage.send) out.push_back(parcel_of(m, element_bytes));
    for (const auto& m : stage.receive) in.push_back(parcel_of(m, element_bytes));
    receives_.emplace_back(in.size(), MPI_REQUEST_NULL);
    most = std::max(most, in.size());
  }
  arrived_.resize(most);
}

template <int D>
typename PackedMover<D>::Parcel PackedMover<D>::parcel_of(const HaloMessage<D>& message,
                                                          std::span<const std::int64_t> element_bytes) const {
  BoxPacker<D> cells(message.boxes());
  std::vector<std::int64_t> offsets{0};
  for (std::int64_t bytes : element_bytes)
    offsets.push_back((offsets.back() + cells.cells() * bytes + 63) / 64 * 64);
  const std::int64_t size = offsets.back();
  return {message.peer, std::move(cells), std::move(offsets), LineBuffer(size)};
}

template <int D>
void PackedMover<D>::pack(const Parcel& parcel, std::byte* buffer) const {
  for (std::size_t f = 0; f < this->arrays_.size(); ++f)
    parcel.cells.pack(this->arrays_[f], buffer + parcel.offsets[f]);
}

template <int D>
void PackedMover<D>::unpack(const Parcel& parcel, const std::byte* buffer) const {
  for (std::size_t f = 0; f < this->arrays_.size(); ++f)
    parcel.cells.unpack(this->arrays_[f], buffer + parcel.offsets[f]);
}

template <int D>
void PackedMover<D>::post_receives() {
  const MPI_Comm comm = this->domain_.comm().get();
  for (std::size_t k = 0; k < in_.size(); ++k)
    for (std::size_t m = 0; m < in_[k].size(); ++m) {
      const Parcel& p = in_[k][m];
      mpi_check(
          MPI_Irecv_c(p.buffer.get(), p.offsets.back(), MPI_BYTE, p.peer, this->first_tag_, comm, &receives_[k][m]),
          "MPI_Irecv in a halo exchange", comm);
    }
}

template <int D>
void PackedMover<D>::send(std::size_t stage) {
  const MPI_Comm comm = this->domain_.comm().get();
  for (const Parcel& p : out_[stage]) {
    pack(p, p.buffer.get());
    mpi_check(MPI_Isend_c(p.buffer.get(), p.offsets.back(), MPI_BYTE, p.peer, this->first_tag_, comm,
                          &sends_.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Isend in a halo exchange", comm);
  }
}

template <int D>
bool PackedMover<D>::received(std::size_t stage) {
  auto& requests = receives_[stage];
  int count = 0;
  mpi_check(MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &count, arrived_.data(),
                         MPI_STATUSES_IGNORE),
            "halo exchange", this->domain_.comm().get());
  if (count == MPI_UNDEFINED) return true;  // none left
  for (int i = 0; i < count; ++i) {
    const Parcel& p = in_[stage][static_cast<std::size_t>(arrived_[static_cast<std::size_t>(i)])];
    unpack(p, p.buffer.get());
  }
  for (MPI_Request r : requests)
    if (r != MPI_REQUEST_NULL) return false;
  return true;
}

template <int D>
bool PackedMover<D>::sent() {
  if (sends_.empty()) return true;
  int done = 0;
  mpi_check(MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &done, MPI_STATUSES_IGNORE),
            "halo exchange", this->domain_.comm().get());
  if (done) sends_.clear();
  return done != 0;
}

template class PackedMover<1>;
template class PackedMover<2>;
template class PackedMover<3>;
template class PackedMover<4>;

}  // namespace isohalo::detail
