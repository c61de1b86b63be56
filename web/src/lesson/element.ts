/**
 * What the lesson's elements share. An element's attributes are its state: the request's keys, its own few, `for` (the id
 * of a <kv-capacity> that it follows) and `lang`. A subclass names its own keys, builds its nodes once and shows the
 * state as often as it changes.
 */
import type { Answer, Catalogue, Failure, Kernel, Request } from "../contract.js";
import type { CapacityDetail, KvCapacity } from "../kv-capacity.js";
import { h, mark, report, say, sayRich } from "../nodes.js";
import { blamed, insteadOf, usedFor } from "../refusal.js";
import type { Speech, Values } from "../words.js";
import { kit, part } from "./kit.js";
import css from "./lesson.css";
import { MORE } from "./parts.js";

const DEFAULT_MODEL = "llama-3.1-8b";
/** How long a link is said to be copied, in milliseconds. */
const COPIED = 2000;

/** What a refused question is asked as instead, and what of it the page gave wrongly. */
export interface Mended {
  question: Request;
  key: string;
  value: unknown;
  used?: string | number | undefined;
}

type Refusal = Failure["error"];
/** By key. */
type Wrong = Map<string, Mended & { error: Refusal }>;

export type RequestKey = (typeof kit.KEYS)[number];

/** The attributes of an element: a request's keys and its own, which are its state, and those that are not. */
export const attributes = (...own: string[]): string[] => [...own, ...kit.KEYS, "for"];

/** Tells elements when they come near the view and when they leave. */
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) (target as LessonElement).sight(isIntersecting);
  },
  { rootMargin: "50%" },
);

/** On paper nothing can be opened or pressed, so what says more stands there open, and tables are filled. */
addEventListener("beforeprint", () => {
  for (const table of document.querySelectorAll("kv-capacity-table")) table.run?.();
  for (const { shadowRoot } of document.querySelectorAll("kv-capacity, kv-curve")) {
    for (const part of shadowRoot?.querySelectorAll<HTMLDetailsElement>("details:not(.panel)") ?? []) {
      part.open = true;
      // Its own comes only after the page is on paper.
      part.dispatchEvent(new Event("toggle"));
    }
  }
});

export abstract class LessonElement extends HTMLElement {
  /** Its own styles, beside those that all share. */
  static readonly css: string = "";

  protected speech!: Speech;
  protected kernel!: Kernel;
  protected readonly root: ShadowRoot = this.attachShadow({ mode: "open" });

  #base: HTMLElement | null = null;
  #problem!: HTMLElement;
  readonly #complaints = new Set<string>();
  #trouble!: HTMLElement;
  #queued = false;
  #started = false;
  #full: Promise<unknown> | null = null;
  #lacking = false;
  #fetched = false;
  /** Why the element cannot start. */
  #woe: unknown;
  #linked: KvCapacity | null = null;
  /** Whether it is near the view, and whether its calculator has changed while it was not. */
  #near = true;
  #late = false;
  /** Whether the calculator's next answer is one that a reader asked for here. */
  #eager = false;
  #waiting: (() => void)[] = [];
  #announceReady!: () => void;

  /** Resolves once the first state is shown. */
  readonly ready: Promise<void> = new Promise((resolve) => {
    this.#announceReady = resolve;
  });

  /** The element's nodes; called once a language. */
  protected abstract build(): Node[];
  /** Shows the state as it stands; called after any change of it. */
  protected abstract show(): void;

  // ---- state ---------------------------------------------------------------------------------------------------------

  /** The calculator that `for` names, once it has answered. */
  protected get linked(): KvCapacity | null {
    return this.#linked?.plan ? this.#linked : null;
  }

  /** The request: what the linked calculator asks, and what the element's own attributes say over it. */
  get request(): Request {
    const linked = this.linked?.request;
    const request: Record<string, unknown> = { ...linked };
    for (const key of kit.KEYS) {
      const text = this.getAttribute(key);
      if (text !== null) request[key] = kit.fromText(key, text);
    }
    if (request.config === undefined) request.model ??= DEFAULT_MODEL;
    return request as Request;
  }

  /** The state as a link carries it, such as `model=llama-3.1-8b&step=3`. */
  get state(): string {
    const out = new URLSearchParams();
    for (const key of this.#keys) {
      const text = this.getAttribute(key);
      if (text !== null) out.set(key, text);
    }
    return out.toString();
  }

  set state(state: string) {
    const given = new URLSearchParams(state);
    for (const key of this.#keys) mark(this, key, given.get(key));
    for (const key of given.keys()) this.#reportUnknown(key);
  }

  /**
   * A reader changed the request: in the calculator that is followed, else here. `null` takes a key back. The promise is
   * kept once the change is shown.
   */
  protected put(changes: { [key in RequestKey]?: unknown }): Promise<void> {
    for (const [key, value] of Object.entries(changes)) {
      if (this.linked && !this.hasAttribute(key)) {
        (this.linked as unknown as Record<string, unknown>)[key] = value;
        this.#eager = true;
      } else {
        mark(this, key, value === null || value === undefined ? null : kit.toText(value));
        this.#queue();
      }
    }
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  /** Tells the page what a reader did: `kv-input` on the way, `kv-change` once it is done. */
  protected emit(type: "kv-input" | "kv-change", plan: Answer): void {
    const detail: CapacityDetail = { request: this.request, plan, error: null };
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, composed: true, detail }));
  }

  get #keys(): string[] {
    const { observedAttributes } = this.constructor as unknown as { observedAttributes: string[] };
    return observedAttributes.filter((key) => key !== "for");
  }

  #reportUnknown(key: string): void {
    if (key !== "" && !this.#keys.includes(key)) report(`no key is called ${key}`);
  }

  /** Of an attribute that holds a whole number; `fallback` where it holds none, which is then said. */
  protected whole(name: string, fallback: number): number {
    const text = this.getAttribute(name);
    if (text === null) return fallback;
    if (/^\s*\d{1,15}\s*$/.test(text)) return Number(text);
    this.complainOf(name, this.word("whole"), text, fallback);
    return fallback;
  }

  /** What goes before a key in a link, so that every element on a page has its own. */
  get #name(): string {
    return this.id || this.localName;
  }

  /** The page's address with the state of this element, and of the calculator that it follows. */
  get link(): string {
    const shared = this.linked ?? document.querySelector<KvCapacity>("kv-capacity[link]");
    const own = [...new URLSearchParams(this.state)].map(([key, text]) => [`${this.#name}.${key}`, text]);
    if (own.length === 0) own.push([`${this.#name}.`, ""]);
    const out = new URLSearchParams([...(shared ? new URLSearchParams(shared.state) : []), ...own]);
    return `${location.href.replace(/#.*/s, "")}#${out}`;
  }

  #readLink(): void {
    const prefix = `${this.#name}.`;
    const given = [...new URLSearchParams(location.hash.slice(1))].filter(([key]) => key.startsWith(prefix));
    if (given.length === 0) return;
    for (const [key, text] of given) {
      const own = key.slice(prefix.length);
      if (this.#keys.includes(own)) mark(this, own, text);
      else this.#reportUnknown(own);
    }
    // Whoever follows a link wants to see what it is about.
    this.ready.then(() => this.scrollIntoView({ block: "center" }));
  }

  // ---- life ----------------------------------------------------------------------------------------------------------

  connectedCallback(): void {
    if (!this.#started) this.#readLink();
    const words = kit.speakAs(this, part, this.#speak);
    if (!this.#base) this.#speak(kit.speechFor("en"));
    this.#follow();
    watcher.observe(this);
    if (this.#started) this.#queue();
    else
      kit
        .loadKernel()
        .finally(() => words)
        .then(this.#start, this.#fail);
  }

  disconnectedCallback(): void {
    this.#linked?.removeEventListener("kv-shown", this.#hear);
    this.#linked = null;
    watcher.unobserve(this);
    kit.turns.delete(this);
  }

  adoptedCallback(): void {
    this.#adopt();
  }

  attributeChangedCallback(name: string): void {
    if (!this.#base) return;
    if (name === "for") this.#follow();
    this.#queue();
  }

  #adopt(): void {
    kit.adopt(this.root, ...kit.styles, css, (this.constructor as typeof LessonElement).css);
  }

  #follow(): void {
    this.#linked?.removeEventListener("kv-shown", this.#hear);
    const id = this.getAttribute("for");
    const tag = id === null ? null : document.getElementById(id);
    this.#linked = tag?.localName === "kv-capacity" ? (tag as KvCapacity) : null;
    if (id !== null && !this.#linked) report(`there is no <kv-capacity id="${id}">`);
    this.#linked?.addEventListener("kv-shown", this.#hear);
  }

  /** Whoever drags the calculator's slider does not wait for what is out of sight, nor for what is drawn once a frame. */
  #hear = (): void => {
    if (this.#eager) {
      this.#eager = false;
      this.#queue();
      return;
    }
    if (this.#late) return;
    this.#late = true;
    if (this.#near) kit.soon(this.#catchUp);
  };

  #catchUp = (): void => {
    if (!this.#late || !this.#near) return;
    this.#late = false;
    if (this.#started) this.#show();
  };

  /** Called by the watcher of the view. */
  sight(near: boolean): void {
    this.#near = near;
    kit.soon(this.#catchUp);
  }

  /** Builds the element, anew where the language around it has changed. */
  #speak = (speech: Speech): void => {
    if (this.#base && speech === this.speech) return;
    this.speech = speech;
    this.#adopt();
    this.#problem = h("p", { class: "problem" });
    this.#trouble = h("p", { class: "trouble" });
    this.#base = h(
      "div",
      { class: this.#started ? "kv" : "kv waiting", lang: speech.language, dir: speech.direction },
      h("div", { class: "example" }, h("slot")),
      this.#trouble,
      h("div", { class: "body" }, ...this.build(), this.#problem, this.#copyButton()),
    );
    this.root.replaceChildren(this.#base);
    this.#queue();
    if (this.#woe) this.#fail(this.#woe);
  };

  #start = async (kernel: Kernel): Promise<void> => {
    // A calculator that is followed has the first word.
    if (this.#linked) await Promise.race([this.#linked.ready, new Promise((resolve) => setTimeout(resolve, 2000))]);
    if (this.#started) return;
    this.#started = true;
    this.kernel = kernel;
    this.#show();
  };

  #fail = (error: unknown): void => {
    this.#woe = error;
    const { trouble = "failed", message } = error as { trouble?: string; message?: string };
    sayRich(this.#trouble, this.speech.stretches(`trouble.${trouble}`, { detail: message ?? String(error) }));
    if (this.#base) this.#base.className = "kv failed";
    this.announce(this.#trouble.textContent ?? "");
  };

  /** One showing for any number of attributes that are set together. */
  #queue = (): void => {
    if (this.#queued || !this.#started) return;
    this.#queued = true;
    queueMicrotask(() => {
      this.#queued = false;
      this.#show();
    });
  };

  #show(): void {
    this.#complaints.clear();
    this.show();
    const complaint = [...this.#complaints].join(this.word("gap"));
    if (complaint && complaint !== this.#problem.textContent) this.announce(complaint);
    say(this.#problem, complaint);
    // An element that waits for the full kernel is shown when that has come.
    if (this.#full) return;
    if (this.#base) this.#base.className = "kv";
    this.#announceReady();
    for (const shown of this.#waiting.splice(0)) shown();
  }

  // ---- asking ----------------------------------------------------------------------------------------------------------

  protected get catalogue(): Catalogue {
    return this.kernel.catalogue();
  }

  /**
   * The kernel's answer. Null where there is none, which is then said, or where the full kernel is still to come: the
   * element is shown again once it is there. What an attribute gives wrongly is mended, which is said too.
   */
  protected ask(
    request: Request,
    mend: (error: Refusal, asked: Request, before: Wrong) => Mended | null = this.#mend,
  ): Answer | null {
    const wrong: Wrong = new Map();
    for (let asked = request; ; ) {
      const answer: Answer | Failure = this.kernel.plan(asked);
      if (!("error" in answer)) {
        for (const [key, { error, value, used = usedFor(key, answer) }] of wrong) {
          this.complain(insteadOf(this.speech, this.word("error.other", { ...error }), value, used));
        }
        return answer;
      }
      const { error } = answer;
      // The core kernel leaves it to the full one to say what is wrong.
      if (kit.needsFull(answer)) {
        this.#needFull();
        return null;
      }
      const mended = mend(error, asked, wrong);
      if (!mended || wrong.has(mended.key)) {
        this.complain(this.word("error.other", { ...error }));
        return null;
      }
      wrong.set(mended.key, { error, ...mended });
      asked = mended.question;
    }
  }

  /** Takes back what an attribute of this element gives: the calculator that it follows goes before the default. */
  #mend = (error: Refusal, asked: Request, before: Wrong): Mended | null => {
    const given = kit.KEYS.filter((key) => {
      const text = this.getAttribute(key);
      if (text === null || asked[key] === undefined || before.has(key)) return false;
      return kit.toText(asked[key]) === kit.toText(kit.fromText(key, text));
    });
    const key = blamed(error, given) as RequestKey | undefined;
    if (key === undefined) return null;
    const { [key]: value, ...others } = asked;
    const model = key === "model" ? { model: DEFAULT_MODEL } : {};
    const linked = this.linked?.request[key];
    return {
      question: { ...others, ...model, ...(linked === undefined ? {} : { [key]: linked }) } as Request,
      key,
      value,
    };
  };

  /**
   * What the full kernel answers, a refusal too. Null where it is still to come: the element is shown again once it is
   * there. What attributes give wrongly is taken out of the question, which is said; `names` are theirs where the
   * question has others.
   */
  protected consult<T>(
    name: "paging" | "quiz" | "wish",
    question: object,
    names: Record<string, string> = {},
  ): T | Failure | null {
    const call = this.kernel.instance[name];
    if (!call) {
      this.#needFull();
      return null;
    }
    for (;;) {
      const answer = JSON.parse(call(kit.requestText(question))) as object;
      if (!("error" in answer)) return answer as T;
      const { field, message } = (answer as Failure).error;
      const key = field.split(/[.[]/)[0] ?? "";
      const attribute = names[key] ?? key;
      if (!Object.hasOwn(question, key) || !this.hasAttribute(attribute)) return answer as Failure;
      delete (question as Record<string, unknown>)[key];
      this.complainOf(attribute, message, this.getAttribute(attribute));
    }
  }

  #needFull(): void {
    if (this.#lacking) this.complain(this.word("more-missing"));
    else this.#fetchFull();
  }

  #fetchFull(): void {
    this.#full ??= Promise.all([kit.loadFullKernel(), kit.loadMore(), kit.loadWords(kit.languageOf(this), "-more")])
      .then(
        ([kernel, more]) => {
          this.kernel = kernel;
          this.#fetched = true;
          kit.addEnglish(more.words);
        },
        () => {
          this.#lacking = true;
        },
      )
      .then(() => {
        this.#full = null;
        this.#show();
      });
  }

  // ---- words ---------------------------------------------------------------------------------------------------------

  protected word(key: string, values: Values = {}): string {
    return this.speech.text(key, values);
  }

  /** A selector of models, to be filled by offerModels; `chosen` is called once the reader's choice is the state. */
  protected modelSelect(chosen: () => void): HTMLSelectElement {
    const select = h("select", { autocomplete: "off" });
    select.addEventListener("change", () => {
      if (select.value === MORE) return this.#fetchFull();
      mark(this, "model", select.value);
      chosen();
    });
    return select;
  }

  /** One of an answer's readings, as text. */
  protected size(plan: Answer, name: string, precision: "spoken" | "three" = "spoken"): string {
    const reading = plan.readings[name];
    return reading ? this.speech.reading(reading, precision) : this.word("none");
  }

  /** Says what is wrong with the state that is being shown. */
  protected complain(text: string): void {
    this.#complaints.add(text);
  }

  /** Says what is wrong with an attribute, and what is used instead. */
  protected complainOf(attribute: string, message: string, value: unknown, used?: string | number): void {
    // The words for it come with the second script.
    if (!this.#fetched && !this.speech.has("instead")) {
      this.#needFull();
      return;
    }
    const why = this.word("error.other", { field: attribute, message });
    this.complain(insteadOf(this.speech, why, value, used));
  }

  /** Through the one polite region of the page, once nothing changes any more. */
  protected announce(text: string): void {
    kit.announce(text);
  }

  /** Announces what a node says, once the state is shown. */
  protected tellOf(node: HTMLElement): void {
    queueMicrotask(() => this.announce(node.textContent ?? ""));
  }

  #copyButton(): HTMLElement {
    const name = h("span", {}, this.word("link.copy"));
    const button = h("button", { type: "button", class: "plain copy" }, name);
    const shown = h("input", {
      type: "text",
      class: "exact address",
      readonly: "",
      "aria-label": this.word("link.label"),
    });
    shown.hidden = true;
    button.addEventListener("click", async () => {
      const { link } = this;
      try {
        await navigator.clipboard.writeText(link);
        shown.hidden = true;
        say(name, this.word("link.copied"));
        this.announce(this.word("link.copied"));
        setTimeout(() => say(name, this.word("link.copy")), COPIED);
      } catch {
        // A page from disk or in a frame may not write to the clipboard: the link is there to be taken by hand.
        shown.hidden = false;
        shown.value = link;
        shown.select();
      }
    });
    return h("p", { class: "foot" }, button, shown);
  }
}
