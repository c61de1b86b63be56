# The kernel's time without a page around it, text to text. Built only when asked for (--target kvcap_bench);
# tests/bench.mjs runs it, natively and as WebAssembly of the same code that a page gets.
add_executable(kvcap_bench EXCLUDE_FROM_ALL tests/bench/plan_bench.cpp)
target_link_libraries(kvcap_bench PRIVATE kvcap)
if(EMSCRIPTEN)
  target_compile_options(kvcap_bench PRIVATE ${kernel_compile_options})
  target_link_options(kvcap_bench PRIVATE
    -Oz -flto -fno-exceptions -fno-rtti -sENVIRONMENT=node -sMALLOC=emmalloc -sALLOW_MEMORY_GROWTH -sEXIT_RUNTIME)
  set_target_properties(kvcap_bench PROPERTIES SUFFIX .cjs)
endif()
