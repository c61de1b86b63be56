import { KernelError } from "./kernel.js";

/** A file beside the script. Takes whatever a server calls it: the type that a kernel is sent with is often wrong. */
export async function bytesOf(url: URL): Promise<BufferSource> {
  // Node fetches no files. Its file system is asked for in a way that bundlers for pages do not trip over.
  const files = url.protocol === "file:" && globalThis.process?.getBuiltinModule?.("node:fs");
  if (files) return files.readFileSync(url);
  const response = await fetch(url);
  if (!response.ok) throw new KernelError("network", `${url} answered ${response.status}`);
  return response.arrayBuffer();
}
