#pragma once
/// ISOHALO_INDEPENDENT, before a loop: its passes do not depend on each other, though the compiler cannot see it
/// (what is written and what is read come by pointers). Saves the comparison of addresses before each row.

#if defined(__clang__)
#define ISOHALO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define ISOHALO_INDEPENDENT _Pragma("GCC ivdep")
#else
#define ISOHALO_INDEPENDENT
#endif
