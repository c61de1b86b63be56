/** The kernel as a file beside the script, for bundlers, for caching and for Node. */
import create from "kernel:core";
import { compile, KernelError, provideKernels } from "./kernel.js";

/** Takes whatever a server calls it: the type that a kernel is sent with is often wrong. */
async function bytesOf(url: URL): Promise<BufferSource> {
  // Node fetches no files. Its file system is asked for in a way that bundlers for pages do not trip over.
  const files = url.protocol === "file:" && globalThis.process?.getBuiltinModule?.("node:fs");
  if (files) return files.readFileSync(url);
  const response = await fetch(url);
  if (!response.ok) throw new KernelError("network", `${url} answered ${response.status}`);
  return response.arrayBuffer();
}

provideKernels({
  core: async () => create({ wasm: await compile(await bytesOf(new URL("./kv-capacity.wasm", import.meta.url))) }),
});
