// Every fenced block of the README is run. A block is run by its language:
//
//   html        in Chromium, in a page with the built files beside it: every element in it computes, nothing is complained
//   js, mjs, ts as a module with the package installed: in Chromium where it speaks of a document, else in Node
//   css         in a page: every rule and every declaration is understood
//   json        asked of the kernel: a request, or a model
//   sh          line by line: `npx kv-capacity` for its status (0, or what `# exit status 2` says), `npm run` for its name
//   (none)      a list of paths that exist
//
// unless a comment before it says who else runs it: `<!-- host: mkdocs mkdocs.yml -->`, a site of tests/hosts, or
// `<!-- run by: tests/web/package.test.mjs -->`, a test that reads the README. Any other block fails.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { browsers } from "./browsers.mjs";
import { until } from "./reader.mjs";
import { dist } from "./site.mjs";
import { visit } from "./visit.mjs";

const project = fileURLToPath(new URL("../../", import.meta.url));
const readme = readFileSync(join(project, "README.md"), "utf8");
const manifest = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
const work = join(project, "build/readme");

/** The fenced blocks of a Markdown text, with the comment before each. */
export function blocksOf(text) {
  const lines = text.split("\n");
  const found = [];
  for (let at = 0; at < lines.length; at++) {
    const [, indent, fence, language] = lines[at].match(/^([ \t>]*)(`{3,}|~{3,})\s*([^\s`]*)/) ?? [];
    if (fence === undefined) continue;
    const start = at;
    const closes = (line) => line.startsWith(indent) && line.slice(indent.length).trimEnd() === fence;
    do at++;
    while (at < lines.length && !closes(lines[at]));
    const code = lines.slice(start + 1, at).map((line) => line.slice(indent.length));
    const before = lines.slice(0, start).findLast((line) => line.trim() !== "") ?? "";
    const [, kind, says] = before.match(/^\s*<!-- (host|run by): (.+) -->$/) ?? [];
    found.push({ line: start + 1, language, code: code.join("\n"), kind, says });
  }
  return found;
}

const blocks = blocksOf(readme);
const name = ({ line, language, kind, says }) =>
  `line ${line}: ${[language || "a list", kind, says].filter(Boolean).join(" ")}`;

const pages = {};
for (const block of blocks.filter(({ language, kind }) => language === "html" && !kind)) {
  pages[`/block-${block.line}.html`] = {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>block</title><link rel="icon" href="data:,"></head><body>\n${block.code}\n</body></html>`,
  };
}
const scripted = (block) => `/block-${block.line}.html`;
const inPage = /\b(document|customElements|HTMLElement|window)\b/;

describe("the README's blocks", { timeout: 600_000 }, () => {
  let visited;
  let page;

  before(async () => {
    rmSync(work, { recursive: true, force: true });
    mkdirSync(join(work, "node_modules"), { recursive: true });
    symlinkSync(project, join(work, "node_modules/kv-capacity"));
    for (const file of readdirSync(dist)) symlinkSync(join(dist, file), join(work, file));
    for (const block of blocks.filter(({ language, kind }) => /^(js|mjs|ts)$/.test(language) && !kind)) {
      const file = join(work, `block-${block.line}.${block.language === "ts" ? "ts" : "mjs"}`);
      writeFileSync(file, block.code);
      if (!inPage.test(block.code)) continue;
      const bundled = await build({
        entryPoints: [file],
        bundle: true,
        format: "iife",
        write: false,
        charset: "ascii",
      });
      pages[scripted(block)] = {
        html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>block</title><link rel="icon" href="data:,"></head><body><kv-capacity></kv-capacity><script>${bundled.outputFiles[0].text.replaceAll("</script", "<\\/script")}</script></body></html>`,
      };
    }
    visited = await visit(browsers.Chromium, pages);
    page = visited.page;
  });
  after(() => visited?.close());

  /** Waits until every element in the page and in its frames shows an answer. */
  async function computes() {
    const waiting = (frame) =>
      frame.evaluate(() => {
        const tags = [...document.querySelectorAll("*")].filter((node) => node.localName.startsWith("kv-"));
        for (const tag of tags) tag.scrollIntoView({ block: "center", behavior: "instant" });
        const states = tags.map((tag) => tag.shadowRoot?.querySelector(".kv")?.className ?? "undefined");
        return { count: states.length, late: states.filter((state) => state !== "kv") };
      });
    await until("all elements to compute", async () => {
      const all = await Promise.all(page.page.frames().map(waiting));
      return all.reduce((sum, { count }) => sum + count, 0) > 0 && all.every(({ late }) => late.length === 0);
    });
    assert.deepEqual(await page.evaluate(() => window.problems), []);
  }

  const open = async (block) => {
    page.problems.length = 0;
    await page.goto(`${visited.site.origin}${scripted(block)}`);
    await computes();
    assert.deepEqual(page.problems, []);
  };

  const plan = (request) => {
    const { stdout } = spawnSync("node", [join(dist, "cli.mjs"), "plan"], {
      input: JSON.stringify(request),
      encoding: "utf8",
    });
    return JSON.parse(stdout);
  };

  const module = (block) => {
    if (inPage.test(block.code)) return open(block);
    assert.notEqual(block.language, "ts", "a block in TypeScript is for a page");
    const { status, stderr } = spawnSync("node", [`block-${block.line}.mjs`], { cwd: work, encoding: "utf8" });
    assert.equal(status, 0, stderr);
  };

  const runners = {
    html: open,
    js: module,
    mjs: module,
    ts: module,
    async css({ code }) {
      await page.goto(`${visited.site.origin}/embed.html`);
      const declared = code
        .replace(/\/\*[\s\S]*?\*\//g, "")
        .split(/[{};]/)
        .map((piece) => piece.match(/^\s*([\w-]+)\s*:(?!:)/)?.[1])
        .filter(Boolean);
      const kept = await page.evaluate((code) => {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(code);
        const text = [...sheet.cssRules].map((rule) => rule.cssText).join("\n");
        return { text, rules: sheet.cssRules.length };
      }, code);
      assert.ok(kept.rules > 0 && declared.length > 0);
      for (const property of declared) assert.ok(kept.text.includes(`${property}:`), `${property} is not understood`);
    },
    json({ code }) {
      const value = JSON.parse(code);
      const answer = plan(value.layers ? { model: value } : value);
      assert.equal(answer.error, undefined, JSON.stringify(answer.error));
    },
    sh({ code }) {
      const lines = code.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
      assert.ok(lines.length > 0);
      for (const line of lines) {
        const [, script] = line.match(/^npm (?:run )?([\w:-]+)/) ?? [];
        if (script && script !== "install") {
          assert.ok(manifest.scripts[script], `package.json has no script "${script}"`);
          continue;
        }
        assert.match(line, /\bnpx kv-capacity\b/, `nobody runs: ${line}`);
        const expected = Number(line.match(/# exit status (\d)/)?.[1] ?? 0);
        const command = line.replaceAll("npx kv-capacity", `node ${join(dist, "cli.mjs")}`);
        const { status, stdout } = spawnSync("sh", ["-ec", command], { cwd: work, encoding: "utf8" });
        assert.equal(status, expected, `${line}\n${stdout}`);
        for (const answer of stdout.trim().split("\n")) {
          assert.equal(JSON.parse(answer).error !== undefined, expected === 2, `${line}\n${answer}`);
        }
      }
    },
    ""({ code }) {
      const paths = code.split("\n").map((line) => line.match(/^\S+/)?.[0]);
      assert.ok(paths.some(Boolean));
      for (const path of paths.filter(Boolean)) assert.ok(existsSync(join(project, path)), `there is no ${path}`);
    },
  };

  const others = {
    async host({ says }) {
      const { hosts } = await import("../hosts/hosts.mjs");
      for (const place of says.split(", ")) {
        const [host, file] = place.split(" ");
        assert.ok(file, `${place} names no file`);
        assert.ok(
          hosts.some((one) => one.name === host),
          `tests/hosts has no ${host}`,
        );
      }
    },
    "run by"({ says }) {
      assert.match(readFileSync(join(project, says), "utf8"), /README\.md/, `${says} does not read the README`);
    },
  };

  for (const block of blocks) {
    it(name(block), async () => {
      const run = block.kind ? others[block.kind] : runners[block.language];
      assert.ok(run, `nobody runs this block: ${block.language} is not among ${Object.keys(runners).join(", ")}`);
      await run(block);
    });
  }

  it("are found wherever a fence can stand, with who runs them", () => {
    const found = blocksOf(
      "a\n```html\n<b>\n```\n<!-- host: hugo a.md -->\n\n~~~~md\n```\nx\n```\n~~~~\n- item\n  ``` sh title\n  npm test\n  ```\n<!-- run by: tests/x -->\n```\ny",
    );
    assert.deepEqual(
      found.map(({ language, code, kind, says }) => [language, code, kind, says]),
      [
        ["html", "<b>", undefined, undefined],
        ["md", "```\nx\n```", "host", "hugo a.md"],
        ["sh", "npm test", undefined, undefined],
        ["", "y", "run by", "tests/x"],
      ],
    );
    assert.ok(blocks.length >= 4);
  });
});
