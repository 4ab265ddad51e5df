#pragma once
/// How much is checked of what a program calls.

namespace isohalo {

/// Errors of arguments, handles and sizes are always found, on the rank that makes them. Ranks that call with
/// arguments that differ where they must be equal, in functions that do not communicate, are found only at the
/// level "communication": on in Debug builds and when the environment has ISOHALO_CHECK=communication, off with
/// ISOHALO_CHECK=local. Equal on all ranks. Throws UsageError for another word. Local.
bool checks_communication();

}  // namespace isohalo
