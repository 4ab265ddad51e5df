#include "framework/mpi/notice.hpp"

#include <list>
#include <new>
#include <vector>

#include "datatypes/mpi_check.hpp"

namespace isohalo::detail {

namespace {

/// What a notice is on the way.
struct Letter {
  std::uint64_t members = 0, serial = 0;  ///< of the communicator and of the object
  int mpi_class = MPI_ERR_OTHER, sent = 0;
  char text[376] = "";
};

/// Notices that MPI did not take at once, and may still read. There are some only after errors.
std::list<Letter>& letters() {
  static std::list<Letter> all;
  return all;
}

}  // namespace

void send_notice(const Communicator& comm, int tag, std::uint64_t serial, int peer, const Notice& notice) noexcept
    try {
  Letter& letter = letters().emplace_back();
  letter.members = comm.members();
  letter.serial = serial;
  letter.mpi_class = notice.mpi_class;
  letter.sent = notice.sent;
  notice.text.copy(letter.text, sizeof letter.text - 1);
  MPI_Request request = MPI_REQUEST_NULL;
  int done = 0;
  if (MPI_Isend(&letter, sizeof letter, MPI_BYTE, peer, tag, comm.get(), &request) != MPI_SUCCESS ||
      MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    return;
  if (done)
    letters().pop_back();
  else
    MPI_Request_free(&request);
} catch (const std::exception&) {  // no memory, or no MPI any more: the others learn nothing then
}

std::optional<int> take_message(const Communicator& comm, int source, int tag, std::span<std::byte> into) {
  for (;;) {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Count bytes = 0;
    mpi_check(MPI_Improbe(source, tag, comm.get(), &found, &message, &status), "MPI_Improbe", comm.get());
    if (!found) return std::nullopt;
    mpi_check(MPI_Get_elements_c(&status, MPI_BYTE, &bytes), "MPI_Get_elements_c");
    const bool fits = bytes == static_cast<MPI_Count>(into.size());
    std::vector<std::byte> other(fits ? 0 : static_cast<std::size_t>(bytes));
    mpi_check(MPI_Mrecv_c(fits ? into.data() : other.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE),
              "MPI_Mrecv of a control message", comm.get());
    if (fits) return status.MPI_SOURCE;
  }
}

std::optional<Notice> find_notice(const Communicator& comm, int tag, std::uint64_t serial) {
  Letter letter;
  while (const auto peer = take_message(comm, MPI_ANY_SOURCE, tag, std::as_writable_bytes(std::span(&letter, 1))))
    if (letter.members == comm.members() && letter.serial == serial)
      return Notice{*peer, letter.mpi_class, letter.sent, letter.text};
  return std::nullopt;
}

}  // namespace isohalo::detail
