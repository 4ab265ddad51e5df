#include "framework/halo/farewell.hpp"

#include <algorithm>
#include <chrono>

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

namespace {

constexpr const char* kLead = "halo exchange: the plan is gone on rank ";
constexpr const char* kListsDiffer =
    "halo exchange: the list of element sizes differs between ranks: pass the same on all of them";

/// Is exchange `a` before `b`? They come round again.
bool before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(b - a) > 0;
}

/// Those that may wait for a rank.
std::vector<int> listeners(const Communicator& comm, const std::vector<int>& neighbors) {
  std::vector<int> all = partners(comm);
  all.insert(all.end(), neighbors.begin(), neighbors.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void say_to(const std::vector<int>& ranks, const Communicator& comm, const ObjectName& name, std::uint32_t served,
            const std::string& why) noexcept {
  comm.keep();  // messages of the exchange may be under way
  send_notices(
      comm, name, ranks, MPI_ERR_ARG, served,
      why.starts_with(kLead) || why == kListsDiffer ? why : kLead + std::to_string(comm.rank()) + ": " + why);
}

}  // namespace

bool Farewell::is_neighbor(int rank) const {
  return std::find(neighbors_.begin(), neighbors_.end(), rank) != neighbors_.end();
}

/// It is about this exchange or an earlier one. A question is none when the ranks have met for that exchange, or
/// for a later one.
bool Farewell::concerns(const Notice& n, std::uint32_t exchange) const {
  const auto about = static_cast<std::uint32_t>(n.sent);
  return !before(exchange, about) && !(is_question(n) && before(about, met_));
}

void Farewell::hear() {
  while (auto notice = find_notice(comm_, name_.notices, name_.serial)) heard_.push_back(std::move(*notice));
}

void Farewell::listen() {
  hear();
  for (const Notice& n : heard_)
    if (is_neighbor(n.peer) && concerns(n, exchanges_ - 1)) throw UsageError(n.text);
}

std::vector<int> Farewell::gone() {
  hear();
  std::vector<int> list;
  for (const Notice& n : heard_)
    if (!is_question(n) && concerns(n, exchanges_ - 1)) list.push_back(n.peer);
  return list;
}

void Farewell::meet() {
  const auto begin = std::chrono::steady_clock::now();
  bool asked = false;
  const auto listen = [&] {
    hear();
    for (const Notice& n : heard_)
      if (concerns(n, exchanges_) && !(is_question(n) && static_cast<std::uint32_t>(n.sent) == exchanges_))
        throw UsageError(n.text);
    if (asked || std::chrono::steady_clock::now() < begin + kLongMeeting) return;
    asked = true;
    send_questions(comm_, name_, neighbors_, exchanges_, kListsDiffer);  // do they exchange instead?
  };
  try {
    detail::meet(comm_, name_, exchanges_, {}, listen);
  } catch (const UsageError& e) {
    break_off(e, exchanges_);
    throw;
  }
  met_ = exchanges_ + 1;
}

void Farewell::break_off(const Error& error, std::uint32_t served) noexcept {
  trouble_ = error.what();
  broken_ = true;
  say_to(listeners(comm_, neighbors_), comm_, name_, served, trouble_);
}

bool Farewell::say(bool in_flight) const noexcept {
  if ((trouble_.empty() && !in_flight) || comm_.size() == 1 || !mpi_is_active()) return false;
  if (!broken_)
    say_to(listeners(comm_, neighbors_), comm_, name_, exchanges_ - in_flight,
           trouble_.empty() ? "it was in the middle of an exchange" : trouble_);
  return true;
}

FormerFarewell::FormerFarewell(const Farewell& f)
    : comm_(f.comm_), name_(f.name_), listeners_(listeners(f.comm_, f.neighbors_)), served_(f.exchanges_) {}

void FormerFarewell::say(const Error& error) const noexcept {
  if (const auto comm = comm_.find()) say_to(listeners_, *comm, name_, served_, error.what());
}

}  // namespace isohalo::detail
