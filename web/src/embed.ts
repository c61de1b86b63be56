/**
 * The page for a frame. Its fragment names the element and its state, and what is the page's own: `element`, `lang`,
 * `theme` (light, dark, auto), `accent` (a colour as hex digits) and `lock`. The frame's height goes to the page around
 * it, and nothing else does; nothing is listened to.
 */
import type { KvCapacity } from "./kv-capacity.js";
import { h, mark } from "./nodes.js";
import { DRESS_KEYS, TAGS } from "./tags.js";

const OWN_KEYS = ["element", ...DRESS_KEYS];

/** Growths of the content that are told without a reader's hand in between. More would be a loop. */
const MOST_GROWTHS = 16;
/** Milliseconds that a state rests before the fragment follows it. */
const REST = 300;

const page = document.documentElement;
let shown = document.querySelector<HTMLElement>(TAGS.join()) ?? h("div");
/** The element as the page's author wrote it, before the fragment's words. */
const written = shown.cloneNode(true) as HTMLElement;

const complain = (text: string): void => console.warn(`kv-capacity: ${text}`);

/** The fragment's keys. A link that another page's element gave, `kv-quiz.seed=7`, names the element by its prefix. */
function fragment(): URLSearchParams {
  const given = new URLSearchParams(location.hash.slice(1));
  const out = new URLSearchParams();
  for (const [key, text] of given) {
    const dot = key.indexOf(".");
    if (dot < 0) out.append(key, text);
    else if (TAGS.includes(key.slice(0, dot))) {
      out.set("element", key.slice(0, dot));
      if (dot + 1 < key.length) out.set(key.slice(dot + 1), text);
    }
  }
  return out;
}

/** The language that is asked for; else the browser's, which need not be a language tag ("c"). */
function language(asked: string | undefined): string {
  try {
    if (asked) return Intl.getCanonicalLocales(asked)[0] ?? asked;
  } catch {
    complain(`lang=${asked} is not a language`);
  }
  return navigator.language;
}

function dress({ theme, accent, lang }: Record<string, string | undefined>): void {
  page.lang = language(lang);
  if (theme && !/^(auto|light|dark)$/.test(theme)) complain(`theme=${theme} is not auto, light or dark`);
  if (theme === "auto") page.style.colorScheme = "light dark";
  else if (theme === "light" || theme === "dark") page.style.colorScheme = theme;
  if (accent && /^#?([0-9a-f]{3}){1,2}$/i.test(accent))
    page.style.setProperty("--kv-accent", accent.replace(/^#?/, "#"));
  else if (accent) complain(`accent=${accent} is not a colour in three or six hex digits`);
}

/** What the fragment says of the element: everything that is not the page's own. */
function stateIn(given: URLSearchParams): string {
  return new URLSearchParams([...given].filter(([key]) => !OWN_KEYS.includes(key))).toString();
}

function show(): void {
  const given = fragment();
  const own = Object.fromEntries([...given].filter(([key]) => OWN_KEYS.includes(key)));
  dress(own);
  let tag = own.element ?? written.localName;
  if (!TAGS.includes(tag)) {
    complain(`element=${tag} is not one of ${TAGS.join(", ")}`);
    tag = written.localName;
  }
  const state = stateIn(given);
  // An element that finds its own prefix in the fragment would scroll the page around the frame.
  if (location.hash.includes(".")) write(given);
  const next = tag === written.localName ? (written.cloneNode(true) as HTMLElement) : document.createElement(tag);
  if (own.lock !== undefined) next.setAttribute("lock", own.lock);
  shown.replaceWith(next);
  shown = next;
  customElements.whenDefined(tag).then(async () => {
    if (state) {
      (next as KvCapacity).state = state;
      if (own.lock !== undefined) mark(next, "lock", own.lock);
    }
    // A frame out of sight is not drawn, so nothing is observed in it.
    await (next as KvCapacity).ready;
    tell();
  });
  follow(next);
}

// ---- the fragment follows the state ------------------------------------------------------------------------------------

let resting: ReturnType<typeof setTimeout> | undefined;
const changes = new MutationObserver(() => {
  clearTimeout(resting);
  resting = setTimeout(keep, REST);
});

function keep(): void {
  clearTimeout(resting);
  const { state } = shown as KvCapacity;
  if (state === undefined) return;
  const own = [...fragment()].filter(([key]) => OWN_KEYS.includes(key));
  write([...new URLSearchParams(stateIn(new URLSearchParams(state))), ...own]);
}

function write(pairs: Iterable<[string, string]>): void {
  try {
    history.replaceState(history.state, "", `#${new URLSearchParams([...pairs])}`);
  } catch {
    // A sandboxed frame may not.
  }
}

function follow(element: HTMLElement): void {
  changes.disconnect();
  changes.observe(element, { attributes: true });
  element.addEventListener("kv-change", keep);
}

// ---- the frame follows the content ---------------------------------------------------------------------------------------

let told = 0;
let growths = 0;
const widths = new Set<number>();

function tell(): void {
  if (parent === window) return;
  const height = Math.ceil(page.getBoundingClientRect().height);
  // A width not seen before is the reader turning the device or dragging the window; a loop goes back and forth.
  if (!widths.has(innerWidth)) {
    widths.add(innerWidth);
    growths = 0;
  }
  if (Math.abs(height - told) <= 1) return;
  if (height > told && ++growths > MOST_GROWTHS) {
    if (growths === MOST_GROWTHS + 1) complain("the height keeps growing by itself and is no longer told");
    return;
  }
  told = height;
  // The page around may be anybody's, and the frame's origin opaque: a height is all that it learns.
  parent.postMessage({ type: "kv-capacity-height", height }, "*");
}

function handled(): void {
  growths = 0;
  widths.clear();
  widths.add(innerWidth);
  tell();
}

addEventListener("hashchange", show);
show();
if (parent !== window) {
  new ResizeObserver(tell).observe(page);
  for (const kind of ["pointerdown", "keydown", "input"]) {
    addEventListener(kind, (event) => event.isTrusted && handled(), { capture: true, passive: true });
  }
}
