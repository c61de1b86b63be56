# One program for each door of the kernel, run by tests/fuzz.mjs.
foreach(door config index gguf safetensors log request built wish paging quiz)
  add_executable(fuzz_${door} tests/fuzz/fuzz.cpp)
  target_compile_definitions(fuzz_${door} PRIVATE KVCAP_FUZZ_${door})
  target_link_libraries(fuzz_${door} PRIVATE kvcap)
  target_link_options(fuzz_${door} PRIVATE -fsanitize=fuzzer)
endforeach()
