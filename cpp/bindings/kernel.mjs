// Binds the core kernel: a factory of the same form as Emscripten's, for the functions of kernel.cpp.

/** @param {{wasm: WebAssembly.Module}} options */
export default async ({ wasm }) => {
  const { _initialize, memory, begin, plan, catalogue } = (await WebAssembly.instantiate(wasm, {})).exports;
  _initialize();
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const read = (at) => {
    const [start, size] = new Uint32Array(memory.buffer, at, 2);
    return decoder.decode(new Uint8Array(memory.buffer, start, size));
  };
  return {
    plan(request) {
      const bytes = encoder.encode(request);
      const start = begin(bytes.length);
      new Uint8Array(memory.buffer).set(bytes, start);
      return read(plan());
    },
    catalogue: () => read(catalogue()),
  };
};
