# The kernels for pages. The small runtime leaves fetching and compiling to the page's loader, which knows what each way of
# embedding allows: both are factories that are given the compiled module, create({wasm: WebAssembly.Module}).
#   kernel.mjs, kernel.wasm             the core kernel, bound by hand (cpp/bindings/kernel.mjs)
#   kernel_full.mjs, kernel_full.wasm   the full kernel, bound by embind
#   kernel_full.js.mjs                  the same as JavaScript alone, for places that refuse WebAssembly
set(kernel_compile_options -Oz -flto -fno-exceptions -fno-rtti -fno-threadsafe-statics)
set(kernel_link_options -Oz -flto -fno-exceptions -fno-rtti -sFILESYSTEM=0 -sSUPPORT_LONGJMP=0 -sALLOW_MEMORY_GROWTH
                        -sINITIAL_MEMORY=1MB -sSTACK_SIZE=128KB)

target_compile_options(kvcap PRIVATE ${kernel_compile_options})
target_compile_options(kvcap_core PRIVATE ${kernel_compile_options})
# A log has megabytes: its scan is compiled to be fast. Only the full kernel has it.
set_source_files_properties(cpp/src/log_scan.cpp PROPERTIES COMPILE_OPTIONS -O2)

# No JavaScript of Emscripten's, no allocator: what every page loads has to be small.
add_executable(kernel_wasm cpp/bindings/kernel.cpp cpp/bindings/arena.cpp cpp/bindings/no_printf.cpp)
target_link_libraries(kernel_wasm PRIVATE kvcap_core)
target_compile_options(kernel_wasm PRIVATE ${kernel_compile_options})
target_link_options(kernel_wasm PRIVATE ${kernel_link_options} --no-entry -sMALLOC=none -sWASM_BIGINT
                    # Another half a percent off after brotli.
                    -sBINARYEN_EXTRA_PASSES=--flatten,--rereloop,-Oz,-Oz,--reorder-functions)
set_target_properties(kernel_wasm PROPERTIES OUTPUT_NAME kernel SUFFIX .wasm)
# Binaryen finds a little more in what it reads anew: 120 bytes after brotli, and 11 functions fewer, each of which a browser
# compiles when it is first called.
execute_process(COMMAND "${EMSCRIPTEN_ROOT_PATH}/em-config" BINARYEN_ROOT
                OUTPUT_VARIABLE binaryen_root OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
add_custom_command(TARGET kernel_wasm POST_BUILD COMMAND
  "${binaryen_root}/bin/wasm-opt" --enable-bulk-memory --enable-sign-ext --enable-mutable-globals
  --enable-nontrapping-float-to-int --gufa -Oz --always-inline-max-function-size=5 --reorder-functions
  $<TARGET_FILE:kernel_wasm> -o $<TARGET_FILE:kernel_wasm> VERBATIM)
configure_file(cpp/bindings/kernel.mjs ${CMAKE_BINARY_DIR}/kernel.mjs COPYONLY)

# EMBIND_AOT is off: for functions of strings it saves nothing (measured: 40 bytes more).
add_library(kernel_full_objects OBJECT cpp/bindings/kernel_full.cpp cpp/bindings/no_printf.cpp)
target_link_libraries(kernel_full_objects PUBLIC kvcap)
target_compile_options(kernel_full_objects PRIVATE ${kernel_compile_options} -DEMSCRIPTEN_HAS_UNBOUND_TYPE_NAMES=0)
set(wasm_link_options --closure=1 -sMINIMAL_RUNTIME -sMINIMAL_RUNTIME_STREAMING_WASM_COMPILATION -sENVIRONMENT=web -sWASM_BIGINT)
# No Closure here: the site's build makes all scripts small, and of this one Closure takes off nothing more.
set(javascript_link_options -sWASM=0 -sWASM_BIGINT=0 -sENVIRONMENT=web -sINCOMING_MODULE_JS_API=[])
foreach(form wasm javascript)
  add_executable(kernel_full_${form})
  target_link_libraries(kernel_full_${form} PRIVATE kernel_full_objects)
  target_link_options(kernel_full_${form} PRIVATE
    ${kernel_link_options} -lembind -sMODULARIZE -sEXPORT_ES6 -sDYNAMIC_EXECUTION=0 -sMALLOC=emmalloc
    -sTEXTDECODER=2 ${${form}_link_options})
endforeach()
# The full kernel without inlining across its sources, and the linker's list of what comes from which: npm run bench weighs
# features by it.
get_target_property(kvcap_sources kvcap SOURCES)
get_target_property(kvcap_includes kvcap INCLUDE_DIRECTORIES)
add_executable(kernel_full_apart EXCLUDE_FROM_ALL ${kvcap_sources} cpp/bindings/kernel_full.cpp cpp/bindings/no_printf.cpp)
add_dependencies(kernel_full_apart kvcap_data)
target_include_directories(kernel_full_apart PRIVATE ${kvcap_includes})
target_include_directories(kernel_full_apart SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/headers)
target_compile_options(kernel_full_apart PRIVATE ${kernel_compile_options} -fno-lto -DEMSCRIPTEN_HAS_UNBOUND_TYPE_NAMES=0)
target_link_options(kernel_full_apart PRIVATE ${kernel_link_options} -fno-lto -lembind -sMODULARIZE -sEXPORT_ES6
                    -sDYNAMIC_EXECUTION=0 -sMALLOC=emmalloc -sTEXTDECODER=2 -sENVIRONMENT=web -sWASM_BIGINT
                    -Wl,-Map=${CMAKE_BINARY_DIR}/kernel_full.map)
set_target_properties(kernel_full_apart PROPERTIES SUFFIX .mjs)
set_target_properties(kernel_full_wasm PROPERTIES OUTPUT_NAME kernel_full SUFFIX .mjs)
set_target_properties(kernel_full_javascript PROPERTIES OUTPUT_NAME kernel_full.js SUFFIX .mjs)
