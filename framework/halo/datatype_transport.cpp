#include <algorithm>
#include <map>
#include <tuple>

#include "framework/halo/host_transport.hpp"

namespace isohalo::detail {

namespace {

template <int D>
class DatatypeTransport final : public HostTransport<D> {
 public:
  using HostTransport<D>::HostTransport;

 private:
  /// By stage and message.
  struct Types {
    std::vector<std::vector<Datatype>> send, receive;
  };
  /// Schedule, bytes and pitch of an element, its type, and strides.
  using Layout = std::tuple<std::size_t, std::int64_t, std::int64_t, Datatype (*)(), Index<D>>;

  Datatype type_of(const HaloMessage<D>& message, const ErasedArray<D>& a) const {
    Datatype element = a.element ? a.element() : bytes_type(a.bytes);
    Index<D> stride = a.byte_strides();
    if (std::all_of(stride.begin(), stride.end(), [&](std::int64_t s) { return s % a.bytes == 0; })) {
      for (std::int64_t& s : stride) s /= a.bytes;  // elements side by side are a run of a type
    } else {
      stride = a.stride;
      element = resized_type(element, a.pitch);
    }
    std::vector<Datatype> parts;
    for (const auto& r : message.regions)
      parts.push_back(region_type(r.region, a.owned.low, stride, element.get()));
    return parts.size() == 1 ? std::move(parts.front()) : joined_type(parts);
  }

  const Types& types_of(std::size_t array) {
    const ErasedArray<D>& a = this->arrays_[array];
    const Layout layout{this->schedule_of(array), a.bytes, a.pitch, a.element, a.stride};
    if (const auto known = types_.find(layout); known != types_.end()) return known->second;
    Types types;
    for (const auto& stage : this->task_.schedules[this->schedule_of(array)]) {
      auto& send = types.send.emplace_back();
      auto& receive = types.receive.emplace_back();
      for (const auto& m : stage.send) send.push_back(type_of(m, a));
      for (const auto& m : stage.receive) receive.push_back(type_of(m, a));
    }
    return types_.emplace(layout, std::move(types)).first->second;
  }

  void post_receives() override {
    for (std::size_t k = 0; k < this->stages(); ++k) {
      auto& requests = this->receives_[k];
      requests.clear();
      for (std::size_t f = 0; f < this->arrays_.size(); ++f) {
        const auto& types = types_of(f).receive[k];
        const auto& messages = this->stage_of(f, k).receive;
        for (std::size_t m = 0; m < messages.size(); ++m)
          this->receive_from(messages[m].peer, this->arrays_[f].data, 1, types[m].get(),
                             requests.emplace_back(MPI_REQUEST_NULL));
      }
    }
  }

  void send(std::size_t stage) override {
    for (std::size_t f = 0; f < this->arrays_.size(); ++f) {
      const auto& types = types_of(f).send[stage];
      const auto& messages = this->stage_of(f, stage).send;
      for (std::size_t m = 0; m < messages.size(); ++m)
        this->send_to(messages[m].peer, this->arrays_[f].data, 1, types[m].get());
    }
  }

  std::map<Layout, Types> types_;
};

}  // namespace

template <int D>
std::unique_ptr<HaloTransport<D>> datatype_transport(HaloTask<D> task) {
  return std::make_unique<DatatypeTransport<D>>(std::move(task));
}

#define ISOHALO_INSTANTIATE(D) template std::unique_ptr<HaloTransport<D>> datatype_transport<D>(HaloTask<D>);
ISOHALO_FOR_EACH_DIMENSION(ISOHALO_INSTANTIATE)
#undef ISOHALO_INSTANTIATE

}  // namespace isohalo::detail
