/**
 * <kv-builder>: an author plays with a live element, says what readers may change and how it looks, and takes a snippet
 * along. The element that is played with is the builder's own child, so that it is found and filled as on any page.
 */
import words from "../../locales/en-builder.json";
import type { Failure } from "../contract.js";
import { kit } from "../lesson/kit.js";
import { button, field } from "../lesson/parts.js";
import lesson from "../lesson/lesson.css";
import { h, mark, say } from "../nodes.js";
import { TAGS } from "../tags.js";
import type { Speech, Values } from "../words.js";
import css from "./builder.css";
import { loadPage } from "./page.js";
import { type Choice, FORMS, type Form, fragment, snippet } from "./snippets.js";

/** The languages that there are files for; the build knows. */
declare const LANGUAGES: string[];

/** What can be locked in which element. */
const LOCKS: Record<string, string[]> = {
  "kv-capacity": ["model", "weights", "kv", "gpu", "gpus", "context", "engine"],
  "kv-quiz": ["level"],
};
const THEMES = ["auto", "light", "dark"] as const;
const WIDTHS = [960, 720, 560, 400];
/** The calculator's own accent in daylight, where an author's choice begins. */
const ACCENT = "#2563eb";
const ON_SERVER = /^https?:$/.test(location.protocol);
const FILE = "kv-capacity.html";
/** Milliseconds that a choice rests before the preview follows it. */
const REST = 300;
const SAID = 2000;

/** What is embedded, as far as the builder asks it. */
interface Embedded extends HTMLElement {
  state?: string;
  ready?: Promise<void>;
  error?: Failure["error"] | null;
}

export class KvBuilder extends HTMLElement {
  readonly #root = this.attachShadow({ mode: "open" });
  #speech!: Speech;
  #element!: Embedded;
  #tag!: HTMLSelectElement;
  #stage!: HTMLElement;
  #problem!: HTMLElement;
  #locks!: HTMLElement;
  #accent!: HTMLInputElement;
  #ownAccent!: HTMLInputElement;
  #lang!: HTMLSelectElement;
  #width!: HTMLSelectElement;
  #base!: HTMLInputElement;
  #baseProblem!: HTMLElement;
  #frame!: HTMLIFrameElement;
  #about!: HTMLElement;
  #code!: HTMLElement;
  #shown!: HTMLElement;
  #copy!: HTMLButtonElement;
  #download!: HTMLButtonElement;
  #outcome!: HTMLElement;
  #height = 900;
  #resting: ReturnType<typeof setTimeout> | undefined;
  readonly #changes = new MutationObserver(() => this.#show());

  connectedCallback(): void {
    if (this.#speech) return;
    this.#speech = kit.speechFor("en");
    kit.adopt(this.#root, ...kit.styles, lesson, css);
    this.#root.replaceChildren(
      h(
        "div",
        { class: "kv", lang: this.#speech.language, dir: this.#speech.direction },
        this.#start(),
        this.#changeable(),
        this.#look(),
        this.#preview(),
        this.#take(),
      ),
    );
    addEventListener("message", this.#hear);
    this.#embed();
  }

  #word(key: string, values: Values = {}): string {
    return this.#speech.text(key, values);
  }

  #section(name: string, ...content: (Node | string)[]): HTMLElement {
    const title = h("h2", { id: `${name}-title` }, this.#word(`builder.${name}`));
    return h("section", { class: name, "aria-labelledby": title.id }, title, ...content);
  }

  #hint(key: string): HTMLElement {
    return h("p", { class: "about" }, this.#word(key));
  }

  /** One choice of several, as radio buttons in a row. */
  #choices(name: string, legend: string, values: readonly string[], chosen: () => void): HTMLElement {
    const options = values.map((value, i) => {
      const input = h("input", { type: "radio", name, value, id: `${name}-${value}`, autocomplete: "off" });
      input.checked = i === 0;
      input.addEventListener("change", chosen);
      return h(
        "label",
        { class: "choice", for: input.id },
        input,
        h("span", {}, this.#word(`builder.${name}.${value}`)),
      );
    });
    return h("fieldset", { class: `choices ${name}-field` }, h("legend", {}, legend), h("div", {}, ...options));
  }

  #chosen(name: string): string {
    return this.#root.querySelector<HTMLInputElement>(`input[name="${name}"]:checked`)?.value ?? "";
  }

  // ---- the parts of the page --------------------------------------------------------------------------------------------

  #start(): HTMLElement {
    this.#tag = h("select", { autocomplete: "off" });
    for (const tag of TAGS) this.#tag.append(h("option", { value: tag }, this.#word(`builder.element.${tag}`)));
    this.#tag.addEventListener("change", () => this.#embed());
    const again = button(this.#word("builder.again"), () => this.#embed());
    this.#stage = h("div", { class: "stage" }, h("slot"));
    this.#problem = h("p", { class: "problem", role: "alert" });
    return this.#section(
      "start",
      this.#hint("builder.start-about"),
      h("div", { class: "row" }, field(this.#word("builder.element"), this.#tag, "element"), again),
      this.#stage,
      this.#problem,
    );
  }

  #changeable(): HTMLElement {
    this.#locks = h("div", { class: "locks", role: "group", "aria-labelledby": "lock-title" });
    return this.#section("lock", this.#hint("builder.lock-about"), this.#locks);
  }

  #look(): HTMLElement {
    const follow = () => this.#show();
    this.#ownAccent = h("input", { type: "checkbox", id: "own-accent", autocomplete: "off" });
    this.#accent = h("input", {
      type: "color",
      id: "accent",
      value: ACCENT,
      "aria-label": this.#word("builder.accent"),
    });
    this.#ownAccent.addEventListener("change", follow);
    this.#accent.addEventListener("input", () => {
      this.#ownAccent.checked = true;
      follow();
    });
    this.#lang = h("select", { autocomplete: "off" }, h("option", { value: "" }, this.#word("builder.lang-auto")));
    for (const tag of LANGUAGES) {
      const name = new Intl.DisplayNames([tag], { type: "language" }).of(tag) ?? tag;
      this.#lang.append(h("option", { value: tag, lang: tag }, name));
    }
    this.#width = h("select", { autocomplete: "off" }, h("option", { value: "" }, this.#word("builder.width-full")));
    for (const n of WIDTHS) this.#width.append(h("option", { value: `${n}` }, this.#word("builder.width-most", { n })));
    for (const select of [this.#lang, this.#width]) select.addEventListener("change", follow);
    return this.#section(
      "look",
      h(
        "div",
        { class: "grid" },
        this.#choices("theme", this.#word("builder.theme"), THEMES, follow),
        h(
          "fieldset",
          { class: "accent-field" },
          h("legend", {}, this.#word("builder.accent")),
          h(
            "div",
            {},
            this.#accent,
            h("label", { class: "tick", for: "own-accent" }, this.#ownAccent, this.#word("builder.accent-own")),
          ),
        ),
        field(this.#word("builder.lang"), this.#lang, "lang"),
        field(this.#word("builder.width"), this.#width, "width"),
      ),
    );
  }

  #preview(): HTMLElement {
    this.#frame = h("iframe", { title: this.#word("builder.preview-title"), allow: "clipboard-write" });
    // From disk a sandboxed frame may load nothing.
    if (ON_SERVER) mark(this.#frame, "sandbox", "allow-scripts allow-downloads");
    return this.#section("preview", this.#hint("builder.preview-about"), h("div", { class: "window" }, this.#frame));
  }

  #take(): HTMLElement {
    this.#base = h("input", {
      type: "text",
      class: "exact",
      spellcheck: "false",
      autocomplete: "off",
      inputmode: "url",
    });
    // From disk the page cannot know where the files will be.
    this.#base.value = ON_SERVER ? new URL(".", document.baseURI).href : "";
    this.#base.addEventListener("input", () => this.#show());
    this.#baseProblem = h("p", { class: "problem", id: "base-problem", role: "alert" });
    const base = field(this.#word("builder.base"), this.#base, "base");
    base.append(h("p", { class: "about", id: "base-about" }, this.#word("builder.base-about")), this.#baseProblem);
    mark(this.#base, "aria-describedby", "base-about base-problem");
    this.#about = h("p", { class: "about" });
    this.#code = h("code");
    this.#shown = h("pre", { tabindex: "0", role: "region", "aria-label": this.#word("builder.code") }, this.#code);
    this.#copy = button(this.#word("builder.copy"), () => this.#copyCode(), "button first");
    this.#download = button(this.#word("builder.download", { name: FILE }), () => this.#save(), "button first");
    this.#outcome = h("p", { class: "outcome" });
    return this.#section(
      "take",
      this.#choices("form", this.#word("builder.form"), FORMS, () => {
        say(this.#outcome, "");
        this.#show();
      }),
      this.#about,
      base,
      this.#shown,
      h("div", { class: "buttons" }, this.#copy, this.#download, this.#outcome),
    );
  }

  // ---- what is embedded ------------------------------------------------------------------------------------------------

  /** Puts the chosen element in, as it starts of itself. */
  #embed(): void {
    const tag = this.#tag.value;
    this.#changes.disconnect();
    this.#element = document.createElement(tag) as Embedded;
    // The page's own space around an element is the stage's business here.
    this.#element.style.margin = "0";
    this.#changes.observe(this.#element, { attributes: true });
    for (const kind of ["kv-shown", "kv-change"]) this.#element.addEventListener(kind, () => this.#show());
    this.replaceChildren(this.#element);
    const boxes = (LOCKS[tag] ?? []).map((key) => {
      const input = h("input", { type: "checkbox", id: `lock-${key}`, value: key, autocomplete: "off" });
      input.checked = true;
      input.addEventListener("change", () => this.#show());
      return h("label", { class: "tick", for: input.id }, input, this.#word(`builder.lock.${key}`));
    });
    if (boxes.length === 0) boxes.push(h("p", { class: "about" }, this.#word("builder.lock-none")) as never);
    this.#locks.replaceChildren(...boxes);
    const element = this.#element;
    const show = () => this.#show();
    customElements.whenDefined(tag).then(() => {
      show();
      element.ready?.then(show);
    });
    show();
  }

  #lock(): string {
    const boxes = [...this.#locks.querySelectorAll("input")];
    const kept = boxes.filter((box) => !box.checked).map((box) => box.value);
    return kept.length > 1 && kept.length === boxes.length ? "all" : kept.join(" ");
  }

  /** The folder's address, or null where what is typed is none. */
  #folder(): string | null {
    const text = this.#base.value.trim();
    const folder = text === "" || text.endsWith("/") ? text : `${text}/`;
    if (/^https?:\/\//i.test(folder)) return URL.canParse(folder) && !/[\s"<>?#]/.test(folder) ? folder : null;
    return /^[\w.~%/-]*$/.test(folder) && !folder.startsWith("//") ? folder : null;
  }

  /** What stands in the place of the element without script: its own sentence, if it has one. */
  #example(): string {
    const sentence = this.#element.shadowRoot?.querySelector(".sentence, .gqa")?.textContent ?? "";
    const name = this.#word(`builder.element.${this.#tag.value}`);
    return sentence.replace(/\s+/g, " ").trim() || this.#word("builder.example", { name });
  }

  #choice(base: string): Choice {
    const tag = this.#tag.value;
    const width = this.#width.value;
    return {
      tag,
      state: new URLSearchParams(
        [...new URLSearchParams(this.#element.state ?? "")].filter(([key]) => key !== "lock"),
      ).toString(),
      lock: this.#lock(),
      theme: this.#chosen("theme") as Choice["theme"],
      accent: this.#ownAccent.checked ? this.#accent.value : "",
      lang: this.#lang.value,
      width: width ? Number(width) : null,
      height: this.#height,
      base,
      title: this.#word(`builder.element.${tag}`),
      example: this.#example(),
    };
  }

  /** Shows what was chosen: on the stage, in the preview, and as a snippet. */
  #show(): void {
    const base = this.#folder();
    const choice = this.#choice(base ?? "");
    const { theme, accent, lang } = choice;
    this.#stage.style.colorScheme = theme === "auto" ? "" : theme;
    this.#stage.style.setProperty("--kv-accent", accent || null);
    mark(this.#stage, "data-theme", theme);
    if ((this.#element.getAttribute("lang") ?? "") !== lang) mark(this.#element, "lang", lang || null);

    const { error } = this.#element;
    say(this.#problem, error ? this.#word("builder.refused", { ...error }) : "");
    mark(this.#base, "aria-invalid", base === null ? "true" : null);
    say(this.#baseProblem, base === null ? this.#word("builder.base-wrong", { text: this.#base.value }) : "");

    const form = this.#chosen("form") as Form;
    const file = form === "file";
    const well = !error && base !== null && this.#element.state !== undefined;
    say(this.#about, this.#word(`builder.about.${form}`));
    this.#base.closest<HTMLElement>(".field")?.toggleAttribute("hidden", file);
    this.#shown.hidden = file || !well;
    this.#copy.hidden = file;
    this.#download.hidden = !file;
    this.#copy.disabled = !well;
    this.#download.disabled = Boolean(error) || this.#element.state === undefined;
    say(this.#code, well && !file ? snippet(form, choice) : "");

    this.#frame.style.inlineSize = choice.width === null ? "" : `${choice.width}px`;
    clearTimeout(this.#resting);
    if (!error) this.#resting = setTimeout(() => this.#showFrame(choice), REST);
  }

  #showFrame(choice: Choice): void {
    const url = `${new URL("embed.html", document.baseURI).href}#${fragment(choice)}`;
    if (this.#frame.dataset.shows === url) return;
    const first = this.#frame.dataset.shows === undefined;
    this.#frame.dataset.shows = url;
    // A new address would be another step back in the page's history.
    if (first) this.#frame.src = url;
    else this.#frame.contentWindow?.location.replace(url);
  }

  #hear = ({ source, data }: MessageEvent): void => {
    if (source !== this.#frame.contentWindow || data?.type !== "kv-capacity-height") return;
    if (!Number.isFinite(data.height)) return;
    this.#height = Math.min(Math.max(data.height, 100), 5000);
    this.#frame.style.blockSize = `${this.#height}px`;
    if (this.#chosen("form") === "frame") this.#show();
  };

  // ---- taking it along -------------------------------------------------------------------------------------------------

  async #copyCode(): Promise<void> {
    try {
      await navigator.clipboard.writeText(this.#code.textContent ?? "");
      this.#say("builder.copied");
      setTimeout(() => say(this.#outcome, ""), SAID);
    } catch {
      // A page from disk may not write to the clipboard.
      getSelection()?.selectAllChildren(this.#code);
      this.#shown.focus();
      this.#say("builder.copy-by-hand");
    }
  }

  async #save(): Promise<void> {
    try {
      const page = await loadPage();
      const file = new Blob([snippet("file", this.#choice(""), page)], { type: "text/html" });
      const link = h("a", { href: URL.createObjectURL(file), download: FILE });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), REST);
      const size = this.#speech.reading({ value: file.size / 1e6, unit: "MB" });
      this.#say("builder.downloaded", { name: FILE, size });
    } catch {
      this.#say("builder.no-file");
    }
  }

  #say(key: string, values: Values = {}): void {
    say(this.#outcome, this.#word(key, values));
    kit.announce(this.#outcome.textContent ?? "");
  }
}

kit.addEnglish(words);
if (!customElements.get("kv-builder")) customElements.define("kv-builder", KvBuilder);
