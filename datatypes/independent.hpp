#pragma once
/// ISOHALO_INDEPENDENT, before a loop: its passes do not depend on each other, though the compiler cannot see it
/// (what is written and what is read come by pointers). Saves the comparison of addresses before each row.
/// ISOHALO_ONE_VECTOR: the same of a loop with as many passes as a vector has lanes, which GCC would unroll

#if defined(__clang__)
#define ISOHALO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define ISOHALO_ONE_VECTOR ISOHALO_INDEPENDENT
#elif defined(__GNUC__)
#define ISOHALO_INDEPENDENT _Pragma("GCC ivdep")
#define ISOHALO_ONE_VECTOR _Pragma("GCC unroll 1") _Pragma("GCC ivdep")
#else
#define ISOHALO_INDEPENDENT
#define ISOHALO_ONE_VECTOR
#endif
