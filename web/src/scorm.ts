/**
 * Tells a learning platform how the lesson went, by the run-time of SCORM 1.2: completion, the quiz's score in per cent
 * and the time spent. Without a platform the page is the same and nothing is told. What a platform refuses is said in
 * the console alone, since no reader can mend it.
 */

/** The platform's side, as SCORM 1.2 (Run-Time Environment, 3.3) names it. Truth is the text "true". */
interface Api {
  LMSInitialize(none: ""): string;
  LMSFinish(none: ""): string;
  LMSGetValue(name: string): string;
  LMSSetValue(name: string, value: string): string;
  LMSCommit(none: ""): string;
  LMSGetLastError(): string;
  LMSGetErrorString(code: string): string;
}

/** How far up the platform's windows are searched. */
const MOST_LEVELS = 7;

/** The platform's object in a window or above it; null too where another origin's window stands in the way. */
function apiFrom(start: Window | null | undefined): Api | null {
  let at = start;
  try {
    for (let level = 0; at && level <= MOST_LEVELS; level++) {
      const { API } = at as { API?: Api };
      if (API) return API;
      if (at.parent === at) return null;
      at = at.parent;
    }
  } catch {
    // Another origin's.
  }
  return null;
}

// Whose window opened another may be asked of any origin's.
const api = apiFrom(window) ?? apiFrom(window.opener) ?? apiFrom(window.top?.opener);

const warn = (text: string): void => console.warn(`kv-capacity: the learning platform refuses ${text}`);

/** Calls the platform; false when it refuses or throws. */
function told(what: string, call: (platform: Api) => string): boolean {
  if (!api) return false;
  try {
    if (String(call(api)) === "true") return true;
    const code = String(api.LMSGetLastError());
    warn(`${what}: ${code} ${api.LMSGetErrorString(code)}`);
  } catch (error) {
    warn(`${what}: ${error}`);
  }
  return false;
}

const set = (name: string, value: string): boolean =>
  told(`${name}=${value}`, (platform) => platform.LMSSetValue(name, value));

/** A value of the platform's; "" where it has none. */
function get(name: string): string {
  try {
    return String(api?.LMSGetValue(name) ?? "");
  } catch (error) {
    warn(`${name}: ${error}`);
    return "";
  }
}

/** A number that the platform has, or null. */
function figure(name: string): number | null {
  const text = get(name).trim();
  return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
}

const commit = (): boolean => told("LMSCommit", (platform) => platform.LMSCommit(""));

const started = Date.now();

/** A stretch of time as SCORM 1.2 writes it: hours, minutes, seconds and hundredths. */
function timespan(milliseconds: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const hundredths = Math.floor(milliseconds / 10);
  const seconds = Math.floor(hundredths / 100);
  const hours = Math.min(Math.floor(seconds / 3600), 9999);
  return `${String(hours).padStart(4, "0")}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}.${two(hundredths % 100)}`;
}

const DONE = ["passed", "completed"];

function run(): void {
  // Whoever looks around or looks back is not graded.
  const counts = !["browse", "review"].includes(get("cmi.core.lesson_mode"));
  let status = get("cmi.core.lesson_status");
  if (counts && !DONE.includes(status) && status !== "failed" && status !== "incomplete") {
    status = "incomplete";
    set("cmi.core.lesson_status", status);
    commit();
  }

  document.addEventListener("kv-summary", (event) => {
    const { right, count } = (event as CustomEvent<{ right: number; count: number }>).detail;
    if (!counts || !(count > 0)) return;
    const score = Math.round((100 * right) / count);
    const before = figure("cmi.core.score.raw");
    if (before === null || score > before) {
      set("cmi.core.score.min", "0");
      set("cmi.core.score.max", "100");
      set("cmi.core.score.raw", String(score));
    }
    // A later try does not take back what was reached.
    if (!DONE.includes(status)) {
      const mastery = figure("cmi.student_data.mastery_score");
      status = mastery === null ? "completed" : score >= mastery ? "passed" : "failed";
      set("cmi.core.lesson_status", status);
    }
    commit();
  });

  let left = false;
  addEventListener("pagehide", () => {
    if (left) return;
    left = true;
    set("cmi.core.session_time", timespan(Date.now() - started));
    set("cmi.core.exit", status === "incomplete" ? "suspend" : "");
    commit();
    told("LMSFinish", (platform) => platform.LMSFinish(""));
  });
  // A page that comes back from the browser's cache has finished with its platform, and starts anew.
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
}

if (told("LMSInitialize", (platform) => platform.LMSInitialize(""))) run();
