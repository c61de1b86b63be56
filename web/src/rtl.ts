/**
 * What a language from right to left needs beside its words, and comes with them: WebKit moves a slider by the arrow keys
 * as if every language ran from left to right.
 */
const STEPS: Record<string, "stepUp" | "stepDown"> = { ArrowLeft: "stepUp", ArrowRight: "stepDown" };

globalThis.addEventListener?.(
  "keydown",
  (event) => {
    const range = event.composedPath()[0];
    const step = STEPS[event.key];
    if (!step || event.defaultPrevented || !(range instanceof HTMLInputElement) || range.type !== "range") return;
    const { host } = range.getRootNode() as Partial<ShadowRoot>;
    if (!host?.localName.startsWith("kv-") || getComputedStyle(range).direction !== "rtl") return;
    event.preventDefault();
    range[step]();
    for (const type of ["input", "change"]) range.dispatchEvent(new Event(type, { bubbles: true }));
  },
  true,
);
