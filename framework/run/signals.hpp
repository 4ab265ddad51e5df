#pragma once
/// Signals that a run answers with a checkpoint.

namespace isohalo {

/// While it lives SIGTERM and SIGINT ask for a checkpoint and the end, SIGUSR1 for a checkpoint. A second SIGTERM
/// or SIGINT, a second or more after the first, ends the process as usual. One at a time in a process.
class SignalWatch {
 public:
  SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  /// The signal that asked this rank to stop, 0 if none did.
  int stop_signal() const;
  /// Has SIGUSR1 come since the last call?
  bool take_checkpoint_request();
};

/// "SIGTERM".
const char* signal_name(int signal);

}  // namespace isohalo
