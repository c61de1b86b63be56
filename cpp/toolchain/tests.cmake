# The doctest program: one ctest test for each source file, natively and, with KVCAP_WASM_TESTS, as WebAssembly in
# Node. Tests run in the project's folder, so they open "tests/data/…".
file(GLOB test_sources CONFIGURE_DEPENDS tests/cpp/*.cpp)
if(NOT test_sources)
  message(STATUS "No tests in tests/cpp yet")
  return()
endif()
# doctest itself is not what is tested, and takes a long time to compile with the sanitizers.
set_source_files_properties(tests/cpp/main.cpp PROPERTIES COMPILE_OPTIONS $<$<BOOL:${KVCAP_SANITIZE}>:-fno-sanitize=all>)
add_executable(kvcap_tests ${test_sources})
target_link_libraries(kvcap_tests PRIVATE kvcap)
target_include_directories(kvcap_tests SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/headers)

# The core kernel defines the same names over, so it is a program of its own.
if(NOT EMSCRIPTEN)
  add_executable(kvcap_core_tests tests/cpp/core/core_test.cpp tests/cpp/main.cpp)
  target_link_libraries(kvcap_core_tests PRIVATE kvcap_core)
  target_include_directories(kvcap_core_tests SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/headers)
  add_test(NAME native.core COMMAND kvcap_core_tests WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  # What it allocates its memory takes back as a whole, which native memory does not.
  set_tests_properties(native.core PROPERTIES ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
endif()

if(EMSCRIPTEN)
  # doctest reports a failed REQUIRE by an exception; the core stays without.
  target_compile_options(kvcap_tests PRIVATE -fexceptions)
  target_link_options(kvcap_tests PRIVATE
    -fexceptions -sNODERAWFS -sENVIRONMENT=node -sEXIT_RUNTIME -sALLOW_MEMORY_GROWTH -sSTACK_SIZE=1MB
    -sASSERTIONS=1 -sSTACK_OVERFLOW_CHECK=2)
  set_target_properties(kvcap_tests PROPERTIES SUFFIX .cjs)
  return()
endif()

set(platforms native)
set(native_command $<TARGET_FILE:kvcap_tests>)
if(KVCAP_WASM_TESTS)
  list(APPEND platforms wasm)
  include(ExternalProject)
  ExternalProject_Add(wasm_tests
    SOURCE_DIR ${CMAKE_SOURCE_DIR}
    BINARY_DIR ${CMAKE_BINARY_DIR}/wasm
    CMAKE_ARGS -DCMAKE_TOOLCHAIN_FILE=${CMAKE_CURRENT_LIST_DIR}/emscripten.cmake -DCMAKE_BUILD_TYPE=Debug
               -DKVCAP_KERNELS=OFF
    BUILD_COMMAND ${CMAKE_COMMAND} --build <BINARY_DIR> -j 2
    BUILD_ALWAYS ON
    USES_TERMINAL_BUILD ON
    INSTALL_COMMAND "")
  find_program(KVCAP_NODE node REQUIRED)
  set(wasm_command ${KVCAP_NODE} ${CMAKE_BINARY_DIR}/wasm/kvcap_tests.cjs)
endif()
foreach(platform IN LISTS platforms)
  foreach(source IN LISTS test_sources)
    if(source MATCHES "/main\\.cpp$")
      continue()
    endif()
    cmake_path(GET source STEM stem)
    add_test(NAME ${platform}.${stem} COMMAND ${${platform}_command} --source-file=*/${stem}.cpp
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    # A file of which no test case was run is a test that cannot fail.
    set_tests_properties(${platform}.${stem} PROPERTIES FAIL_REGULAR_EXPRESSION "test cases: +0 ")
  endforeach()
endforeach()
