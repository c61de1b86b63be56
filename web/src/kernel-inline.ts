/** The kernel inside the script: needs no request, so it starts from a file, in a sandboxed frame and across origins. */
import create from "kernel:core";
import bytes from "kernel:core.wasm";
import { provideKernels } from "./kernel.js";
import { loadMore } from "./more.js";
import { beside } from "./more-script.js";

provideKernels({
  core: async () => create({ wasm: bytes() }),
  full: async () => (await loadMore()).kernel(),
  plain: beside("kv-capacity-nowasm.js"),
});
