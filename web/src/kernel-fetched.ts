/** The kernel as a file beside the script, for bundlers and for caching. */
import create from "kernel:core";
import { KernelError, provideKernels } from "./kernel.js";

/** Compiles whatever a server calls it: the type that it is sent with is often wrong. */
async function compiled(url: URL): Promise<WebAssembly.Module> {
  const response = await fetch(url);
  if (!response.ok) throw new KernelError("network", `${url} answered ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

provideKernels({
  core: async () => create({ wasm: await compiled(new URL("./kv-capacity.wasm", import.meta.url)) }),
});
