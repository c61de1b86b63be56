# The program that libFuzzer drives, with all doors in it; tests/fuzz.mjs runs it.
add_executable(kvcap_fuzz tests/fuzz/fuzz.cpp)
target_link_libraries(kvcap_fuzz PRIVATE kvcap)
target_link_options(kvcap_fuzz PRIVATE -fsanitize=fuzzer)
