import { KernelError } from "./kernel.js";

/** Refuses a kernel that is not the one that was built with this script: the two are a pair. */
export async function proven<T extends BufferSource>(bytes: T, sha256: string, name: string): Promise<T> {
  // Only pages that came by HTTPS, or from this machine, are given the means to tell.
  const digest = await globalThis.crypto?.subtle?.digest("SHA-256", bytes);
  if (!digest) return bytes;
  const found = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== sha256) throw new KernelError("failed", `${name} is of another build than the script`);
  return bytes;
}

/** A file beside the script. Takes whatever a server calls it: the type that a kernel is sent with is often wrong. */
export async function bytesOf(url: URL, sha256: string): Promise<BufferSource> {
  const name = url.pathname.split("/").at(-1) ?? "";
  // Node fetches no files. Its file system is asked for in a way that bundlers for pages do not trip over.
  const files = url.protocol === "file:" && globalThis.process?.getBuiltinModule?.("node:fs");
  if (files) return proven(files.readFileSync(url), sha256, name);
  const response = await fetch(url);
  if (!response.ok) throw new KernelError("network", `${url} answered ${response.status}`);
  const bytes = await response.arrayBuffer();
  // Some servers answer with a page of theirs whatever is asked for.
  if (new Uint8Array(bytes)[0] !== 0) throw new KernelError("network", `${url} answered with something else`);
  return proven(bytes, sha256, name);
}
