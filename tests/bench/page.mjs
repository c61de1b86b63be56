// What a step of the slider costs in Chromium: a real drag, read from the browser's own trace.
import { browsers } from "../web/browsers.mjs";
import { serve } from "../web/site.mjs";
import { median, quantile } from "./statistics.mjs";
import { Failure } from "../../cpp/toolchain/terminal.mjs";

const STEPS = 240;

/** The middle of the ends of the first calculator's context slider, or of the page's own, to drag between. */
export function ends() {
  const root = document.querySelector("kv-capacity")?.shadowRoot ?? document;
  const slider = [...root.querySelectorAll("input[type=range]")].at(-1);
  slider.scrollIntoView({ block: "center" });
  const { left, right, top, height } = slider.getBoundingClientRect();
  return { left: left + 12, right: right - 12, y: top + height / 2 };
}

/** Notes what is shown of each answer, once it is. */
function watch() {
  const calculator = document.querySelector("kv-capacity");
  window.tasks = [];
  window.steps = [];
  new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({
    type: "longtask",
  });
  calculator.addEventListener("kv-shown", () => {
    const shown = calculator.shadowRoot.querySelector(".figure.sequence .small").textContent;
    steps.push({ asked: calculator.plan.context, shown });
  });
}

/** Opens what the calculators keep closed and needs no second script. */
function openAll() {
  for (const calculator of document.querySelectorAll("kv-capacity")) {
    for (const details of calculator.shadowRoot.querySelectorAll("details[part=arithmetic]")) details.open = true;
  }
}

async function drag(browser, origin, opened) {
  const tab = await browser.page();
  const { page } = tab;
  await page.setViewport({ width: 1280, height: 1600 });
  await page.goto(`${origin}/`);
  await page.evaluate(() => document.querySelector("kv-capacity").ready);
  if (opened) await page.evaluate(openAll);
  const { left, right, y } = await page.evaluate(ends);
  await page.evaluate(watch);
  const { mouse } = page;
  await mouse.move(left, y);
  await mouse.down();
  // One way and back warms up what a compiler would otherwise do in the middle of it.
  for (const to of [right, left]) await mouse.move(to, y, { steps: 60 });
  await page.evaluate(() => {
    tasks.length = 0;
    steps.length = 0;
    shifts.length = 0;
  });
  await page.tracing.start({ categories: ["devtools.timeline"] });
  for (let i = 0; i < STEPS; i++) {
    // Up and down in uneven strides: every move lands on another stop.
    const part = Math.abs((((i * 7) % 200) - 100) / 100);
    await mouse.move(left + (right - left) * part, y);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => resolve())));
  }
  const trace = JSON.parse(Buffer.from(await page.tracing.stop()).toString());
  await mouse.up();
  const seen = await page.evaluate(() => ({ steps, tasks, shifts }));
  await tab.close();
  return { ...read(trace), ...check(seen) };
}

/** What the last step asked for must be shown in the end; on a slow machine parts of an answer may follow before. */
function check({ steps, tasks, shifts }) {
  const { asked, shown } = steps.at(-1);
  if (Number(shown.replace(/\D/g, "")) !== asked) {
    throw new Failure(`After ${asked} tokens were asked for, the page still said "${shown}".`);
  }
  return {
    answers: steps.length,
    long_tasks: tasks.length,
    longest_task: Math.max(0, ...tasks),
    layout_shift: shifts.reduce((sum, one) => sum + one, 0),
  };
}

/** Milliseconds of script from an input event to the next, and of styles and layout. */
function read({ traceEvents }) {
  const lasting = traceEvents.filter((event) => event.ph === "X");
  const input = lasting.filter((event) => event.name === "EventDispatch" && event.args?.data?.type === "input");
  if (input.length < 200) throw new Failure(`The drag gave ${input.length} input events; at least 200 are needed.`);
  const ofMain = (...names) => lasting.filter(({ name, tid }) => names.includes(name) && tid === input[0].tid);
  const frames = ofMain("FireAnimationFrame");
  // An answer is drawn in the frames after the event that asked for it.
  const whole = (key) =>
    input.map((event, at) => {
      const until = input[at + 1]?.ts ?? Number.POSITIVE_INFINITY;
      const drawn = frames.filter(({ ts }) => ts >= event.ts && ts < until);
      return [event, ...drawn].reduce((sum, one) => sum + one[key], 0) / 1000;
    });
  const milliseconds = whole("dur");
  const processor = whole("tdur").filter((time) => time >= 0);
  const layout = ofMain("UpdateLayoutTree", "Layout");
  return {
    steps: input.length,
    median: median(milliseconds),
    p99: quantile(milliseconds, 0.99),
    processor_median: processor.length ? median(processor) : null,
    processor_p99: processor.length ? quantile(processor, 0.99) : null,
    layout_per_step: layout.reduce((sum, event) => sum + event.dur / 1000, 0) / input.length,
  };
}

/** Drags the context's slider on the site's first page, as it comes and with the arithmetic open. */
export async function measurePage() {
  const site = await serve();
  const browser = await browsers.Chromium();
  try {
    return [
      { name: "as it opens", ...(await drag(browser, site.origin, false)) },
      { name: "arithmetic open", ...(await drag(browser, site.origin, true)) },
    ];
  } finally {
    await browser.close();
    await site.close();
  }
}
