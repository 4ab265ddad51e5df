# Instrumentation of everything that the fuzzing harnesses (tests/fuzz) reach: libFuzzer's coverage and the sanitizers.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "ISOHALO_FUZZ needs clang, not ${CMAKE_CXX_COMPILER_ID}: use the preset \"fuzz\"")
endif()
set(ISOHALO_FUZZ_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
add_compile_options(-fsanitize=fuzzer-no-link ${ISOHALO_FUZZ_FLAGS})
add_link_options(${ISOHALO_FUZZ_FLAGS})
