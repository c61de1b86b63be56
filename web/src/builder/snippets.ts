/** Snippets that embed an element, each in the form that a kind of page takes. Text in, text out; no DOM. */

export const FORMS = ["tag", "frame", "file", "markdown", "mdx", "rst"] as const;
export type Form = (typeof FORMS)[number];

/** What an author has chosen. */
export interface Choice {
  tag: string;
  /** The element's state, as a link carries it. */
  state: string;
  /** Keys that readers may not change; "" for none. */
  lock: string;
  theme: "auto" | "light" | "dark";
  /** `#rrggbb`, or "" for the element's own. */
  accent: string;
  /** A language tag, or "" for the page's. */
  lang: string;
  /** The most pixels that it may be wide, or null. */
  width: number | null;
  /** What a frame is high before it is told, in pixels. */
  height: number;
  /** Address of the folder with the files: "" or something that ends in a slash. */
  base: string;
  /** What a frame is called. */
  title: string;
  /** What is shown without script. */
  example: string;
}

/** What makes a frame as high as its content; a frame's own sender and numbers alone count. */
export const LISTENER = `<script>
  addEventListener("message", ({ source, data }) => {
    if (data?.type !== "kv-capacity-height" || !Number.isFinite(data.height)) return;
    for (const frame of document.querySelectorAll("iframe.kv-capacity")) {
      if (frame.contentWindow === source) frame.height = Math.min(Math.max(data.height, 100), 5000);
    }
  });
</script>`;

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Text as it stands in an attribute's quotes or between tags, on one line. */
export function escaped(text: string): string {
  return text.replace(/[&<>"\p{Cc}\u2028\u2029]/gu, (one) => ENTITIES[one] ?? `&#${one.charCodeAt(0)};`);
}

/** Between tags in JSX braces mean something too; an attribute's quotes know no escape but entities. */
const escapedInJsx = (text: string): string => escaped(text).replace(/[{}]/g, (one) => `&#${one.charCodeAt(0)};`);

type Styles = [property: string, value: string][];

/** The look as style declarations. A theme that is not the page's brings its own ground. */
function styles({ theme, accent, width }: Choice): Styles {
  const out: Styles = [];
  if (theme !== "auto") {
    out.push(["color-scheme", theme], ["background", "Canvas"], ["color", "CanvasText"]);
    out.push(["box-sizing", "border-box"], ["padding", "1rem"]);
  }
  if (accent) out.push(["--kv-accent", accent]);
  if (width !== null) out.push(["max-inline-size", `${width}px`]);
  return out;
}

const css = (declarations: Styles): string => declarations.map(([name, value]) => `${name}: ${value}`).join("; ");

function jsxStyle(declarations: Styles): string {
  const camel = (name: string) =>
    name.startsWith("--")
      ? JSON.stringify(name)
      : name.replace(/-(\w)/g, (_all, letter: string) => letter.toUpperCase());
  return `{{ ${declarations.map(([name, value]) => `${camel(name)}: ${JSON.stringify(value)}`).join(", ")} }}`;
}

/** The element's attributes but its style, written out. */
function attributes({ state, lock, lang }: Choice): string {
  const pairs = [...new URLSearchParams(state)];
  if (lock) pairs.push(["lock", lock]);
  if (lang) pairs.push(["lang", lang]);
  return pairs.map(([name, text]) => ` ${name}="${escaped(text)}"`).join("");
}

/** The element with what is shown without script, its lines behind an indent. */
export function markup(choice: Choice, declarations: Styles = styles(choice), indent = "  "): string {
  const { tag, example } = choice;
  const style = declarations.length > 0 ? ` style="${escaped(css(declarations))}"` : "";
  const inside = example ? `\n${indent}<p>${escaped(example)}</p>\n` : "\n";
  return `<${tag}${attributes(choice)}${style}>${inside}</${tag}>`;
}

const script = ({ base }: Choice): string => `<script src="${escaped(`${base}kv-capacity.js`)}"></script>`;

/** What a frame's fragment says. */
export function fragment({ tag, state, lock, theme, accent, lang }: Choice): string {
  const out = new URLSearchParams(tag === "kv-capacity" ? {} : { element: tag });
  for (const [key, text] of new URLSearchParams(state)) out.set(key, text);
  if (lock) out.set("lock", lock);
  if (lang) out.set("lang", lang);
  if (theme !== "auto") out.set("theme", theme);
  if (accent) out.set("accent", accent.slice(1));
  return out.toString();
}

function frame(choice: Choice): string {
  const { base, title, width, height } = choice;
  const source = escaped(`${base}embed.html#${fragment(choice)}`);
  const size = width === null ? 'width="100%"' : `width="${width}"`;
  const style = width === null ? "border: 0" : "border: 0; max-width: 100%";
  return `<iframe class="kv-capacity" src="${source}" title="${escaped(title)}"
  sandbox="allow-scripts allow-downloads" allow="clipboard-write" ${size} height="${height}" style="${style}"></iframe>
${LISTENER}`;
}

function mdx(choice: Choice): string {
  const { tag, example, base } = choice;
  const declarations = styles(choice);
  const style = declarations.length > 0 ? ` style=${jsxStyle(declarations)}` : "";
  const inside = example ? `<p>${escapedInJsx(example)}</p>` : "";
  return `<script src="${escaped(`${base}kv-capacity.js`)}" async></script>
<${tag}${attributes(choice)}${style}>${inside}</${tag}>`;
}

function rst(choice: Choice): string {
  const html = `${script(choice)}\n${markup(choice)}`;
  return `.. raw:: html\n\n${html.replace(/^/gm, "   ")}`;
}

/** The text to paste. Of the form "file" it is the whole page, for which `page` has the place. */
export function snippet(form: Form, choice: Choice, page = ""): string {
  if (form === "frame") return frame(choice);
  if (form === "mdx") return mdx(choice);
  if (form === "rst") return rst(choice);
  if (form === "file") return file(choice, page);
  const html = (indent: string) => `${script(choice)}\n${markup(choice, styles(choice), indent)}`;
  // In a tag that Markdown knows, it takes lines of HTML as they are while none of them is empty.
  return form === "markdown" ? `<div>\n${html("")}\n</div>` : html("  ");
}

/** The page that holds everything, with the element in its place. */
function file(choice: Choice, page: string): string {
  const { theme, accent, width } = choice;
  const dress: Styles = [];
  if (theme !== "auto") dress.push(["color-scheme", theme]);
  if (accent) dress.push(["--kv-accent", accent]);
  const size: Styles =
    width === null
      ? []
      : [
          ["max-inline-size", `${width}px`],
          ["margin-inline", "auto"],
        ];
  const style = dress.length > 0 ? ` style="${css(dress)}"` : "";
  return page
    .replace('<html lang="en">', () => `<html lang="en"${style}>`)
    .replace("<!--element-->", () => markup(choice, size));
}
