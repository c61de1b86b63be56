/** Style sheets are bundled as text. */
declare module "*.css" {
  const css: string;
  export default css;
}

/** The compiled kernel's factory, which is given the compiled module. */
declare module "kernel:core" {
  const create: (options: { wasm: WebAssembly.Module }) => Promise<import("./kernel.js").WasmInstance>;
  export default create;
}

/** The kernel's bytes, inside the script. */
declare module "kernel:core.wasm" {
  const bytes: Uint8Array<ArrayBuffer>;
  export default bytes;
}
