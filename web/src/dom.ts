/** The little of the document that the elements share. Imports nothing that needs a DOM to be there. */
import { h } from "./nodes.js";
import { languageOf, loadWords, type Part, type Speech, speakAnew, speechFor, turns } from "./words.js";

export { h, mark, report, say, sayRich } from "./nodes.js";

/** A base class that can be extended where there is no DOM. */
export const Base = (globalThis.HTMLElement ?? class {}) as typeof HTMLElement;

/** Defines a tag once, however often the script is loaded. */
export function define(name: string, element: CustomElementConstructor): void {
  if (globalThis.customElements && !customElements.get(name)) customElements.define(name, element);
}

/** Keys pressed in a control are not the page's shortcuts, which would turn a slide; what leaves it or has ⌃ or ⌘ may be. */
const keepKey = (event: KeyboardEvent): void => {
  if (!event.ctrlKey && !event.metaKey && !/Tab|Esc/.test(event.key)) event.stopPropagation();
};

const sheets = new WeakMap<Document, Map<string, CSSStyleSheet>>();

/** Adopts styles; a sheet belongs to one document, so an element that moves to another gets that one's. */
export function adopt(root: ShadowRoot, ...styles: string[]): void {
  root.addEventListener("keydown", keepKey as EventListener);
  const owner = root.ownerDocument;
  const view = owner.defaultView;
  if (!view) return;
  let known = sheets.get(owner);
  if (!known) {
    known = new Map();
    sheets.set(owner, known);
  }
  const adopted: CSSStyleSheet[] = [];
  for (const css of styles) {
    let sheet = known.get(css);
    if (!sheet) {
      sheet = new (view as Window & typeof globalThis).CSSStyleSheet();
      sheet.replaceSync(css);
      known.set(css, sheet);
    }
    adopted.push(sheet);
  }
  root.adoptedStyleSheets = adopted;
}

/** How long an element keeps its place for the words of its language, in milliseconds; then it speaks English. */
const PATIENCE = 3000;

let watch: MutationObserver | undefined;

/**
 * Has an element speak the language around it, now and whenever that changes, until `turns` forgets it. A promise while
 * the words are to come, kept once they are there or have taken too long.
 */
export function speakAs(element: Element, part: Part, speak: (speech: Speech) => void): Promise<unknown> | undefined {
  const turn = () => {
    const tag = languageOf(element);
    const now = () => {
      if (tag === languageOf(element)) speak(speechFor(tag));
    };
    const coming = loadWords(tag, part)?.then(now);
    if (!coming) now();
    return coming && Promise.race([coming, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
  };
  turns.set(element, turn);
  watch ??= new MutationObserver(speakAnew);
  // The language may be named anywhere above, outside the shadow roots that the element stands in.
  for (let at: Node | undefined = element; at; at = (at as ShadowRoot).host) {
    at = at.getRootNode();
    watch.observe(at, { attributeFilter: ["lang"], subtree: true });
  }
  return turn();
}

interface Announcer {
  region?: HTMLElement;
  timer?: ReturnType<typeof setTimeout>;
}

const ANNOUNCER = Symbol.for("kv-capacity.announcer.1");
const page = globalThis as { [ANNOUNCER]?: Announcer };
page[ANNOUNCER] ??= {};
const announcer = page[ANNOUNCER] as Announcer;

/** How long a value must rest before it is spoken, in milliseconds. */
const REST = 700;

/** Speaks through the one polite region of the page, once the last change has settled. */
export function announce(text: string): void {
  let region = announcer.region;
  if (!region?.isConnected) {
    region = h("div", { role: "status", "aria-live": "polite" });
    // Out of sight, not out of the accessibility tree.
    Object.assign(region.style, { position: "fixed", clipPath: "inset(50%)" });
    document.body.append(region);
    announcer.region = region;
  }
  clearTimeout(announcer.timer);
  announcer.timer = setTimeout(() => {
    // As one new text: of a text that is changed in place, some readers speak only what differs.
    if (region && region.textContent !== text) region.textContent = text;
  }, REST);
}

type Job = () => void;

/** What waits to be drawn, each once and in the order in which it was asked for. */
const urgent = new Set<Job>();
const others = new Set<Job>();
/** How long a frame may draw, in milliseconds: less after one that took long, and then little by little more. */
const MOST = 4;
/** Below this a frame in which the handle was moved draws nothing else. */
const LITTLE = 1;
/** How long a frame may take, with all that the browser makes of it: screens have up to 60 of them a second. */
const ENOUGH = 13;
let room = MOST;
let turn = 0;
let asked = false;
/** Whether a hand has moved since the last frame, and whether that one drew nothing else. */
let moved = false;
let skipped = false;

const draw = (): void => {
  const start = performance.now();
  asked = urgent.size + others.size > 0;
  if (asked) requestAnimationFrame(draw);
  skipped = room < LITTLE && moved && !skipped;
  if (!skipped) {
    do {
      // Two that are urgent, then one of the others.
      const from = urgent.size && (++turn % 3 || !others.size) ? urgent : others;
      const [job] = from;
      if (job) from.delete(job);
      job?.();
    } while (urgent.size + others.size && performance.now() < start + room);
    // By then the frame is painted.
    setTimeout(() => {
      room = performance.now() - start > ENOUGH ? room * 0.7 : Math.min(MOST, room + 0.2);
    });
  }
  moved = false;
};

/** Has something drawn in one of the next frames, as much in each as leaves it on time: a hand that drags never waits. */
export function soon(job: Job, first?: boolean): void {
  (first ? urgent : others).add(job);
  if (first) moved = true;
  if (!asked) requestAnimationFrame(draw);
  asked = true;
}
