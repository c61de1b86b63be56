/** Style sheets are bundled as text. */
declare module "*.css" {
  const css: string;
  export default css;
}

/** The kernel's factory, which is given its bytes. */
declare module "kernel:core" {
  const create: (options: { wasm: BufferSource }) => Promise<import("./contract.js").WasmInstance>;
  export default create;
}

/** The kernel's bytes, inside the script; unpacked when they are asked for. */
declare module "kernel:core.wasm" {
  const bytes: () => Uint8Array<ArrayBuffer>;
  export default bytes;
}

/** The full kernel's factory, which is given the compiled module. */
declare module "kernel:full" {
  const create: (options: { wasm: WebAssembly.Module }) => Promise<import("./contract.js").WasmInstance>;
  export default create;
}

/** How a module gets each file of words. */
declare module "words:files" {
  const files: Partial<Record<string, () => Promise<{ default: Record<string, string> }>>>;
  export default files;
}

/** The full kernel's bytes, likewise. */
declare module "kernel:full.wasm" {
  const bytes: () => Uint8Array<ArrayBuffer>;
  export default bytes;
}

/** SHA-256 of the kernels' bytes, as hex digits. */
declare module "kernel:core.sha256" {
  const sha256: string;
  export default sha256;
}
declare module "kernel:full.sha256" {
  const sha256: string;
  export default sha256;
}

/** The full kernel as JavaScript alone. */
declare module "kernel:javascript" {
  const create: () => Promise<import("./contract.js").WasmInstance>;
  export default create;
}
