/**
 * <kv-capacity>: model, formats, GPUs and context in; four figures, a memory bar and a sentence out. It words and draws
 * the kernel's answer and computes no bytes of its own.
 */
import base from "./base.css";
import type { Answer, Catalogue, Failure, Kernel, Request } from "./contract.js";
import { adopt, announce, Base, h, mark, report, say, sayRich, soon, speakAs } from "./dom.js";
import { KernelError, loadFullKernel, loadKernel, refused } from "./kernel.js";
import css from "./kv-capacity.css";
import { type Attached, type AuthorModel, type Host, loadMore } from "./more.js";
import { keyOf } from "./refusal.js";
import { fromText, isKey, KEYS, type Key, toText } from "./request-text.js";
import { stepItem } from "./steps.js";
import { stopsUpTo } from "./stops.js";
import { addEnglish, languageOf, loadWords, numeral, type Speech, speechFor, turns, type Values } from "./words.js";

/** What `kv-input` and `kv-change` carry: the request, and its answer or the reason why there is none. */
export interface CapacityDetail {
  request: Request;
  plan: Answer | null;
  error: Failure["error"] | null;
}

export type CapacityEvent = CustomEvent<CapacityDetail>;

/** Where the element starts when nobody says. */
export const DEFAULT_MODEL = "llama-3.1-8b";
const DEFAULT_GPU = "80gb";
const MOST_GPUS_ON_SLIDER = 16;

const SVG = "http://www.w3.org/2000/svg";
/** Conversations thinner than this many pixels are drawn as one solid band. */
const THINNEST_CONVERSATION = 3;
/** Units across the picture of the cuts. */
const CUTS_WIDTH = 1000;

/** The closed parts at the end, which the second script fills. */
const PANELS = ["own", "engine", "log", "share"] as const;
type Panels = Host["panels"];
/** Says "your own model" in the model's selector. */
const OWN = "+";
/** Says "more of them" in a selector, until the second script has brought the whole catalogue. */
const MORE = "…";

/** A slider and the box for an exact number beside it. */
interface Dial {
  range: HTMLInputElement;
  exact: HTMLInputElement;
  beside: HTMLElement;
}

interface Figure {
  value: HTMLElement;
  unit: HTMLElement;
  small: HTMLElement;
  box: HTMLElement;
}

/** Sets a control only where it differs: to set it costs more than to look. */
const write = (control: HTMLInputElement, value: string): void => {
  if (control.value !== value) control.value = value;
};

/**
 * Attributes and properties are the request's keys; besides, `lock` names what a reader may not change, `link` keeps the
 * state in the page's address, and `hub` is the base address that configs are fetched from on a click ("off": none).
 */
export class KvCapacity extends Base {
  static observedAttributes: string[] = [...KEYS, "lock"];

  declare model: Request["model"];
  declare weights: Request["weights"];
  declare kv: Request["kv"];
  declare gpu: Request["gpu"];
  declare engine: Request["engine"];
  declare gpus: Request["gpus"];
  declare context: Request["context"];
  declare parameters: Request["parameters"];
  declare kv_heads: Request["kv_heads"];
  declare weight_bytes: Request["weight_bytes"];
  declare tensor_parallel: Request["tensor_parallel"];
  declare pipeline_parallel: Request["pipeline_parallel"];
  declare data_parallel: Request["data_parallel"];
  declare options: Request["options"];
  declare config: Request["config"];

  #request: Record<string, unknown> = {};
  #plan: Answer | null = null;
  /** The last answer to a request that was more than half typed. */
  #settled: Answer | null = null;
  #failure: Failure["error"] | null = null;
  /** What a reader set is answered or refused as it stands. */
  readonly #byReader = new Set<string>();
  /** What stands in for values that the page gave and that are refused. */
  readonly #standIns: Host["standIns"] = new Map();
  #kernel: Kernel | null = null;
  #catalogue: Catalogue | null = null;
  /** Whether more than the first words and figures has been drawn. */
  #whole = false;
  #speech!: Speech;
  #built = false;
  #queued = false;
  /** Whether a hand that drags waits for an answer. */
  #asking = false;
  #reflecting = false;
  #stops: number[] = [];
  #announceReady!: () => void;
  #given: unknown = undefined;
  #authored = new Map<string, AuthorModel>();
  #further: Promise<Attached> | null = null;
  #attached: Attached | null = null;
  #reading: Promise<void> | undefined;
  #lacking = false;
  /** Why the calculator cannot start. */
  #woe: unknown;
  #furtherStyles: string[] = [];

  /** Resolves once the first answer is shown whole and every control has its choices. */
  readonly ready: Promise<void> = new Promise((resolve) => {
    this.#announceReady = resolve;
  });

  readonly #root: ShadowRoot | null;
  #base!: HTMLElement;
  #selects!: Record<"model" | "weights" | "kv" | "gpu", HTMLSelectElement>;
  #gpus!: Dial;
  #context!: Dial;
  #problem!: HTMLElement;
  #result!: HTMLElement;
  #figures!: Record<"token" | "sequence" | "room" | "count", Figure>;
  #bar!: HTMLElement;
  #barWidth = 0;
  #cuts: SVGPathElement | undefined;
  #legend!: HTMLElement;
  #sentence!: HTMLElement;
  #details!: HTMLDetailsElement;
  #steps!: HTMLElement;
  #notes!: HTMLElement;
  #trouble!: HTMLElement;
  #reserved!: HTMLElement;
  #panels!: Panels;

  constructor() {
    super();
    this.#root = this.attachShadow?.({ mode: "open" }) ?? null;
  }

  // ---- properties and attributes -----------------------------------------------------------------------------------

  /** The last answer that was given; null before the first. */
  get plan(): Answer | null {
    return this.#plan;
  }

  /** Why something that was set is refused; null while all is accepted. */
  get error(): Failure["error"] | null {
    return this.#failure ?? [...this.#standIns.values()][0]?.errors[0] ?? null;
  }

  /** What was set, as far as it is accepted, by the ids of a page's author, and with the model that nobody named. */
  get #stated(): Request {
    const out = { ...this.#request };
    for (const [key, { value }] of this.#standIns) out[key] = value;
    if (out.config === undefined) out.model ??= DEFAULT_MODEL;
    return out;
  }

  /** The request as the kernel gets it. */
  get request(): Request {
    const { model, ...rest } = this.#stated;
    if (model === undefined) return rest as Request;
    const authored = typeof model === "string" ? this.#authored.get(model) : undefined;
    if (authored?.config !== undefined) return { config: authored.config, ...rest } as Request;
    return { model: authored?.model ?? model, ...rest } as Request;
  }

  set request(request: Request) {
    for (const key of KEYS) this.#assign(key, request[key]);
  }

  /** The state as a link carries it: keys and ids, such as `model=llama-3.1-8b&context=8192`. */
  get state(): string {
    const out = new URLSearchParams();
    for (const [key, value] of Object.entries(this.#stated)) if (value !== undefined) out.set(key, toText(value));
    return out.toString();
  }

  set state(state: string) {
    this.#read(state);
  }

  #read(state: string, linked?: boolean): void {
    const given = new URLSearchParams(state.replace(/^[#?]/, ""));
    this.#take(given, "", linked);
    // A key with a dot is another element's.
    for (const key of given.keys()) if (!key.includes(".") && !isKey(key)) report(`no key is called ${key}`);
  }

  /** What is locked is the author's, whatever a link says. */
  #take(given: URLSearchParams, prefix: string, linked?: boolean): void {
    for (const key of KEYS) {
      const text = given.get(prefix + key);
      if (text !== null && !(linked && this.#locked(key))) this.#assign(key, fromText(key, text));
    }
  }

  attributeChangedCallback(name: string, _old: string | null, text: string | null): void {
    if (this.#reflecting) return;
    if (isKey(name)) {
      this.#byReader.delete(name);
      if (text === null) delete this.#request[name];
      else this.#request[name] = fromText(name, text);
    }
    this.#queue();
  }

  /** What a reader may not change: keys separated by spaces, or `all`. */
  get lock(): string | null {
    return this.getAttribute("lock");
  }

  set lock(keys: string | null) {
    mark(this, "lock", keys);
  }

  /** Models of the page's author, beside those in child scripts: one or a list, as runs of layers or a config. */
  get models(): unknown {
    return this.#given;
  }

  set models(models: unknown) {
    this.#given = models;
    this.#readModels();
  }

  /** Whether a page's author gave models; the second script reads them. */
  #readModels(): void {
    if (!this.#given && !this.#authored.size && !this.querySelector(":scope > script")) return;
    this.#reading = loadMore().then((more) => {
      this.#authored = new Map(more.authored(this, this.#given).map((one) => [one.id, one]));
      if (this.#built) this.#offer();
      this.#queue();
    }, this.#lack);
  }

  static {
    for (const key of KEYS) {
      Object.defineProperty(KvCapacity.prototype, key, {
        configurable: true,
        enumerable: true,
        get(this: KvCapacity) {
          return this.#request[key];
        },
        set(this: KvCapacity, value: unknown) {
          // Frameworks set a tag's attributes as properties where there is one.
          this.#assign(key, typeof value === "string" ? fromText(key, value) : value);
        },
      });
    }
  }

  #assign(key: Key, value: unknown): void {
    this.#byReader.delete(key);
    if (value === undefined || value === null) delete this.#request[key];
    else this.#request[key] = value;
    this.#reflect(key);
    this.#queue();
  }

  #reflect(key: Key): void {
    const value = this.#request[key];
    this.#reflecting = true;
    if (value === undefined) this.removeAttribute(key);
    else if (typeof value !== "object") mark(this, key, toText(value));
    this.#reflecting = false;
  }

  // ---- life ----------------------------------------------------------------------------------------------------------

  connectedCallback(): void {
    if (!this.#root) return;
    // Properties that were set before the tag was known stand on the instance itself and hide the accessors.
    for (const key of [...KEYS, "models", "request", "state"]) {
      if (!Object.hasOwn(this, key)) continue;
      const self = this as unknown as Record<string, unknown>;
      const value = self[key];
      delete self[key];
      self[key] = value;
    }
    const words = speakAs(this, "", this.#speak);
    if (!this.#built) this.#speak(speechFor("en"));
    adopt(this.#root, base, css, ...this.#furtherStyles);
    this.#readModels();
    if (document.readyState === "loading") {
      // What stands inside the tag is yet to come.
      document.addEventListener("DOMContentLoaded", () => this.#readModels());
    }
    this.#readLink();
    if (this.#kernel) this.#queue();
    else
      loadKernel()
        .finally(() => words)
        .then(this.#start, this.#fail);
  }

  disconnectedCallback(): void {
    turns.delete(this);
  }

  /** Builds the calculator, anew where the language around it has changed. */
  #speak = (speech: Speech): void => {
    if (this.#built && speech === this.#speech) return;
    this.#speech = speech;
    this.#build(this.#root as ShadowRoot);
    this.#queue();
    if (this.#woe) this.#fail(this.#woe);
  };

  /** A document has its own style sheets. */
  adoptedCallback(): void {
    if (this.#root && this.#built) adopt(this.#root, base, css, ...this.#furtherStyles);
  }

  #start = async (kernel: Kernel): Promise<void> => {
    if (this.#kernel) return;
    this.#kernel = kernel;
    await this.#reading;
    await this.#update();
    this.#base.className = "kv";
    // What else there is can wait for a frame with the words and figures; its place is kept. On paper there is no later.
    setTimeout(this.#complete);
    addEventListener("beforeprint", this.#complete);
  };

  /** Draws what the first answer left out. */
  #complete = (): void => {
    removeEventListener("beforeprint", this.#complete);
    try {
      if (!this.#whole) {
        this.#catalogue ??= (this.#kernel as Kernel).catalogue();
        this.#offer();
        this.#draw(true);
      }
      this.#announceReady();
    } catch (error) {
      this.#fail(error);
    }
  };

  #fail = (error: unknown): void => {
    this.#woe = error;
    const trouble = error instanceof KernelError ? error.trouble : "failed";
    const detail = error instanceof Error ? error.message : String(error);
    sayRich(this.#trouble, this.#speech.stretches(`trouble.${trouble}`, { detail }));
    this.#base.className = "kv failed";
    announce(this.#trouble.textContent ?? "");
  };

  #readLink(): void {
    const { hash } = location;
    if (!hash) return;
    if (this.hasAttribute("link")) this.#read(hash, true);
    if (!this.#kernel) this.#take(new URLSearchParams(hash.slice(1)), `${this.id || this.localName}.`, true);
  }

  #writeLink(): void {
    try {
      history.replaceState(history.state, "", `#${this.state}`);
    } catch {
      // A sandboxed frame may not; the state is then not kept.
    }
  }

  // ---- asking ----------------------------------------------------------------------------------------------------------

  /** One update for any number of attributes and properties set together. */
  #queue(): void {
    if (this.#queued || !this.#kernel) return;
    this.#queued = true;
    queueMicrotask(() => {
      this.#queued = false;
      // What stood in stands in no more, unless it has to anew.
      this.#standIns.clear();
      this.#update();
    });
  }

  /**
   * Asks and shows. A promise when the answer takes a kernel or a part of the page that is still to come. Where what the
   * page gave is refused, the second script lets defaults stand in for it.
   */
  #update(settled = true, byReader = false): Promise<void> | undefined {
    if (!this.#kernel) return undefined;
    const failed = this.#failure;
    const answer = this.#kernel.plan(this.request);
    if (refused(answer)) {
      const { field } = answer.error;
      if (field === "model" && document.readyState === "loading") {
        // Its author may still name the model, further down in the page.
        return new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve))
          .then(() => this.#reading)
          .then(() => this.#update(settled));
      }
      if (!this.#attached && !this.#lacking && !(byReader && this.#speech.has(`error.${field}`))) {
        return this.#more().then(() => this.#update(settled, byReader), this.#lack);
      }
      if (!byReader && !this.#byReader.has(keyOf(answer.error)) && this.#attached?.standIn(answer.error)) {
        return this.#update(settled);
      }
      this.#failure = answer.error;
      // What was half typed, and by chance accepted, is no answer to go back to; and the page may be built anew.
      this.#plan = this.#settled;
    } else {
      this.#failure = null;
      this.#plan = answer;
      // Where others have brought the full kernel, an engine may be asked before this calculator has parts for it.
      if (answer.engine !== "textbook" && !this.#attached && !this.#lacking) this.#more().catch(this.#lack);
      if (settled) this.#settled = answer;
    }
    if (this.#catalogue) this.#draw(settled || failed || this.#failure);
    else for (const draw of this.#worded) draw();
    return undefined;
  }

  /** Draws an answer or a refusal; while a hand drags, each part in a frame that has room for it. */
  #draw(now: unknown): void {
    this.#whole = true;
    if (now) {
      this.#showProblem();
      this.#showControls();
    }
    [...this.#parts, ...(this.#attached?.parts ?? []), this.#shown].forEach((draw, i) => {
      if (now) draw();
      else soon(draw, !i);
    });
  }

  /** A reader changed something; `settled` once the hand is off. */
  #changed(key: Key, value: unknown, settled: boolean): void {
    // A model that is chosen takes the place of one that was brought along.
    const besides = key === "model" ? { config: undefined } : key === "gpus" ? { tensor_parallel: undefined } : {};
    this.#change({ ...besides, [key]: value }, settled);
  }

  #change(changes: Record<string, unknown>, settled: boolean): void {
    // What was on its way is told before what has become of it.
    if (settled) this.#ask();
    for (const [key, value] of Object.entries(changes)) {
      this.#byReader.add(key);
      this.#standIns.delete(key);
      if (value === undefined) delete this.#request[key];
      else this.#request[key] = value;
    }
    if (settled || this.#failure) this.#answer(settled, Object.keys(changes));
    else {
      this.#asking = true;
      soon(this.#ask, true);
    }
  }

  /** Answers what a hand has reached on its way. */
  readonly #ask = (): void => {
    if (this.#asking) this.#answer(false);
  };

  #answer(settled: boolean, keys: string[] = []): void {
    this.#asking = false;
    const tell = () => {
      if (settled) {
        if (!this.#failure) for (const key of keys) this.#reflect(key as Key);
        announce((this.#failure ? this.#problem : this.#sentence).textContent ?? "");
        if (this.hasAttribute("link") && !this.#failure) this.#writeLink();
      }
      const detail: CapacityDetail = {
        request: this.request,
        plan: this.#failure ? null : this.#plan,
        error: this.#failure,
      };
      this.dispatchEvent(
        new CustomEvent(settled ? "kv-change" : "kv-input", { bubbles: true, composed: true, detail }),
      );
    };
    const later = this.#update(settled, true);
    if (later) later.then(tell);
    else tell();
  }

  // ---- the second script ---------------------------------------------------------------------------------------------

  /** Loads the second script and attaches its parts, once. */
  #more(): Promise<Attached> {
    const words = loadWords(languageOf(this), "-more");
    this.#further ??= Promise.all([loadMore(), loadFullKernel(), words]).then(([more, kernel]) => {
      this.#kernel = kernel;
      this.#catalogue = kernel.catalogue();
      this.#lacking = false;
      this.#offer();
      this.#showControls();
      this.#showDials();
      this.#attached = more.attach(this.#host());
      for (const draw of this.#attached.parts) draw();
      return this.#attached;
    });
    this.#further.catch(() => {
      this.#further = null;
    });
    return this.#further;
  }

  /** The second script did not come: the answer is then the first kernel's refusal. */
  #lack = (error: unknown): void => {
    this.#lacking = true;
    console.warn(`kv-capacity: ${error}`);
    this.#update();
    if (!this.#failure) say(this.#problem, this.#speech.text("more-missing"));
  };

  #host(): Host {
    const self = this;
    return {
      element: this,
      root: this.#root as ShadowRoot,
      speech: this.#speech,
      get kernel() {
        return self.#kernel as Kernel;
      },
      get catalogue() {
        return self.#catalogue as Catalogue;
      },
      get request() {
        return self.#stated;
      },
      given: (key) => (this.#byReader.has(key) ? undefined : this.#request[key]),
      standIns: this.#standIns,
      get plan() {
        return self.#plan;
      },
      get error() {
        return self.#failure;
      },
      panels: this.#panels,
      reserved: this.#reserved,
      modelSelect: this.#selects.model,
      change: (changes) => this.#change(changes, true),
      locked: (key) => this.#locked(key),
      open: (panel) => this.#open(panel),
      addEnglish,
      announce,
      addStyles: (text) => {
        if (this.#furtherStyles.includes(text)) return;
        this.#furtherStyles.push(text);
        adopt(this.#root as ShadowRoot, base, css, ...this.#furtherStyles);
      },
    };
  }

  #open(name: keyof Panels): void {
    const panel = this.#panels[name].parentElement as HTMLDetailsElement;
    panel.open = true;
    panel.querySelector("summary")?.focus();
    panel.scrollIntoView({ block: "nearest" });
  }

  #panel(name: keyof Panels): HTMLElement {
    const inside = h("div", { class: "inside" });
    const panel = h(
      "details",
      { class: `panel ${name}` },
      h("summary", {}, h("span", {}, this.#speech.text(`panel.${name}`))),
      inside,
    );
    panel.addEventListener("toggle", () => {
      if (!panel.open || this.#attached) return;
      say(inside, this.#speech.text("more-coming"));
      this.#more().catch(() => say(inside, this.#speech.text("more-missing")));
    });
    this.#panels[name] = inside;
    return panel;
  }

  #locked(key: string): boolean {
    const lock = this.getAttribute("lock");
    if (lock === null) return false;
    const keys = lock.trim().split(/[\s,]+/);
    return keys.includes("") || keys.includes("all") || keys.includes(key);
  }

  // ---- building ----------------------------------------------------------------------------------------------------------

  #build(root: ShadowRoot): void {
    const word = (key: string, values?: Values) => this.#speech.text(key, values);

    const select = (key: "model" | "weights" | "kv" | "gpu") => {
      const control = h("select", { id: key, part: "control", autocomplete: "off", "aria-describedby": "problem" });
      control.addEventListener("change", () => {
        const { value } = control;
        if (value !== OWN && value !== MORE) return this.#changed(key, this.#chosen(key), true);
        this.#showControls();
        if (value === OWN) return this.#open("own");
        this.#more().then((attached) => (key === "model" ? attached.search() : control.focus()), this.#lack);
      });
      return control;
    };
    const field = (key: string, control: Node, ...beside: Node[]) =>
      h(
        "div",
        { class: `field ${key}-field` },
        h("label", { for: key, id: `${key}-label`, part: "label" }, word(key), ...beside),
        control,
      );

    const dial = (key: "gpus" | "context"): Dial => {
      const range = h("input", {
        type: "range",
        id: key,
        part: "slider",
        value: "0",
        autocomplete: "off",
        "aria-label": word(key),
      });
      const exact = h("input", {
        type: "text",
        inputmode: "numeric",
        part: "control",
        class: "exact",
        autocomplete: "off",
        spellcheck: "false",
        "aria-label": word("exact", { label: word(key) }),
        "aria-describedby": "problem",
      });
      const slid = () => (key === "gpus" ? range.valueAsNumber : (this.#stops[range.valueAsNumber] ?? 1));
      range.addEventListener("input", () => this.#changed(key, slid(), false));
      range.addEventListener("change", () => this.#changed(key, slid(), true));
      exact.addEventListener("input", () => this.#changed(key, this.#speech.parse(exact.value), false));
      exact.addEventListener("change", () => this.#changed(key, this.#speech.parse(exact.value), true));
      exact.addEventListener("blur", () => this.#showDials());
      return { range, exact, beside: h("span") };
    };

    const search = h(
      "button",
      { type: "button", class: "plain search", part: "search", "aria-label": word("search-models") },
      word("search"),
    );
    search.addEventListener("click", () => {
      this.#more().then((attached) => attached.search(), this.#lack);
    });
    this.#selects = { model: select("model"), weights: select("weights"), kv: select("kv"), gpu: select("gpu") };
    this.#gpus = dial("gpus");
    this.#gpus.range.min = "1";
    this.#gpus.range.max = String(MOST_GPUS_ON_SLIDER);
    this.#context = dial("context");
    const pair = (of: Dial) => h("div", { class: "pair" }, of.range, of.exact);
    this.#problem = h("p", { class: "problem", id: "problem", part: "problem" });

    const figure = (key: string, name: string): [Figure, Node] => {
      const value = h("b");
      const unit = h("i");
      const small = h("span", { class: "small" });
      const box = h("span", { class: "value", part: "value" }, value, unit);
      return [
        { value, unit, small, box },
        h("div", { class: `figure ${key}`, part: "figure" }, h("dt", {}, word(name)), h("dd", {}, box, small)),
      ];
    };
    const [token, tokenNode] = figure("token", "per-token");
    const [sequence, sequenceNode] = figure("sequence", "per-sequence");
    const [room, roomNode] = figure("room", "room");
    const [count, countNode] = figure("count", "count");
    this.#figures = { token, sequence, room, count };

    this.#bar = h("div", { class: "bar", part: "bar", "aria-hidden": "true" });
    new ResizeObserver(([entry]) => {
      this.#barWidth = entry?.contentRect.width ?? 0;
      this.#showCuts();
    }).observe(this.#bar);
    this.#legend = h("ul", { class: "legend", part: "legend", role: "list", "aria-label": word("memory") });
    this.#sentence = h("p", { class: "sentence", part: "sentence" });
    this.#steps = h("ol", { class: "steps", role: "list" });
    this.#details = h(
      "details",
      { part: "arithmetic" },
      h("summary", {}, h("span", {}, word("arithmetic"))),
      this.#steps,
    );
    // The derivation is written when somebody looks at it.
    this.#details.addEventListener("toggle", () => this.#plan && this.#showSteps(this.#plan));
    this.#notes = h("ul", { class: "notes", part: "notes", role: "list" });
    this.#reserved = h("div", { class: "reserved" });
    this.#panels = {} as Panels;
    this.#result = h(
      "div",
      {},
      h("dl", { class: "figures", part: "figures" }, tokenNode, sequenceNode, roomNode, countNode),
      this.#bar,
      this.#legend,
      this.#sentence,
      this.#reserved,
      this.#panel("wish"),
      this.#details,
      this.#notes,
    );
    const modelField = field("model", this.#selects.model);
    modelField.append(search);
    this.#trouble = h("p", { class: "trouble", part: "problem" });
    this.#base = h(
      "div",
      { class: this.#plan || this.#failure ? "kv" : "kv waiting" },
      h("div", { class: "example" }, h("slot")),
      this.#trouble,
      h(
        "div",
        { class: "body" },
        h(
          "div",
          { class: "controls", role: "group", "aria-label": word("controls") },
          modelField,
          field("weights", this.#selects.weights),
          field("kv", this.#selects.kv),
          field("gpu", this.#selects.gpu),
          field("gpus", pair(this.#gpus), this.#gpus.beside),
          field("context", pair(this.#context), this.#context.beside),
        ),
        this.#problem,
        this.#result,
        ...PANELS.map((name) => this.#panel(name)),
      ),
    );
    mark(this.#base, "lang", this.#speech.language);
    mark(this.#base, "dir", this.#speech.direction);
    root.replaceChildren(this.#base);
    this.#built = true;
    if (this.#catalogue) this.#offer();
    if (this.#attached) {
      // Other words: the parts are made anew.
      this.#attached = null;
      this.#further = null;
      this.#more();
    }
  }

  // ---- choices ----------------------------------------------------------------------------------------------------------

  /** Fills the selectors from the catalogue. */
  #offer(): void {
    const catalogue = this.#catalogue;
    if (!catalogue) return;
    const grouped = <T>(items: T[], group: (item: T) => string, option: (item: T) => HTMLOptionElement) => {
      const out: HTMLElement[] = [];
      const groups = new Map<string, HTMLElement>();
      for (const item of items) {
        const name = group(item);
        let into = groups.get(name);
        if (!into && name !== "") {
          into = h("optgroup", { label: name });
          groups.set(name, into);
          out.push(into);
        }
        if (into) into.append(option(item));
        else out.push(option(item));
      }
      return out;
    };
    // Only the whole kernel knows more engines than the textbook's, and more models and GPUs than a course's.
    const more = (key: string) =>
      catalogue.engines.length > 1 ? [] : [h("option", { value: MORE }, this.#speech.text(key))];
    const { model, weights, kv, gpu } = this.#selects;
    const authored = [...this.#authored.values()].map(({ id, name }) => ({
      id,
      name,
      family: this.#speech.text("authored"),
    }));
    model.replaceChildren(
      ...grouped(
        [...authored, ...catalogue.models.filter((one) => !this.#authored.has(one.id))],
        (one) => one.family,
        (one) => h("option", { value: one.id }, one.name),
      ),
      ...more("more-models"),
      h("option", { value: OWN }, this.#speech.text("own-model-choice")),
    );
    gpu.replaceChildren(
      ...grouped(
        catalogue.gpus,
        (one) => one.vendor,
        (one) => h("option", { value: one.id }, one.name),
      ),
      ...more("more-gpus"),
    );
    const formats = (fits: (one: Catalogue["formats"][number]) => boolean) =>
      catalogue.formats.filter(fits).map((one) => h("option", { value: one.id }, this.#formatName(one.id)));
    weights.replaceChildren(...formats((one) => one.weights));
    kv.replaceChildren(...formats((one) => one.cache && !one.latent_only));
  }

  #formatName(id: string): string {
    const format = this.#catalogue?.formats.find((one) => one.id === id);
    return format ? this.#speech.text("format", { bits: format.bits, id }) : id;
  }

  /** What a selector says, as the request takes it. The model's own weight format is the same as saying nothing. */
  #chosen(key: "model" | "weights" | "kv" | "gpu"): unknown {
    const { value } = this.#selects[key];
    if (key === "weights" && value === this.#plan?.model.native_weights) return undefined;
    return value;
  }

  /** Shows a value in a selector, if need be as a choice of its own. */
  #select(key: "model" | "weights" | "kv" | "gpu", value: string, label: string): void {
    const control = this.#selects[key];
    if (value && control.value === value) return;
    const own = control.querySelector<HTMLOptionElement>("option[data-own]");
    if (own && (own.value !== value || own.text !== label)) own.remove();
    control.value = value;
    // Of a selector without a choice the value is "" too.
    if (control.value === value && control.selectedIndex >= 0) return;
    const option = h("option", { value, "data-own": "" }, label);
    control.prepend(option);
    control.value = value;
  }

  /** The controls as the request has them, which may be what was refused. */
  #showControls(): void {
    const plan = this.#plan;
    const asked = this.request;
    const bad = this.#failure ? keyOf(this.#failure) : undefined;

    const model = this.#stated.model;
    if (typeof model === "string") {
      const known =
        this.#authored.get(model) ??
        this.#catalogue?.models.find((one) => one.id === model || one.hub_id.toLowerCase() === model.toLowerCase());
      this.#select("model", known?.id ?? model, model);
    } else {
      this.#select("model", "", (model?.name || plan?.model.name) ?? this.#speech.text("own-model"));
    }
    const weights = typeof asked.weights === "string" ? asked.weights : plan?.weights;
    if (weights) this.#select("weights", weights, this.#formatName(weights));
    const kv = asked.kv ?? "bf16";
    if (typeof kv === "string") this.#select("kv", kv, this.#formatName(kv));
    else if (typeof kv === "object") {
      const [k, v] = [this.#formatName(kv.k), this.#formatName(kv.v)];
      if (kv.k === kv.v) this.#select("kv", kv.k, k);
      else this.#select("kv", `${kv.k}/${kv.v}`, this.#speech.text("formats", { k, v }));
    }
    const gpu = asked.gpu ?? DEFAULT_GPU;
    if (typeof gpu === "string") this.#select("gpu", gpu, gpu);
    else this.#select("gpu", "", plan && !this.#failure ? this.#size("gpu_memory_bytes", plan) : "");

    if (plan) {
      this.#beside(this.#gpus, this.#speech.text("each", { size: this.#size("gpu_memory_bytes", plan) }));
    }

    for (const [key, controls] of Object.entries({
      ...this.#selects,
      gpus: [this.#gpus.range, this.#gpus.exact],
      context: [this.#context.range, this.#context.exact],
    })) {
      for (const control of [controls].flat()) {
        control.disabled = this.#locked(key);
        if (control.type !== "range") mark(control, "aria-invalid", bad === key ? "true" : null);
      }
    }
  }

  #beside(dial: Dial, text: string): void {
    say(dial.beside, text === "" ? "" : this.#speech.text("beside", { label: "" }) + text);
  }

  #showDials(): void {
    const { context, gpus } = this.request;
    const bad = this.#failure ? keyOf(this.#failure) : undefined;
    this.#showDial("gpus", this.#gpus, gpus ?? this.#plan?.deployment.gpus ?? 1, bad);
    this.#showDial("context", this.#context, context ?? 8192, bad);
  }

  #showDial(key: "gpus" | "context", dial: Dial, value: unknown, bad: string | undefined): void {
    const speech = this.#speech;
    const { range, exact } = dial;
    const focused = this.#root?.activeElement === exact;
    let count = typeof value === "number" ? value : Number.NaN;
    const wrong = bad === key || !Number.isFinite(count);
    if (wrong) {
      // What was typed stays; a value from elsewhere is shown as it came. The handle is where the last answer is.
      if (!focused && speech.parse(exact.value) !== value) exact.value = String(value);
      count = (key === "context" ? this.#plan?.context : this.#plan?.deployment.gpus) ?? 1;
    } else if (!focused || speech.parse(exact.value) !== count) write(exact, speech.number(count, 9));
    let position = count;
    if (key === "context") {
      const own = this.#plan?.model.max_context ?? 131072;
      const last = this.#stops.at(-1) ?? 0;
      // A context past the model's own maximum stretches the slider, so that the handle tells the truth.
      this.#stops = stopsUpTo(count > own ? Math.max(count, last) : own);
      position = this.#stops.findLastIndex((stop) => stop <= count);
      const above = this.#stops[position + 1];
      if (above !== undefined && above - count < count - (this.#stops[position] ?? 0)) position++;
      range.max = String(this.#stops.length - 1);
    }
    write(range, String(Math.max(0, position)));
    const words = speech.text(key === "context" ? "tokens" : "gpu-count", { n: count });
    mark(range, "aria-valuetext", words);
    if (key === "context") this.#beside(dial, wrong ? "" : words);
  }

  // ---- answers ----------------------------------------------------------------------------------------------------------

  #size(name: string, plan: Answer): string {
    const reading = plan.readings[name];
    return reading ? this.#speech.reading(reading) : this.#speech.text("none");
  }

  #bytes(count: number | null): string | null {
    return count === null ? null : this.#speech.text("of.bytes", { v: this.#speech.number(count), n: count });
  }

  #part(show: (plan: Answer) => void): () => void {
    return () => {
      if (this.#plan) show.call(this, this.#plan);
    };
  }
  /** What an answer changes whose height hangs on its words, the figures first. */
  readonly #worded = [this.#showFigures, this.#showFactors, this.#showSentence, this.#showNotes].map(this.#part, this);
  /** All that an answer changes. */
  readonly #parts = [
    ...this.#worded.slice(0, 1),
    this.#part(this.#showMemory),
    ...this.#worded.slice(1),
    this.#part(this.#showSteps),
    () => this.#showDials(),
  ];
  readonly #shown = (): void => {
    this.dispatchEvent(new Event("kv-shown"));
  };

  #showProblem(): void {
    const error = this.#failure;
    let text = "";
    if (error) {
      const key = `error.${error.field}`;
      const max = (this.#catalogue?.limits as Record<string, number> | undefined)?.[`max_${error.field}`] ?? "";
      text =
        this.#attached?.why(error, this.#request[keyOf(error)]) ??
        this.#speech.text(this.#speech.has(key) ? key : "more-missing", { max });
    }
    say(this.#problem, text);
    // Figures of another question are no answer to this one.
    this.#result.inert = this.#result.classList.toggle("stale", text !== "");
  }

  #showFigures(plan: Answer): void {
    const speech = this.#speech;
    const { token, sequence, room, count } = this.#figures;
    const put = (figure: Figure, name: string, bytes: number | null) => {
      const reading = bytes === null ? undefined : plan.readings[name];
      say(figure.value, reading ? speech.digits(reading) : speech.text("none"));
      say(figure.unit, reading ? speech.unit(reading) : "");
      mark(figure.box, "title", this.#bytes(bytes));
    };
    put(token, "kv_bytes_per_token", plan.kv_bytes_per_token);
    put(sequence, "kv_bytes_per_sequence", plan.kv_bytes_per_sequence);
    put(room, "kv_memory_bytes", plan.limit === "weights_do_not_fit" ? null : plan.kv_memory_bytes);
    const { sequences } = plan;
    say(count.value, sequences === null ? speech.text("none") : speech.number(sequences));
    count.box.classList.toggle("short", sequences === 0);
  }

  /** Of what each figure is made. */
  #showFactors(plan: Answer): void {
    const speech = this.#speech;
    const { token, sequence, room, count } = this.#figures;
    // Which layers grow, and with how many heads, is what the kernel multiplied.
    const factors = plan.derivation.filter((step) => step.name === "kv_bytes_per_token").flatMap((step) => step.terms);
    const of = (name: string) => factors.filter((term) => term.of === name).map((term) => term.value);
    const growing = of("layers").reduce((sum, count) => sum + count, 0);
    const heads = new Set(of("kv_heads"));
    const [shared] = heads;
    const { layer_count: layers } = plan.model;
    sayRich(
      token.small,
      growing === layers
        ? speech.stretches(heads.size === 1 ? "heads-layers" : "layers", { n: shared ?? layers, layers })
        : speech.stretches("growing-layers", { n: growing, layers }),
    );
    sayRich(
      sequence.small,
      speech.stretches(plan.kv_fixed_bytes === 0 ? "tokens" : "tokens-fixed", {
        n: plan.context,
        fixed: this.#size("kv_fixed_bytes", plan),
      }),
    );
    sayRich(
      room.small,
      plan.weight_bytes === null
        ? speech.stretches("weights-unknown")
        : speech.stretches("weights-of", { size: this.#size("weight_bytes", plan) }),
    );
    const why = { weights_do_not_fit: "count-weights", one_sequence_too_long: "count-long", cache: "conversations" };
    say(
      count.small,
      plan.limit === null
        ? speech.text("weights-unknown")
        : plan.sequences_range
          ? speech.text("conversations-range", { low: plan.sequences_range[0], n: plan.sequences_range[1] })
          : speech.text(why[plan.limit], { n: plan.sequences ?? 0 }),
    );
  }

  #showMemory(plan: Answer): void {
    const speech = this.#speech;
    const memory = plan.memory;
    const segments = memory?.segments ?? [];
    const kinds = segments.map((one) => one.kind);
    const short = memory !== null && memory.total_share < 1;
    if (short) kinds.push("missing");
    const drawn = [...this.#legend.children].map((item) => (item as HTMLElement).dataset.kind);
    if (kinds.join() !== drawn.join()) {
      const cuts = this.#drawnCuts();
      this.#bar.replaceChildren(
        ...segments.map((one) =>
          h(
            "div",
            { class: `segment ${one.kind}`, part: `segment ${one.kind}` },
            ...(one.kind === "cache" ? [cuts] : []),
          ),
        ),
        ...(short ? [h("div", { class: "end" })] : []),
      );
      this.#legend.replaceChildren(
        ...kinds.map((kind) =>
          h(
            "li",
            { "data-kind": kind },
            h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }),
            h("span"),
            h("strong"),
          ),
        ),
      );
    }
    const reserve = plan.engine === "textbook" ? this.#reserve() : null;
    segments.forEach((segment, i) => {
      const block = this.#bar.children[i] as HTMLElement;
      block.style.inlineSize = `${segment.share * 100}%`;
      const values: Values = { n: plan.sequences ?? 0, percent: reserve === null ? "" : speech.percent(reserve) };
      const kind = segment.kind === "reserve" && reserve === null ? "outside" : segment.kind;
      this.#showLegend(i, `seg.${kind}`, values, segment.reading, segment.bytes);
    });
    this.#showCuts();
    if (short && memory) {
      (this.#bar.lastElementChild as HTMLElement).style.insetInlineStart = `${memory.total_share * 100}%`;
      this.#showLegend(segments.length, "seg.missing", {}, memory.total_reading, memory.total_bytes);
    }
  }

  /** The picture of the cuts, empty, in a bar that may be new. */
  #drawnCuts(): Element {
    const picture = document.createElementNS(SVG, "svg");
    mark(picture, "viewBox", `0 0 ${CUTS_WIDTH} 1`);
    mark(picture, "preserveAspectRatio", "none");
    this.#cuts = document.createElementNS(SVG, "path");
    mark(this.#cuts, "vector-effect", "non-scaling-stroke");
    picture.append(this.#cuts);
    return picture;
  }

  /** Cuts the cache into the conversations that fit, as long as they are wide enough to be seen. */
  #showCuts(): void {
    const memory = this.#plan?.memory;
    const count = this.#plan?.sequences ?? 0;
    const wide = (memory?.sequence_share ?? 0) * this.#barWidth >= THINNEST_CONVERSATION;
    let path = "";
    for (let i = 1; wide && i < count; i++) path += `M${((CUTS_WIDTH * i) / count).toFixed(2)} 0v1`;
    if (this.#cuts) mark(this.#cuts, "d", path);
  }

  #showLegend(index: number, key: string, values: Values, reading: Answer["readings"][string], bytes: number): void {
    const [, name, size] = this.#legend.children[index]?.children ?? [];
    if (!name || !size) return;
    say(name, this.#speech.text(key, values));
    say(size, this.#speech.reading(reading, "three"));
    mark(size, "title", this.#bytes(bytes));
  }

  /** The share that the textbook keeps free. */
  #reserve(): number | null {
    const asked = this.request.options?.reserve;
    if (typeof asked === "number") return asked;
    const option = this.#catalogue?.engines
      .find((one) => one.id === "textbook")
      ?.options.find((one) => one.name === "reserve");
    return typeof option?.fallback === "number" ? option.fallback : null;
  }

  #showSentence(plan: Answer): void {
    const { remedy } = plan;
    const values: Values = {
      weights: this.#size("weight_bytes", plan),
      room: this.#size("kv_memory_bytes", plan),
      sequence: this.#size("kv_bytes_per_sequence", plan),
      usable: this.#size("usable_memory_bytes", plan),
      total: this.#size("total_memory_bytes", plan),
      context: plan.context,
      n: plan.sequences ?? 0,
      gpus: remedy.gpus_for_weights ?? 0,
      longest: remedy.longest_context ?? 0,
      reserved: this.#size("kv_reserved_per_sequence", plan),
      fixed: this.#size("kv_fixed_bytes", plan),
      token: this.#size("kv_bytes_per_token", plan),
    };
    const engine = plan.engine === "textbook" ? "" : "-engine";
    const keys: string[] = [];
    switch (plan.limit) {
      case "cache":
        keys.push(`fits${engine}`);
        if (plan.kv_fixed_bytes !== 0) keys.push("fixed-part");
        // What is set aside for windows and states hangs on other things than the context; and half of one is none.
        if (plan.decides === "weights" || (plan.sequences !== 1 && !plan.gaps.length))
          keys.push(`decides.${plan.decides}`);
        break;
      case "weights_do_not_fit":
        keys.push(`no-weights${engine}`);
        if (remedy.gpus_for_weights !== null) keys.push("no-weights-gpus");
        break;
      case "one_sequence_too_long":
        keys.push(`too-long${engine}`, remedy.longest_context === null ? "too-long-never" : "too-long-remedy");
        break;
      default:
        keys.push("unknown-weights");
    }
    sayRich(
      this.#sentence,
      keys.flatMap((key, i) => [
        ...(i > 0 ? this.#speech.stretches("gap") : []),
        ...this.#speech.stretches(key, values),
      ]),
    );
  }

  #showSteps(plan: Answer): void {
    if (this.#details.open) {
      this.#steps.replaceChildren(...plan.derivation.map((step) => stepItem(this.#speech, step)));
    }
  }

  #showNotes(plan: Answer): void {
    const speech = this.#speech;
    const notes = plan.notes
      .filter((note) => speech.has(`note.${note.code}`))
      .map((note) => {
        const values: Values = {};
        for (const [name, text] of Object.entries(note.values))
          values[name] = numeral(text) === undefined ? text : Number(text);
        return speech.text(`note.${note.code}`, values);
      });
    const before = plan.slope_changes.findLast((at) => at <= plan.context);
    const after = plan.slope_changes.find((at) => at > plan.context);
    if (before !== undefined) {
      notes.unshift(speech.text("slope-before", { n: before, token: this.#size("kv_bytes_per_token", plan) }));
    }
    if (after !== undefined) notes.unshift(speech.text("slope-after", { n: after }));
    if (notes.join() === [...this.#notes.children].map((item) => item.textContent).join()) return;
    this.#notes.replaceChildren(...notes.map((note) => h("li", {}, note)));
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "kv-capacity": KvCapacity;
  }
  interface HTMLElementEventMap {
    /** An answer is shown; not only a reader's. Does not bubble. */
    "kv-shown": Event;
    "kv-input": CapacityEvent;
    "kv-change": CapacityEvent;
  }
}
