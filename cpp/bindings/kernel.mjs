// Binds the core kernel: a factory of the same form as Emscripten's, for the functions of kernel.cpp.

/** @param {{wasm: BufferSource}} options */
export default async ({ wasm }) => {
  let instance;
  try {
    // At once, so that the page's first frame has the answer.
    instance = new WebAssembly.Instance(new WebAssembly.Module(wasm));
  } catch (error) {
    // Chromium refused more than 4 KB until 2023 (blink-dev, "Deprecate module size limit").
    if (!/^Range/.test(error)) throw error;
    ({ instance } = await WebAssembly.instantiate(wasm));
  }
  const { _initialize, memory, begin, plan, catalogue } = instance.exports;
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
