// Hostile bytes through the kernels as pages call them, and hostile links: seeded and bounded. `npm run fuzz` tries more.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Dice, fragment, fuzzKernels, fuzzLinks, kernels, linkRequests } from "../fuzz/javascript.mjs";
import { browsers } from "./browsers.mjs";
import { visit } from "./visit.mjs";

describe("hostile bytes through the bindings", { timeout: 300_000 }, () => {
  let all;
  before(async () => {
    all = await kernels();
  });

  it("are answered or refused, by both kernels alike, and leave nothing behind", () => {
    const answered = fuzzKernels(all, { seed: 1, count: 3000 });
    assert.ok(answered > 500 && answered < 2900, `${answered} of 3000 were answered`);
    const before = all.bytes();
    fuzzKernels(all, { seed: 1, count: 3000 });
    assert.deepEqual(all.bytes(), before, "the memory grew when the same was asked again");
  });

  it("are refused in any amount, and the next question is answered", () => {
    const large = new Uint8Array(5 << 20).fill(0x7b);
    const before = all.bytes();
    for (let round = 0; round < 3; round++) {
      for (const kind of ["config", "gguf", "safetensors", "index", "auto"]) {
        const { error, need_bytes } = JSON.parse(all.full.importModel(kind, large, large.length, ""));
        assert.ok(error?.code || need_bytes, kind);
      }
      assert.equal(JSON.parse(all.full.plan("[".repeat(1 << 20))).error.code, "malformed");
      assert.equal(JSON.parse(all.core.plan("[".repeat(1 << 20))).error.message, "");
      assert.equal(typeof JSON.parse(all.full.readLog(large)).lines, "object");
      if (round === 0) before.splice(0, 2, ...all.bytes());
    }
    fuzzKernels(all, { seed: 2, count: 100 });
    assert.deepEqual(all.bytes(), before);
  });

  it("come in links too, which read the same when written again", () => fuzzLinks(all, { seed: 1, count: 2000 }));
});

describe("hostile links in Chromium", { timeout: 300_000 }, () => {
  let visited;
  before(async () => {
    visited = await visit(browsers.Chromium, {});
  });
  after(() => visited?.close());

  it("leave the frame's page with an answer, and without a fault", async () => {
    const { page, site } = visited;
    await page.goto(`${site.origin}/embed.html`);
    const dice = new Dice(1);
    const requests = linkRequests();
    const links = Array.from({ length: 60 }, () => fragment(dice, requests));
    const found = await page.evaluate(async (links) => {
      const faults = [];
      let answers = 0;
      for (const link of links) {
        problems.length = 0;
        const changed = new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
        const before = location.href;
        location.hash = link;
        if (location.href !== before) await changed;
        const shown = document.querySelector("kv-capacity, kv-quiz");
        await shown.ready;
        // What the page's author is told begins with the widget's name.
        const wrong = problems.filter((one) => !one.startsWith("kv-capacity: "));
        if (wrong.length > 0) faults.push(`${link}: ${wrong}`);
        if (shown.localName !== "kv-capacity") continue;
        if (shown.plan) answers++;
        else faults.push(`${link}: no answer`);
      }
      return { faults, answers, scripts: document.querySelectorAll("img").length };
    }, links);
    assert.deepEqual(found.faults, []);
    assert.ok(found.answers > 40, `${found.answers} answers`);
    assert.equal(found.scripts, 0);
    assert.deepEqual(page.problems, []);
  });
});
