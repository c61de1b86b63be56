/**
 * <kv-paging>: the same requests under a server that reserves a block for the longest answer and under one that hands out
 * pages. Attributes beside the model's, which gives the bytes: `step`, `lengths` (`sharegpt`, `alpaca`, or the means of
 * prompt and answer, as `161 338`), `longest` (answer, tokens), `prefix` (common to all prompts), `page`, `memory` (tokens),
 * `requests`, `every` (mean steps between arrivals) and `seed`.
 */
import type { MemoryKind, PagingServer, PagingState } from "../contract.js";
import { h, mark, say, sayRich } from "../nodes.js";
import { attributes } from "./element.js";
import css from "./kv-paging.css";
import { svg } from "../picture.js";
import { field } from "./parts.js";
import { SteppedElement } from "./stepped.js";

/** Pictures of a whole run that plays. */
const PICTURES = 700;
/** Steps of the button that goes on by hand. */
const STRIDE = 20;
/** Rows that a strip of memory is laid out in. */
const ROWS = 16;
/** Neighbours in memory are told apart by this many tints. */
const TINTS = 3;

/** The attributes by the names that the kernel has for them. */
const ATTRIBUTES = {
  seed: "seed",
  memory_tokens: "memory",
  page_tokens: "page",
  longest_answer: "longest",
  prefix_tokens: "prefix",
  requests: "requests",
  every: "every",
};

const SIDES = ["contiguous", "paged"] as const;
/** What each side's memory may be for, in the order of the legend. */
const KINDS: Record<(typeof SIDES)[number], MemoryKind[]> = {
  contiguous: ["used", "prefix", "reserved", "fragmentation", "free"],
  paged: ["used", "prefix", "last_page", "free"],
};

interface Side {
  running: HTMLElement;
  queue: HTMLElement;
  strip: SVGSVGElement;
  shares: Map<MemoryKind, { item: HTMLElement; share: HTMLElement }>;
  line: SVGPathElement;
}

export class KvPaging extends SteppedElement {
  static readonly observedAttributes = attributes(
    "step",
    "lengths",
    "longest",
    "prefix",
    "page",
    "memory",
    "requests",
    "every",
    "seed",
  );
  static override readonly css = css;

  #controls!: Record<"lengths" | "longest" | "prefix" | "page", HTMLSelectElement>;
  #sides!: Map<string, Side>;
  #chart!: SVGSVGElement;
  #now!: SVGPathElement;
  #most!: HTMLElement;
  #scrub!: HTMLInputElement;
  #memory!: HTMLElement;
  #sentence!: HTMLElement;
  #last = 0;
  /** Whether a reader chose requests whose run may end before the step that is shown. */
  #shortened = false;
  #charted = "";

  protected readonly pace = 60;

  protected get last(): number {
    return this.#last;
  }

  protected strides(): { playing: number; byHand: number } {
    return { playing: Math.max(1, Math.round(this.#last / PICTURES)), byHand: STRIDE };
  }

  protected get told(): HTMLElement {
    return this.#sentence;
  }

  protected build(): Node[] {
    const select = (key: string, choices: [value: string, name: string][]) => {
      const control = h("select", { autocomplete: "off" });
      for (const [value, name] of choices) control.append(h("option", { value }, name));
      control.addEventListener("change", () => {
        mark(this, key, control.value);
        this.#shortened = true;
        this.tell();
      });
      return control;
    };
    const tokens = (...counts: number[]): [string, string][] =>
      counts.map((n) => [String(n), this.word("tokens", { n })]);
    this.#controls = {
      lengths: select("lengths", [
        ["sharegpt", this.word("paging.sharegpt")],
        ["alpaca", this.word("paging.alpaca")],
        ["1000 100", this.word("paging.long-prompts")],
        ["100 1000", this.word("paging.long-answers")],
      ]),
      longest: select("longest", tokens(256, 512, 1024, 2048, 4096)),
      prefix: select("prefix", [["0", this.word("paging.no-prefix")], ...tokens(64, 128, 256, 512, 1024)]),
      page: select("page", tokens(1, 8, 16, 32, 64, 128, 256)),
    };
    this.#scrub = h("input", { type: "range", min: "0", step: "1", autocomplete: "off" });
    this.#scrub.addEventListener("input", () => this.go(this.#scrub.valueAsNumber));
    this.#scrub.addEventListener("change", () => this.tell());
    this.#memory = h("p", { class: "about memory" });
    this.#sentence = h("p", { class: "sentence" });
    this.#sides = new Map(SIDES.map((policy) => [policy, this.#side(policy)]));
    this.#now = svg("path", { class: "now" });
    this.#chart = svg(
      "svg",
      { class: "chart", preserveAspectRatio: "none", "aria-hidden": "true" },
      ...[...this.#sides.values()].map(({ line }) => line),
      this.#now,
    );
    this.#most = h("span");
    this.#charted = "";
    const scrub = field(this.word("paging.scrub"), this.#scrub, "scrub");
    return [
      h(
        "div",
        { class: "row settings" },
        field(this.word("paging.lengths"), this.#controls.lengths, "lengths"),
        field(this.word("paging.longest"), this.#controls.longest, "longest"),
        field(this.word("paging.prefix"), this.#controls.prefix, "prefix"),
        field(this.word("paging.page"), this.#controls.page, "page"),
      ),
      this.#memory,
      h("div", { class: "sides" }, ...SIDES.map((policy) => this.#panel(policy))),
      h(
        "div",
        { class: "time" },
        h("p", { class: "axis" }, h("span", {}, this.word("paging.chart")), this.#most),
        this.#chart,
        scrub,
        h("div", { class: "buttons" }, ...this.stepButtons()),
      ),
      this.#sentence,
      h("p", { class: "about" }, this.word("paging.paper")),
    ];
  }

  #side(policy: (typeof SIDES)[number]): Side {
    const shares: Side["shares"] = new Map();
    for (const kind of KINDS[policy]) {
      const share = h("b");
      const swatch = h("span", { class: `swatch ${kind}`, "aria-hidden": "true" });
      shares.set(kind, {
        item: h(
          "li",
          {},
          swatch,
          h("span", {}, this.word(kind === "prefix" ? "paging.prefix-rows" : `paging.${kind}`)),
          share,
        ),
        share,
      });
    }
    return {
      running: h("b"),
      queue: h("span"),
      strip: svg("svg", { class: "strip", preserveAspectRatio: "none", "aria-hidden": "true" }),
      shares,
      line: svg("path", { class: `line ${policy}` }),
    };
  }

  #panel(policy: (typeof SIDES)[number]): HTMLElement {
    const { running, queue, strip, shares } = this.#sides.get(policy) as Side;
    return h(
      "section",
      { class: policy, "aria-labelledby": policy },
      h("h3", { id: policy }, this.word(`paging.${policy}`)),
      h("p", { class: "counter" }, running, h("span", {}, this.word("paging.at-once")), queue),
      strip,
      h("ul", { class: "shares", role: "list" }, ...[...shares.values()].map(({ item }) => item)),
    );
  }

  /** The question as the attributes have it; what is no number stays text, which C++ refuses by field. */
  #question(): Record<string, unknown> {
    const out: Record<string, unknown> = {};
    const plain = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : text);
    for (const [name, attribute] of Object.entries(ATTRIBUTES)) {
      const text = this.getAttribute(attribute);
      if (text !== null) out[name] = plain(text.trim());
    }
    const lengths = this.getAttribute("lengths")?.trim() ?? "sharegpt";
    const means = lengths.match(/^(\d+)\s+(\d+)$/);
    out.lengths = means ? { prompt: Number(means[1]), answer: Number(means[2]) } : lengths;
    // A mean of a thousand needs room above it.
    if (means) out.longest_prompt = 4096;
    out.memory_tokens ??= means ? 16_384 : 8192;
    return out;
  }

  #simulate(question: object): PagingState | null {
    const state = this.consult<PagingState>("paging", question, ATTRIBUTES);
    if (state === null || !("error" in state)) return state;
    this.complain(this.word("error.other", { ...state.error }));
    return null;
  }

  protected show(): void {
    const plan = this.ask(this.request);
    const question = { ...this.#question() };
    if (plan?.kv_bytes_per_token) question.bytes_per_token = plan.kv_bytes_per_token;
    if (!plan || !this.#chartRuns(question)) return;
    if (this.#shortened && this.whole("step", 0) > this.#last) this.go(this.#last);
    this.#shortened = false;
    const { step } = this;
    const state = this.#simulate({ ...question, step });
    if (!state) return;
    const [blocks, pages, shared] = state.servers;
    const prefix = Number(question.prefix_tokens ?? 0);
    for (const [policy, server] of [
      ["contiguous", blocks],
      ["paged", prefix > 0 ? shared : pages],
    ] as const) {
      this.#showSide(this.#sides.get(policy) as Side, server, state);
    }
    this.#showControls(question, state, step);
    const memory = state.memory_reading ? this.speech.reading(state.memory_reading) : "";
    const { memory_tokens: n } = state;
    const values = { n, memory, model: plan.model.name || this.word("own-model"), requests: state.requests.length };
    say(this.#memory, this.word(memory ? "paging.memory-of" : "paging.memory", values));
    this.#tellStep(state, step, prefix);
  }

  #showControls(question: Record<string, unknown>, state: PagingState, step: number): void {
    const shown = {
      lengths: (question.lengths === undefined ? undefined : this.getAttribute("lengths")?.trim()) ?? "sharegpt",
      longest: String(question.longest_answer ?? 1024),
      prefix: String(question.prefix_tokens ?? 0),
      page: String(state.page_tokens),
    };
    for (const [key, value] of Object.entries(shown)) {
      const control = this.#controls[key as keyof typeof shown];
      if (![...control.options].some((one) => one.value === value)) {
        const n = Number(value);
        control.append(h("option", { value }, key === "lengths" ? value : this.word("tokens", { n })));
      }
      control.value = value;
    }
    this.#scrub.max = String(this.#last);
    this.#scrub.value = String(step);
    mark(this.#scrub, "aria-valuetext", this.word("paging.step", { step, last: this.#last }));
    mark(this.#now, "d", `M${step} 0V1e3`);
    this.showStepButtons(this.word("paging.forward", { n: STRIDE }));
  }

  #tellStep(state: PagingState, step: number, prefix: number): void {
    const [blocks, pages, shared] = state.servers;
    const best = prefix > 0 ? shared : pages;
    const { totals } = blocks;
    const values = {
      step,
      blocks: blocks.running,
      pages: best.running,
      reserved: this.speech.percent(totals.reserved.share),
      holes: this.speech.percent(totals.fragmentation.share),
      rest: this.speech.percent(best.totals.last_page.share),
      plain: pages.running,
      prefix,
      spared: shared.spared_tokens,
      finishedBlocks: blocks.finished,
      finishedPages: best.finished,
      requests: state.requests.length,
    };
    const first = step === 0 ? "start" : step >= this.#last ? "end" : best.running === 0 ? "done" : "now";
    const stretches = this.speech.stretches(`paging.${first}`, values);
    if (first === "now" && shared.spared_tokens > 0) {
      stretches.push(...this.speech.stretches("gap"), ...this.speech.stretches("paging.sharing", values));
    }
    sayRich(this.#sentence, stretches);
  }

  #showSide(side: Side, server: PagingServer, state: PagingState): void {
    say(side.running, this.speech.number(server.running));
    say(side.queue, this.word("paging.queue", { waiting: server.waiting, finished: server.finished }));
    for (const [kind, { item, share }] of side.shares) {
      const part = server.totals[kind];
      say(share, this.speech.percent(part.share));
      item.classList.toggle("none", part.tokens === 0);
    }
    this.#drawStrip(side.strip, server, state);
  }

  /** Memory from left to right, a row under the other; one path for each look. */
  #drawStrip(strip: SVGSVGElement, server: PagingServer, state: PagingState): void {
    const row = Math.ceil(state.pages / ROWS) * state.page_tokens;
    mark(strip, "viewBox", `0 0 ${row} ${ROWS}`);
    const paths = new Map<string, string>();
    let cuts = "";
    let at = 0;
    let owner = -1;
    for (const stretch of server.stretches) {
      const tint = stretch.kind === "used" ? ` t${stretch.owner % TINTS}` : "";
      const look = stretch.kind + tint;
      if (stretch.owner !== owner) cuts += `M${at % row} ${Math.floor(at / row)}v1`;
      owner = stretch.owner;
      const end = at + stretch.tokens;
      let d = paths.get(look) ?? "";
      while (at < end) {
        const x = at % row;
        const wide = Math.min(end - at, row - x);
        d += `M${x} ${Math.floor(at / row)}h${wide}v1h-${wide}z`;
        at += wide;
      }
      paths.set(look, d);
    }
    if (at < row * ROWS) {
      const x = at % row;
      // What the last row lacks is no memory.
      paths.set("outside", `M${x} ${Math.floor(at / row)}H${row}v1H${x}z`);
    }
    const rows = Array.from({ length: ROWS - 1 }, (_, i) => `M0 ${i + 1}H${row}`).join("");
    const nodes = [...paths, ["cuts", cuts], ["rows", rows]] as [string, string][];
    nodes.forEach(([look, d], i) => {
      let path = strip.children[i];
      if (!path) {
        path = svg("path");
        strip.append(path);
      }
      mark(path, "class", look);
      mark(path, "d", d);
    });
    while (strip.children.length > nodes.length) strip.lastElementChild?.remove();
  }

  /** Draws how many run at each step of the whole run, once for each set of requests. False where there is no run. */
  #chartRuns(question: object): boolean {
    const key = JSON.stringify(question);
    if (key === this.#charted) return true;
    const whole = this.#simulate({ ...question, step: 0, history: true });
    if (!whole) return false;
    this.#charted = key;
    const [blocks, pages, shared] = whole.servers;
    const prefix = "prefix_tokens" in question && Number(question.prefix_tokens) > 0;
    const drawn = { contiguous: blocks, paged: prefix ? shared : pages };
    const peak = Math.max(...Object.values(drawn).map((server) => server.peak ?? 0), 1);
    this.#last = Math.max(...Object.values(drawn).map((server) => server.last_step ?? 0), 1);
    mark(this.#chart, "viewBox", `0 0 ${this.#last} ${peak * 1.06}`);
    for (const [policy, { history, last_step: last }] of Object.entries(drawn)) {
      if (!history) continue;
      const top = peak * 1.06;
      const points = history.running.map((n, i) => `${i * history.every} ${top - n}`);
      mark((this.#sides.get(policy) as Side).line, "d", `M0 ${top}L${points.join("L")}L${last} ${top}`);
    }
    say(this.#most, this.word("paging.most", { blocks: blocks.peak ?? 0, pages: drawn.paged.peak ?? 0 }));
    return true;
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "kv-paging": KvPaging;
  }
}
