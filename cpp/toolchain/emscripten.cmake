# Toolchain file for the WebAssembly builds: the Emscripten that setup.mjs finds or installs.
if(NOT DEFINED ENV{KV_EMSCRIPTEN_ROOT})
  execute_process(COMMAND node "${CMAKE_CURRENT_LIST_DIR}/setup.mjs" --print-env
                  OUTPUT_VARIABLE exports RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "Emscripten is not to be had; the line above says why.")
  endif()
  foreach(name KV_EMSCRIPTEN_ROOT EM_CLOSURE_COMPILER)
    if(exports MATCHES "export ${name}='([^\n]*)'")
      set(ENV{${name}} "${CMAKE_MATCH_1}")
    endif()
  endforeach()
endif()

include("$ENV{KV_EMSCRIPTEN_ROOT}/cmake/Modules/Platform/Emscripten.cmake")

# The linker runs later, from a shell that may know nothing of this.
if(DEFINED ENV{EM_CLOSURE_COMPILER})
  set(CMAKE_CXX_LINKER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;EM_CLOSURE_COMPILER=$ENV{EM_CLOSURE_COMPILER}" CACHE STRING "")
endif()
