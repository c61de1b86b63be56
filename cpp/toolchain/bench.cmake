# The core's time without a page around it, text to text. Built only when asked for (--target kvcap_bench), by
# tests/bench.mjs.
if(NOT EMSCRIPTEN)
  add_executable(kvcap_bench EXCLUDE_FROM_ALL tests/bench/plan_bench.cpp)
  target_link_libraries(kvcap_bench PRIVATE kvcap)
endif()
