// The package for learning platforms: what is in it, and what it tells a platform by SCORM 1.2 from the first call to the
// last, in a frame, further down, in a window of its own, and alone.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { unzipSync } from "fflate";
import { scormPackage } from "../../web/scorm.mjs";
import { browsers } from "./browsers.mjs";
import { becomes, passes, until, wait } from "./reader.mjs";
import { serve } from "./site.mjs";

const project = fileURLToPath(new URL("../../", import.meta.url));
const dist = join(project, "web/dist");
const folder = join(project, "build/scorm");

const QUIZ = { seed: 7, count: 4, topics: ["bytes_per_token"] };
const OPTIONS = {
  calculator: "model=llama-3.1-70b&gpus=4&context=16384",
  quiz: "seed=7&count=4&topics=bytes_per_token",
  title: 'Sizes & "shapes" <of> the cache',
};

/**
 * A platform: SCORM 1.2's object, which keeps every call, holds it against the run-time's rules (order, names, values),
 * and answers as the document says. Its state is the page's fragment.
 */
const PLATFORM = `
  const given = new URLSearchParams(location.hash.slice(1));
  window.calls = [];
  window.faults = [];
  const data = {
    "cmi.core.lesson_status": given.get("status") ?? "not attempted",
    "cmi.core.lesson_mode": given.get("mode") ?? "normal",
    "cmi.core.score.raw": given.get("raw") ?? "",
  };
  if (given.has("mastery")) data["cmi.student_data.mastery_score"] = given.get("mastery");
  window.data = data;
  const decimal = /^-?\\d+(\\.\\d+)?$/;
  const writable = {
    "cmi.core.lesson_status": /^(passed|completed|failed|incomplete|browsed)$/,
    "cmi.core.exit": /^(time-out|suspend|logout|)$/,
    "cmi.core.session_time": /^\\d{2,4}:[0-5]\\d:[0-5]\\d(\\.\\d{1,2})?$/,
    "cmi.core.score.raw": decimal, "cmi.core.score.min": decimal, "cmi.core.score.max": decimal,
  };
  let phase = "before", error = "0";
  const answer = (code, value = "true", bad = "false") => { error = code; if (code !== "0" && code !== "401") faults.push(code + " " + JSON.stringify(calls.at(-1))); return code === "0" ? value : bad; };
  const running = (then) => phase === "running" ? then() : answer("301");
  const call = (name, run) => (...all) => { calls.push([name, ...all]); if (all.some((one) => typeof one !== "string")) faults.push("not text: " + name); return run(...all); };
  const API = {
    LMSInitialize: call("LMSInitialize", (none) => none !== "" ? answer("201") : given.has("refuse") ? answer("101") : phase === "before" ? (phase = "running", answer("0")) : answer("101")),
    LMSFinish: call("LMSFinish", (none) => none !== "" ? answer("201") : running(() => (phase = "after", answer("0")))),
    LMSGetValue: call("LMSGetValue", (name) => running(() => name in data ? answer("0", data[name]) : answer("401", "", ""))),
    LMSSetValue: call("LMSSetValue", (name, value) => running(() => !(name in writable) ? answer("403") : !writable[name].test(value) ? answer("405") : given.get("refuses") === name ? (error = "101", "false") : (data[name] = value, answer("0")))),
    LMSCommit: call("LMSCommit", (none) => none !== "" ? answer("201") : running(() => answer("0"))),
    LMSGetLastError: () => error,
    LMSGetErrorString: (code) => "error " + code,
    LMSGetDiagnostic: (code) => "error " + code,
  };
  if (!given.has("none")) window.API = API;
`;

const page = (body, script = "") => ({
  html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>platform</title><link rel="icon" href="data:,"></head><body><script>${script}</script>${body}</body></html>`,
});

const SCO = '<iframe id="sco" src="/index.html" width="1000" height="900"></iframe>';
const inner = (depth) => (depth === 0 ? "/index.html" : `/level-${depth}.html`);

const PAGES = {
  "/platform.html": page(SCO, PLATFORM),
  "/deep.html": page('<iframe src="/level-6.html" width="1200" height="1000"></iframe>', PLATFORM),
  "/deeper.html": page('<iframe src="/level-7.html" width="1200" height="1000"></iframe>', PLATFORM),
  "/opener.html": page("", PLATFORM),
  ...Object.fromEntries(
    [1, 2, 3, 4, 5, 6, 7].map((depth) => [
      `/level-${depth}.html`,
      page(`<iframe src="${inner(depth - 1)}" width="1100" height="950"></iframe>`),
    ]),
  ),
};

describe("the SCORM package", { timeout: 600_000 }, () => {
  const zip = readFileSync(join(dist, "kv-capacity-scorm.zip"));
  const text = (bytes) => new TextDecoder().decode(bytes);
  let site;
  let browser;
  let window;
  let questions;

  before(async () => {
    const files = unzipSync(await scormPackage(OPTIONS));
    rmSync(folder, { recursive: true, force: true });
    for (const [name, bytes] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), bytes);
    }
    const { loadFullKernel } = await import(pathToFileURL(join(dist, "kv-capacity.mjs")).href);
    const kernel = await loadFullKernel();
    questions = JSON.parse(kernel.instance.quiz(JSON.stringify(QUIZ))).questions;
    site = await serve(folder, PAGES);
    browser = await browsers.Chromium();
    window = await browser.page();
    await window.resize(1280, 1000);
  });
  after(async () => {
    await browser?.close();
    await site?.close();
  });

  it("is the same bytes however often it is built, with no time of its own", async () => {
    assert.deepEqual(Buffer.from(await scormPackage({})), zip);
    await wait(2100); // A zip counts in steps of two seconds.
    assert.deepEqual(Buffer.from(await scormPackage({})), zip);
  });

  it("has its manifest at the top, and every file that the manifest names and no other", async () => {
    const files = unzipSync(zip);
    assert.equal(Object.keys(files)[0], "imsmanifest.xml");
    for (const [name, bytes] of Object.entries(files)) assert.ok(bytes.length > 0, name);
    const manifest = text(files["imsmanifest.xml"]);
    await window.goto("about:blank");
    const read = await window.evaluate((manifest) => {
      const xml = new DOMParser().parseFromString(manifest, "application/xml");
      const root = xml.documentElement;
      const scorm = "http://www.adlnet.org/xsd/adlcp_rootv1p2";
      const children = (node) => [...node.children].map((child) => child.localName);
      const one = (name) => root.getElementsByTagName(name)[0];
      const ids = [...root.querySelectorAll("[identifier]")].map((node) => node.getAttribute("identifier"));
      const resource = one("resource");
      return {
        wrong: xml.querySelector("parsererror")?.textContent ?? null,
        root: [root.localName, root.namespaceURI, children(root).join()],
        schema: [one("schema").textContent, one("schemaversion").textContent],
        organization: [one("organizations").getAttribute("default"), one("organization").getAttribute("identifier")],
        items: [...root.querySelectorAll("organization > item")].map((item) => [
          item.getAttribute("identifierref"),
          children(item).join(),
        ]),
        resource: [
          resource.getAttribute("identifier"),
          resource.getAttribute("type"),
          resource.getAttributeNS(scorm, "scormtype"),
          resource.getAttribute("href"),
        ],
        resources: root.querySelectorAll("resource").length,
        files: [...root.querySelectorAll("resource > file")].map((file) => file.getAttribute("href")),
        unique: new Set(ids).size === ids.length,
      };
    }, manifest);
    assert.equal(read.wrong, null);
    assert.deepEqual(read.root, [
      "manifest",
      "http://www.imsproject.org/xsd/imscp_rootv1p1p2",
      "metadata,organizations,resources",
    ]);
    assert.deepEqual(read.schema, ["ADL SCORM", "1.2"]);
    assert.equal(read.organization[0], read.organization[1]);
    assert.deepEqual(read.items, [["kv-capacity-page", "title"]]);
    assert.deepEqual(read.resource, ["kv-capacity-page", "webcontent", "sco", "index.html"]);
    assert.equal(read.resources, 1);
    assert.ok(read.unique);
    assert.deepEqual(
      read.files.toSorted(),
      Object.keys(files)
        .filter((name) => name !== "imsmanifest.xml")
        .toSorted(),
    );
  });

  it("is well-formed and unpacks with the tools that are there", (test) => {
    const tools = [
      ["xmllint", ["--noout", join(folder, "imsmanifest.xml")]],
      ["unzip", ["-tq", join(dist, "kv-capacity-scorm.zip")]],
    ];
    let ran = 0;
    for (const [tool, args] of tools) {
      const { status, stderr, error } = spawnSync(tool, args, { encoding: "utf8" });
      if (error?.code === "ENOENT") continue;
      assert.equal(status, 0, stderr);
      ran++;
    }
    if (ran === 0) test.skip("neither xmllint nor unzip is installed");
  });

  it("refuses options that make no sense, by name", async () => {
    const refused = {
      calculator: ["model=nope", "gpus=0", "onclick=x()", "colour=red"],
      quiz: ["level=9", "topics=everything", "Level=1"],
      mastery: ["101", "-1", "half", ""],
      lang: ["", 'de" onclick="x', "<de>"],
    };
    for (const [option, values] of Object.entries(refused)) {
      for (const value of values)
        await assert.rejects(scormPackage({ [option]: value }), new RegExp(`--${option}`), value);
    }
    const page = text(unzipSync(await scormPackage({ title: "</title><script>alert(1)</script>" }))["index.html"]);
    assert.doesNotMatch(page, /<script>alert/);
  });

  it("is written by the command that the README gives", () => {
    const readme = readFileSync(join(project, "README.md"), "utf8");
    const [, args] = readme.match(/^npm run scorm -- (.+)$/m);
    const out = join(folder, "../lesson.zip");
    const { status, stderr } = spawnSync("sh", ["-ec", `node web/scorm.mjs ${args.replace("lesson.zip", out)}`], {
      cwd: project,
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
    const files = unzipSync(readFileSync(out));
    assert.match(text(files["index.html"]), /<kv-capacity model="llama-3.1-70b" gpus="4">/);
    assert.match(text(files["index.html"]), /<kv-quiz count="5" level="1">/);
  });

  /** Opens a page of the platform's and returns the frame that the lesson is in. */
  async function open(path, hash = "") {
    window.problems.length = 0;
    await window.goto("about:blank");
    await window.goto(`${site.origin}${path}${hash}`);
    let lesson;
    await until("the lesson", async () => {
      lesson = window.page.frames().find((frame) => new URL(frame.url()).pathname === "/index.html");
      return lesson?.evaluate(() => document.querySelector("kv-capacity")?.plan?.sequences > 0).catch(() => false);
    });
    return lesson;
  }

  /** Answers all questions, so many of them right. */
  async function answer(lesson, right) {
    await lesson.evaluate(() => document.querySelector("kv-quiz").scrollIntoView());
    await until("the quiz", () =>
      lesson.evaluate(() => Boolean(document.querySelector("kv-quiz").shadowRoot?.querySelector("#answer"))),
    );
    for (const [index, { value }] of questions.entries()) {
      await lesson.evaluate(
        (typed) => {
          const root = document.querySelector("kv-quiz").shadowRoot;
          root.querySelector("#answer").value = typed;
          root.querySelector(".answer").requestSubmit();
        },
        index < right ? `${value} B` : "1 B",
      );
      await until("the verdict", () =>
        lesson.evaluate(() => Boolean(document.querySelector("kv-quiz").shadowRoot.querySelector(".next"))),
      );
      if (index + 1 === questions.length) break;
      await lesson.evaluate(() => document.querySelector("kv-quiz").shadowRoot.querySelector(".next").click());
      await until("the next question", () =>
        lesson.evaluate(() => Boolean(document.querySelector("kv-quiz").shadowRoot.querySelector("#answer"))),
      );
    }
  }

  const leave = () =>
    window.evaluate(async () => {
      const frame = document.querySelector("iframe");
      await new Promise((resolve) => {
        frame.addEventListener("load", resolve, { once: true });
        frame.src = "about:blank";
      });
    });
  const platform = () => window.evaluate(() => ({ calls: window.calls, data: window.data, faults: window.faults }));
  const set = (calls, name) =>
    calls.filter(([call, key]) => call === "LMSSetValue" && key === name).map(([, , value]) => value);

  it("starts in the state that its author chose", async () => {
    const lesson = await open("/platform.html");
    const shown = await lesson.evaluate(() => ({
      state: document.querySelector("kv-capacity").state,
      title: document.title,
      heading: document.querySelector("h1").textContent,
    }));
    assert.equal(shown.state, OPTIONS.calculator);
    assert.deepEqual([shown.title, shown.heading], [OPTIONS.title, OPTIONS.title]);
  });

  it("reports completion, the score and the time, in the order that SCORM 1.2 has", async () => {
    const lesson = await open("/platform.html");
    await wait(1200);
    await becomes(async () => (await platform()).data["cmi.core.lesson_status"], "incomplete");
    await answer(lesson, 3);
    await passes(async () => {
      const { data, calls } = await platform();
      assert.equal(data["cmi.core.score.raw"], "75");
      assert.equal(data["cmi.core.score.min"], "0");
      assert.equal(data["cmi.core.score.max"], "100");
      assert.equal(data["cmi.core.lesson_status"], "completed");
      assert.equal(calls.at(-1)[0], "LMSCommit", "told at once, not only on leaving");
    });
    await leave();
    const { calls: all, data: last, faults } = await platform();
    assert.deepEqual(faults, []);
    assert.deepEqual(all[0], ["LMSInitialize", ""]);
    assert.deepEqual(all.slice(-2), [
      ["LMSCommit", ""],
      ["LMSFinish", ""],
    ]);
    for (const once of ["LMSInitialize", "LMSFinish"]) assert.equal(all.filter(([call]) => call === once).length, 1);
    const [hours, minutes, seconds] = last["cmi.core.session_time"].split(":").map(Number);
    const spent = (hours * 60 + minutes) * 60 + seconds;
    assert.ok(spent > 1 && spent < 600, last["cmi.core.session_time"]);
    assert.equal(last["cmi.core.exit"], "");
    assert.deepEqual(window.problems, []);
  });

  it("says that a lesson left halfway is incomplete and to be taken up again", async () => {
    await open("/platform.html");
    await leave();
    const { data, faults, calls } = await platform();
    assert.equal(data["cmi.core.lesson_status"], "incomplete");
    assert.equal(data["cmi.core.exit"], "suspend");
    assert.equal(data["cmi.core.score.raw"], "");
    assert.equal(calls.at(-1)[0], "LMSFinish");
    assert.deepEqual(faults, []);
  });

  it("passes or fails where the platform has a mastery score, and keeps the best of several tries", async () => {
    let lesson = await open("/platform.html", "#mastery=60");
    await answer(lesson, 2);
    const graded = async () => {
      const { data } = await platform();
      return [data["cmi.core.lesson_status"], data["cmi.core.score.raw"]];
    };
    await becomes(graded, ["failed", "50"]);
    lesson = await open("/platform.html", "#mastery=60&status=failed&raw=50");
    await answer(lesson, 4);
    await becomes(graded, ["passed", "100"]);
    lesson = await open("/platform.html", "#mastery=60&status=passed&raw=100");
    await answer(lesson, 0);
    const { calls, faults, data: kept } = await platform();
    assert.deepEqual([kept["cmi.core.lesson_status"], kept["cmi.core.score.raw"]], ["passed", "100"]);
    assert.deepEqual([set(calls, "cmi.core.lesson_status"), set(calls, "cmi.core.score.raw")], [[], []]);
    assert.deepEqual(faults, []);
    const manifest = text(unzipSync(await scormPackage({ mastery: "60" }))["imsmanifest.xml"]);
    assert.match(manifest, /<adlcp:masteryscore>60<\/adlcp:masteryscore>/);
  });

  it("grades nobody who browses or reviews", async () => {
    for (const mode of ["browse", "review"]) {
      const lesson = await open("/platform.html", `#mode=${mode}`);
      await answer(lesson, 4);
      await leave();
      const { calls, faults } = await platform();
      assert.deepEqual(set(calls, "cmi.core.lesson_status"), []);
      assert.deepEqual(set(calls, "cmi.core.score.raw"), []);
      assert.equal(calls.at(-1)[0], "LMSFinish");
      assert.deepEqual(faults, []);
    }
  });

  it("finds the platform up to seven windows above, and in the window that opened it", async () => {
    await open("/deep.html");
    await becomes(async () => (await platform()).calls[0]?.[0], "LMSInitialize");
    await open("/deeper.html");
    assert.deepEqual((await platform()).calls, []);
    await window.goto(`${site.origin}/opener.html`);
    await window.evaluate(() => {
      window.lesson = open("/index.html");
    });
    await until("a call from the window", async () => (await platform()).calls.length > 0);
    await until("the lesson", () => window.evaluate(() => window.lesson.document.querySelector("kv-capacity")?.plan));
    await window.evaluate(() => window.lesson.close());
    await until("its last call", async () => (await platform()).calls.at(-1)[0] === "LMSFinish");
    assert.deepEqual((await platform()).faults, []);
  });

  it("runs alone, in a frame of another origin, and with a platform that refuses, all without a word to the reader", async () => {
    for (const hash of ["#none", "#refuse"]) {
      const lesson = await open("/platform.html", hash);
      await answer(lesson, 4);
      await leave();
      const { calls } = await platform();
      assert.deepEqual(calls, hash === "#none" ? [] : [["LMSInitialize", ""]]);
      assert.deepEqual(window.problems, []);
    }
    const lesson = await open("/index.html");
    await answer(lesson, 4);
    assert.deepEqual(window.problems, []);
    const refusing = await open("/platform.html", "#refuses=cmi.core.score.raw");
    await answer(refusing, 4);
    const status = async () => (await platform()).data["cmi.core.lesson_status"];
    await becomes(status, "completed", "one refusal does not stop the rest");
    const warnings = await refusing.evaluate(() => window.problems);
    assert.deepEqual(warnings, ["kv-capacity: the learning platform refuses cmi.core.score.raw=100: 101 error 101"]);
    const other = await serve(folder, {
      "/index-of.html": page(
        `<iframe src="${site.origin}/index.html" width="1000" height="900"></iframe>`,
        "window.API = {};",
      ),
    });
    try {
      await window.goto(`${other.origin}/index-of.html`);
      await until("the lesson in another origin's page", async () => {
        const frame = window.page.frames().find((one) => one.url().endsWith("/index.html"));
        return frame?.evaluate(() => document.querySelector("kv-capacity")?.plan?.sequences > 0).catch(() => false);
      });
    } finally {
      await other.close();
    }
  });
});
