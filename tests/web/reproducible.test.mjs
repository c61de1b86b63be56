// The site is made from the kernels the same way each time, wherever it is built. That the kernels are too,
// `npm run reproducible` shows, which compiles them twice.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setup } from "../../cpp/toolchain/setup.mjs";
import { buildCopy, copyProject, differences, hashes } from "../reproducible.mjs";
import { dist } from "./site.mjs";

describe("the build", { timeout: 600_000 }, () => {
  it("gives the same bytes in another folder", async () => {
    await setup();
    const folder = mkdtempSync(join(tmpdir(), "kv-capacity-again-"));
    try {
      const copy = join(folder, "another place");
      copyProject(copy, { kernels: true });
      const again = buildCopy(copy, { site: true });
      assert.ok(Object.keys(again).length > 60);
      assert.equal(differences(hashes(dist), again), "");
      // And what differs is found.
      const changed = join(copy, "web/dist/embed.html");
      writeFileSync(changed, `${readFileSync(changed, "utf8")} `);
      assert.equal(differences(again, hashes(join(copy, "web/dist"))), "embed.html");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
