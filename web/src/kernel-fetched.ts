/** The kernels as files beside the scripts, for bundlers, for caching and for Node. */
import create from "kernel:core";
import sha256 from "kernel:core.sha256";
import { provideKernels } from "./kernel.js";
import { bytesOf } from "./bytes.js";
import { loadMore } from "./more.js";

provideKernels({
  core: async () => create({ wasm: await bytesOf(new URL("./kv-capacity.wasm", import.meta.url), sha256) }),
  full: async () => (await loadMore()).kernel(),
  // @ts-expect-error: built beside the file that this ends up in.
  plain: () => import("./kv-capacity-nowasm.js"),
});
