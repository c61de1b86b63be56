// What is built, as files: forms that survive the places where they are put.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { proveKernels } from "../../web/build.mjs";
import { pack, unpack } from "../../web/pack.mjs";
import { dist } from "./site.mjs";

const read = (name) => readFileSync(join(dist, name), "utf8");

describe("packed bytes", () => {
  it("come back, whatever stands beside whatever", () => {
    const bytes = new Uint8Array(256 * 256 * 2);
    for (let first = 0; first < 256; first++) {
      for (let second = 0; second < 256; second++) bytes.set([first, second], (first * 256 + second) * 2);
    }
    assert.deepEqual(unpack(pack(bytes)), bytes);
    assert.deepEqual(unpack(pack(new Uint8Array(0))), new Uint8Array(0));
  });

  it("are printable ASCII that neither a string nor a page has to escape", () => {
    const text = pack(Uint8Array.from({ length: 256 }, (_, value) => value));
    assert.match(text, /^[ -~]+$/);
    assert.doesNotMatch(text, /["<\\]/);
  });
});

describe("the built files", () => {
  it("are ASCII where a page's encoding could spoil them", () => {
    for (const name of [
      "kv-capacity.js",
      "kv-capacity.mjs",
      "kv-capacity-lesson.js",
      "kv-capacity-play.js",
      "kv-capacity-nowasm.js",
      "cli.mjs",
    ]) {
      assert.doesNotMatch(read(name), /[^\t\n -~]/, name);
    }
  });

  it("hold nothing in the classic script that would end a script tag", () => {
    assert.doesNotMatch(read("kv-capacity.js"), /<\/script|<!--/i);
  });

  it("hold the kernel's bytes in the classic script, the same as in the module's file", () => {
    assert.ok(read("kv-capacity.js").includes(pack(readFileSync(join(dist, "kv-capacity.wasm")))));
  });

  it("hold everything in the one-file page", () => {
    const page = read("kv-capacity.html");
    const outside = [...page.matchAll(/<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="([^"]*)"/g)].map(
      ([, url]) => url,
    );
    assert.deepEqual(
      outside.filter((url) => !url.startsWith("data:")),
      [],
    );
    for (const name of ["", "-more", "-lesson", "-play", "-nowasm"])
      assert.ok(page.includes(read(`kv-capacity${name}.js`)), name);
    for (const [, name] of read("index.html").matchAll(/rel="stylesheet" href="([^"]+)"/g))
      assert.ok(page.includes(read(name)), name);
  });
});

describe("a build", () => {
  it("does not go on with a kernel that a linker left half written", async () => {
    const built = fileURLToPath(new URL("../../build/wasm/", import.meta.url));
    const files = ["kernel.mjs", "kernel.wasm", "kernel_full.mjs", "kernel_full.wasm", "kernel_full.js.mjs"];
    const folder = mkdtempSync(join(tmpdir(), "kv-capacity-kernels-"));
    try {
      const restore = (name) => cpSync(join(built, name), join(folder, name));
      for (const name of files) restore(name);
      await proveKernels(folder);
      for (const name of files) {
        for (const bytes of [0, 1228]) {
          truncateSync(join(folder, name), bytes);
          await assert.rejects(
            proveKernels(folder),
            (error) => error.message.includes(name),
            `${name}, ${bytes} bytes`,
          );
        }
        restore(name);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
