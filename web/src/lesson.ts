/**
 * The lesson's elements come in a third script and a fourth, each loaded when one of its tags comes near the view, or at
 * once where the page's link has the state of one. They take what they share with the first script from here.
 */
import base from "./base.css";
import { adopt, announce, soon, speakAs } from "./dom.js";
import { loadFullKernel, loadKernel, needsFull, refused, requestText } from "./kernel.js";
import css from "./kv-capacity.css";
import { loadMore } from "./more.js";
import { fromText, KEYS, toText } from "./request-text.js";
import { stopsUpTo } from "./stops.js";
import { addEnglish, languageOf, loadWords, numeral, speechFor, turns } from "./words.js";

/** How tall each element is, in rem, in a window of 48 rem and more and in one of 20: the room that is kept for it. */
const SPACE = {
  "capacity-table": [37, 63],
  growth: [40, 53],
  formula: [28, 48],
  curve: [44, 50],
  levers: [35, 62],
  attention: [57, 103],
  memory: [35, 66],
  paging: [62, 119],
  quiz: [38, 47],
  interview: [36, 53],
};

const TAGS = Object.keys(SPACE)
  .map((name) => `kv-${name}`)
  .join();

/**
 * Keeps the room of elements that are still to come, so that nothing moves when they do; on paper they never come. A
 * page's own styles win.
 */
function keepSpace(): void {
  const sheet = new CSSStyleSheet({ media: "not print" });
  const rules = Object.entries(SPACE).map(
    ([name, [wide = 0, narrow = 0]]) =>
      `:where(kv-${name}:not(:defined)){display:block;min-block-size:clamp(${wide}rem,${narrow}rem - (100vw - 20rem)*${(narrow - wide) / 28},${narrow}rem)}`,
  );
  sheet.replaceSync(rules.join(""));
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

const kit = {
  /** The style sheets that every element adopts. */
  styles: [base, css] as const,
  KEYS,
  fromText,
  toText,
  adopt,
  announce,
  soon,
  speakAs,
  speechFor,
  languageOf,
  loadWords,
  turns,
  stopsUpTo,
  loadKernel,
  loadFullKernel,
  loadMore,
  needsFull,
  requestText,
  refused,
  addEnglish,
  numeral,
};

/** What the third script shares with the first. */
export type Kit = typeof kit;

/** The number is that of this meeting point's form. */
const KIT = Symbol.for("kv-capacity.kit.1");
const page = globalThis as { [KIT]?: Kit };

/** The third script, and the fourth with what there is to play with, which no reader needs at first. */
export type LessonPart = "lesson" | "play";
const PLAY = /paging|quiz|interview/;

/** Watches the page for the lesson's tags. `load` fetches a script; the first copy of the script sees to it. */
export function provideLesson(load: (part: LessonPart) => Promise<unknown>): void {
  if (page[KIT] || !globalThis.customElements) return;
  page[KIT] = kit;
  // In time for the next frame, and not before the first answer.
  requestAnimationFrame(keepSpace);
  const loading: Partial<Record<LessonPart, Promise<unknown>>> = {};
  const near = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting && !location.hash.includes(`${target.id || target.localName}.`)) continue;
        near.unobserve(target);
        const part = PLAY.test(target.localName) ? "play" : "lesson";
        loadWords(languageOf(target), `-${part}`);
        loading[part] ??= load(part).catch((error) => console.warn(`kv-capacity: ${error}`));
        if (loading.play && loading.lesson) inserted.disconnect();
      }
    },
    { rootMargin: "100%" },
  );
  const look = (root: ParentNode) => {
    for (const tag of root.querySelectorAll(TAGS)) if (!tag.matches(":defined")) near.observe(tag);
  };
  const inserted = new MutationObserver((records) => {
    for (const { addedNodes } of records) {
      for (const node of addedNodes) if (node.parentElement && "matches" in node) look(node.parentElement);
    }
  });
  const start = () => {
    look(document);
    inserted.observe(document, { childList: true, subtree: true });
  };
  // A page that holds all in one file has the third script at its end.
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
}
