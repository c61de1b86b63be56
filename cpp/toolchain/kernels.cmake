# The kernels for pages: cpp/bindings/<name>.cpp becomes
#   <name>.mjs and <name>.wasm   a factory that is given the compiled module: create({wasm: WebAssembly.Module})
#   <name>.js.mjs                the same source as JavaScript alone, for places that refuse WebAssembly
#
# The small runtime leaves fetching and compiling to the page's loader, which knows what each way of embedding allows.
# EMBIND_AOT is off: for functions of strings it saves nothing (measured: 40 bytes more).
set(kernel_compile_options -Oz -flto -fno-exceptions -fno-rtti -DEMSCRIPTEN_HAS_UNBOUND_TYPE_NAMES=0)
set(kernel_link_options
  -Oz -flto -fno-exceptions -fno-rtti --closure=1 -lembind
  -sMODULARIZE -sEXPORT_ES6 -sDYNAMIC_EXECUTION=0 -sFILESYSTEM=0 -sMALLOC=emmalloc -sSUPPORT_LONGJMP=0
  -sTEXTDECODER=2 -sINITIAL_MEMORY=1MB -sSTACK_SIZE=128KB -sALLOW_MEMORY_GROWTH)
set(wasm_link_options -sMINIMAL_RUNTIME -sMINIMAL_RUNTIME_STREAMING_WASM_COMPILATION -sENVIRONMENT=web -sWASM_BIGINT)
set(javascript_link_options -sWASM=0 -sWASM_BIGINT=0 -sENVIRONMENT=web,node -sINCOMING_MODULE_JS_API=[])

target_compile_options(kvcap PRIVATE ${kernel_compile_options})
foreach(kernel kernel kernel_full)
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/cpp/bindings/${kernel}.cpp)
    continue()
  endif()
  add_library(${kernel}_objects OBJECT cpp/bindings/${kernel}.cpp)
  target_link_libraries(${kernel}_objects PUBLIC kvcap)
  target_compile_options(${kernel}_objects PRIVATE ${kernel_compile_options})
  foreach(form wasm javascript)
    add_executable(${kernel}_${form})
    target_link_libraries(${kernel}_${form} PRIVATE ${kernel}_objects)
    target_link_options(${kernel}_${form} PRIVATE ${kernel_link_options} ${${form}_link_options})
  endforeach()
  set_target_properties(${kernel}_wasm PROPERTIES OUTPUT_NAME ${kernel} SUFFIX .mjs)
  set_target_properties(${kernel}_javascript PROPERTIES OUTPUT_NAME ${kernel}.js SUFFIX .mjs EXCLUDE_FROM_ALL ON)
endforeach()
