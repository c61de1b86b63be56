// What a hand feels: from an input event to the frame in which the first figure of its answer is painted, and to that in
// which all of it is, over ten seconds of dragging with all parts of the site's first page open; and the frames that were
// missed, beside those that the same page misses when nothing is asked, and those of a page with nothing but a slider and
// its number. Elements that are far from the view catch up when they come near, here as for any reader.
import { Failure } from "../../cpp/toolchain/terminal.mjs";
import { browsers } from "../web/browsers.mjs";
import { serve } from "../web/site.mjs";
import { ends } from "./page.mjs";
import { median, quantile } from "./statistics.mjs";

const SECONDS = 10;
const FRAME = 1000 / 60;

/** As little as a slider can ask of a page, with as many stops as the calculator's. */
const BARE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>…</title>
  <input type="range" max="14" style="inline-size: 900px"><output></output>
  <script>document.querySelector("input").oninput = ({ target }) => { document.querySelector("output").textContent = target.value; };</script></html>`;

/** Opens every part of every element, which loads the second script and the lesson's, and the parts that come with those. */
async function openAll() {
  for (const element of document.querySelectorAll(":not(:defined)")) {
    element.scrollIntoView();
    await customElements.whenDefined(element.localName);
  }
  for (let opened = true; opened; await new Promise((resolve) => setTimeout(resolve, 500))) {
    opened = false;
    for (const element of document.querySelectorAll("*")) {
      for (const details of element.shadowRoot?.querySelectorAll("details:not([open])") ?? []) {
        element.scrollIntoView();
        details.open = opened = true;
      }
    }
  }
}

/** Notes frames, and of each input event when the frames with its first figure and with all of its answer were painted. */
function watch() {
  window.seen = { frames: [], latencies: [], wholes: [], tasks: [] };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.tasks.push(duration);
  }).observe({ type: "longtask" });
  const frame = (time) => {
    seen.frames.push(time);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  const calculator = document.querySelector("kv-capacity");
  let waiting = [];
  const answered = [];
  const incomplete = [];
  const answer = () => {
    answered.push(...waiting);
    incomplete.push(...waiting);
    waiting = [];
  };
  const { port1, port2 } = new MessageChannel();
  // A message that is sent within a frame arrives once that is painted.
  port1.onmessage = ({ data: { times, to } }) => {
    for (const time of times) seen[to].push(performance.now() - time);
  };
  const whole = () => port2.postMessage({ times: incomplete.splice(0), to: "wholes" });
  addEventListener(
    "input",
    (event) => {
      waiting.push(event.timeStamp);
      if (calculator) return;
      answer();
      whole();
    },
    true,
  );
  calculator?.addEventListener("kv-input", answer);
  calculator?.addEventListener("kv-shown", whole);
  const figure = calculator?.shadowRoot.querySelector(".figure.sequence .value") ?? document.querySelector("output");
  new MutationObserver(() => port2.postMessage({ times: answered.splice(0), to: "latencies" })).observe(figure, {
    childList: true,
    characterData: true,
    subtree: true,
  });
}

/** Moves the mouse along the slider for ten seconds, with the button down or not. */
async function drag(page, pressed, { left, right, y }) {
  await page.evaluate(() => {
    for (const list of [...Object.values(seen), shifts]) list.length = 0;
  });
  const { mouse } = page;
  await mouse.move(left, y);
  if (pressed) await mouse.down();
  const start = performance.now();
  for (let i = 0; performance.now() - start < SECONDS * 1000; i++) {
    // Every move lands on another stop.
    await mouse.move(left + (right - left) * Math.abs((((i * 7) % 200) - 100) / 100), y);
  }
  if (pressed) await mouse.up();
  const { frames, latencies, wholes, tasks, layout } = await page.evaluate(() => ({
    ...seen,
    layout: shifts.reduce((sum, one) => sum + one, 0),
  }));
  const gaps = frames.slice(1).map((time, i) => time - frames[i]);
  const missed = gaps.reduce((sum, gap) => sum + Math.max(0, Math.round(gap / FRAME) - 1), 0);
  if (pressed && Math.min(latencies.length, wholes.length) < 20)
    throw new Failure(`The drag gave ${latencies.length} answers, ${wholes.length} of them whole; too few to tell.`);
  const of = (times) => (pressed ? { median: median(times), p99: quantile(times, 0.99) } : { median: null, p99: null });
  return {
    inputs: latencies.length,
    ...of(latencies),
    whole: of(wholes),
    frames: frames.length,
    missed,
    long_tasks: tasks.length,
    longest_task: Math.max(0, ...tasks),
    layout_shift: layout,
  };
}

/** A page that is watched, with where to drag on it. */
async function watched(browser, address, prepare) {
  const { page } = await browser.page();
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(address);
  await prepare(page);
  const along = await page.evaluate(ends);
  await page.evaluate(watch);
  return { page, along, session: await page.createCDPSession() };
}

async function openFirstPage(page) {
  await page.evaluate(() => document.querySelector("kv-capacity").ready);
  await page.evaluate(openAll);
  await page.waitForNetworkIdle();
}

export async function measureDrag() {
  const site = await serve(undefined, { "/slider.html": { html: BARE } });
  const browser = await browsers.Chromium();
  try {
    const out = [];
    for (const [name, path, prepare, ways] of [
      ["a bare slider", "/slider.html", () => {}, [true]],
      ["the first page", "/", openFirstPage, [false, true]],
    ]) {
      const { page, along, session } = await watched(browser, site.origin + path, prepare);
      for (const rate of [1, 4]) {
        await session.send("Emulation.setCPUThrottlingRate", { rate });
        // The first drag also compiles what runs for the first time.
        if (rate === 1) await drag(page, true, along);
        for (const pressed of ways) out.push({ name, rate, dragging: pressed, ...(await drag(page, pressed, along)) });
      }
      await page.close();
    }
    return out.sort((a, b) => a.rate - b.rate);
  } finally {
    await browser.close();
    await site.close();
  }
}
