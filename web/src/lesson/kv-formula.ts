/**
 * <kv-formula>: the size of the cache as a sentence in which every factor can be changed in place. Attributes beside the
 * request's: `layers`, `kv_heads`, `head_size` and `rows` (2: keys and values, 1: one serves as both), each over what the
 * model says. Pointing at a factor sends `kv-factor` and lights the same factor in the calculator that `for` names.
 */
import type { Answer, Failure, LayerRun, Request } from "../contract.js";
import { kit } from "./kit.js";
import { h, mark, say, sayRich } from "../nodes.js";
import { attributes, LessonElement, type Mended } from "./element.js";
import css from "./kv-formula.css";
import { field, offerModels } from "./parts.js";

export const FACTORS = ["rows", "layers", "kv_heads", "head_size", "kv"] as const;
export type Factor = (typeof FACTORS)[number];
/** The factors that are whole numbers, typed or dragged. */
type Counted = "layers" | "kv_heads" | "head_size";

export type FactorEvent = CustomEvent<{ factor: Factor | null }>;

/** What dragging stops at; typing takes any number. */
const STOPS: Record<Counted, number[]> = {
  layers: Array.from({ length: 128 }, (_, i) => i + 1),
  kv_heads: [1, 2, 4, 8, 16, 32, 40, 64, 96, 128],
  head_size: [32, 64, 80, 96, 112, 128, 160, 192, 256, 512, 576],
};
/** Pixels of a drag from one stop to the next. */
const DRAG: Record<Counted, number> = { layers: 5, kv_heads: 22, head_size: 22 };

/** The calculator's name for a factor, which it lights. */
const LIT: Record<Factor, string> = {
  rows: "k_and_v",
  layers: "layers",
  kv_heads: "kv_heads",
  head_size: "head_dimension",
  kv: "bytes",
};

/** The factors by the fields of a run of layers. */
const FIELDS: Record<string, Counted> = { count: "layers", kv_heads: "kv_heads", key_width: "head_size" };

interface Shape {
  layers: number;
  kv_heads: number;
  head_size: number;
  rows: number;
}

/** The part of a model that the formula is about: its largest kind of layers that grow, as heads of one size. */
function shapeOf(runs: LayerRun[]): Shape | null {
  const kept = runs.filter((run) => run.kv_heads || run.latent_width);
  const [largest] = kept.toSorted((a, b) => Number(b.kind === "full") - Number(a.kind === "full") || b.count - a.count);
  if (!largest) return null;
  const layers = largest.count;
  // A latent is like one head whose key serves as its value.
  if (largest.latent_width) return { layers, kv_heads: 1, head_size: largest.latent_width, rows: 1 };
  const { kv_heads = 1, key_width = 1, value_width = key_width } = largest;
  return { layers, kv_heads, head_size: key_width, rows: value_width === 0 ? 1 : 2 };
}

export class KvFormula extends LessonElement {
  static readonly observedAttributes = attributes("layers", "kv_heads", "head_size", "rows");
  static override readonly css = css;

  #model!: HTMLSelectElement;
  #counted!: Record<Counted, HTMLInputElement>;
  #rows!: HTMLSelectElement;
  #format!: HTMLSelectElement;
  #result!: HTMLElement;
  #bytes!: HTMLElement;
  #sentence!: HTMLElement;
  #source!: HTMLElement;
  #mixed!: HTMLElement;
  #reset!: HTMLButtonElement;
  #own: Shape | null = null;
  /** What a reader changed is refused as it stands; for what the page gave, the model's own stands in. */
  readonly #byReader = new Set<string>();
  #putting = false;

  protected build(): Node[] {
    this.#model = this.modelSelect(() => {
      this.#forget();
      this.#tell();
    });
    this.#counted = {
      layers: this.#count("layers"),
      kv_heads: this.#count("kv_heads"),
      head_size: this.#count("head_size"),
    };
    this.#rows = h(
      "select",
      { id: "rows", autocomplete: "off" },
      ...["2", "1"].map((n) => h("option", { value: n }, n)),
    );
    this.#rows.addEventListener("change", () => this.#put("rows", this.#rows.value, true));
    this.#format = h("select", { id: "kv", autocomplete: "off" });
    this.#format.addEventListener("change", () => this.#put("kv", this.#format.value, true));
    const factor = (name: Factor, control: HTMLElement, label: string) => {
      const box = h(
        "span",
        { class: "factor", part: "factor" },
        control,
        h("label", { for: control.id }, this.word(label)),
      );
      const point = (on: boolean) => () => this.#point(on ? name : null);
      box.addEventListener("pointerenter", point(true));
      box.addEventListener("pointerleave", point(this.root.activeElement === control));
      box.addEventListener("focusin", point(true));
      box.addEventListener("focusout", point(false));
      return box;
    };
    const after = (sign: string, node: Node) => h("span", { class: "term" }, h("span", { class: "sign" }, sign), node);
    this.#result = h("b");
    this.#bytes = h("span");
    this.#sentence = h("p", { class: "sentence" });
    this.#source = h("p", { class: "source" });
    this.#mixed = h("p", { class: "mixed" });
    this.#reset = h("button", { type: "button", class: "plain" }, this.word("formula.reset"));
    this.#reset.addEventListener("click", () => {
      this.#forget();
      this.#tell();
    });
    return [
      h("div", { class: "row" }, field(this.word("formula.model"), this.#model, "model")),
      h(
        "div",
        { class: "formula", role: "group", "aria-label": this.word("formula.group") },
        factor("rows", this.#rows, "formula.rows"),
        after("×", factor("layers", this.#counted.layers, "formula.layers")),
        after("×", factor("kv_heads", this.#counted.kv_heads, "formula.kv_heads")),
        after("×", factor("head_size", this.#counted.head_size, "formula.head_size")),
        after("×", factor("kv", this.#format, "formula.kv")),
        after("=", h("span", { class: "result" }, this.#result, this.#bytes)),
      ),
      h("div", { class: "hint" }, this.#source, this.#reset),
      this.#sentence,
      this.#mixed,
    ];
  }

  #count(name: Counted): HTMLInputElement {
    const input = h("input", {
      id: name.replace("_", "-"),
      type: "number",
      min: "1",
      step: "1",
      inputmode: "numeric",
      autocomplete: "off",
    });
    input.addEventListener("input", () => this.#put(name, input.value, false));
    input.addEventListener("change", () => this.#tell());
    // A box that nobody types in is dragged sideways.
    let from: { x: number; at: number } | null = null;
    let dragged = false;
    input.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || this.root.activeElement === input) return;
      const stops = STOPS[name];
      const at = stops.findLastIndex((stop) => stop <= input.valueAsNumber);
      from = { x: event.clientX, at: Math.max(at, 0) };
      dragged = false;
      input.setPointerCapture(event.pointerId);
    });
    input.addEventListener("pointermove", (event) => {
      if (!from) return;
      const moved = Math.round((event.clientX - from.x) / DRAG[name]);
      if (moved !== 0) dragged = true;
      if (!dragged) return;
      event.preventDefault();
      const stops = STOPS[name];
      this.#put(name, String(stops[Math.min(Math.max(from.at + moved, 0), stops.length - 1)]), false);
    });
    input.addEventListener("pointerup", () => {
      from = null;
      if (!dragged) return;
      input.blur();
      this.#tell();
    });
    input.addEventListener("pointercancel", () => {
      from = null;
    });
    return input;
  }

  #put(name: Factor, value: string, settled: boolean): void {
    this.#byReader.add(name);
    this.#putting = true;
    mark(this, name, value);
    this.#putting = false;
    if (settled) this.#tell();
  }

  override attributeChangedCallback(name: string): void {
    if (!this.#putting) this.#byReader.delete(name);
    super.attributeChangedCallback(name);
  }

  /** Back to what the model says. */
  #forget(): void {
    for (const name of FACTORS) this.removeAttribute(name);
  }

  #point(factor: Factor | null): void {
    if (this.linked) mark(this.linked, "lit", factor && LIT[factor]);
    say(this.#source, this.word(factor ? `formula.from.${factor}` : "formula.from.none"));
    const detail = { factor };
    this.dispatchEvent(new CustomEvent("kv-factor", { bubbles: true, composed: true, detail }));
  }

  #tell(): void {
    this.tellOf(this.#sentence);
  }

  protected show(): void {
    const { kv_heads: _, ...request } = this.request as Request & { kv_heads?: unknown };
    const base = this.ask(request);
    if (!base) return;
    this.#own = shapeOf(base.model.layers);
    if (!this.#own) {
      this.complain(this.word("formula.none", { model: base.model.name }));
      return;
    }
    const own = this.#own;
    offerModels(this.#model, this.catalogue, base, this.speech);
    if (this.#format.options.length === 0) {
      this.#format.append(
        ...this.catalogue.formats
          .filter((one) => one.cache && !one.latent_only)
          .map(({ id }) => h("option", { value: id }, id)),
      );
    }
    const given = (name: keyof Shape) => {
      const text = this.getAttribute(name);
      return text === null ? own[name] : (this.#read(text) as number);
    };
    const shape: Shape = {
      layers: given("layers"),
      kv_heads: given("kv_heads"),
      head_size: given("head_size"),
      rows: given("rows"),
    };
    const changed = (Object.keys(shape) as (keyof Shape)[]).some((key) => shape[key] !== own[key]);
    const uniform = base.model.layers.length === 1;
    if (shape.rows !== 1 && shape.rows !== 2) {
      this.complainOf("rows", this.word("one-or-two"), this.getAttribute("rows"), own.rows);
      shape.rows = own.rows;
    }
    const mend = (error: Failure["error"]): Mended | null => {
      const name = FIELDS[error.field.split(".").at(-1) ?? ""];
      if (!name || this.#byReader.has(name) || !this.hasAttribute(name)) return null;
      error.field = name;
      shape[name] = own[name];
      return { question: this.#changed(request, shape), key: name, value: this.getAttribute(name), used: own[name] };
    };
    const plan = changed || !uniform ? this.ask(this.#changed(request, shape), mend) : base;
    for (const name of ["layers", "kv_heads", "head_size"] as const) {
      const input = this.#counted[name];
      const text = String(shape[name]);
      if (input.value !== text && this.root.activeElement !== input) input.value = text;
      input.style.inlineSize = `${Math.max(text.length, 1) + 1.5}ch`;
      mark(input, "aria-invalid", plan ? null : String(!(Number(text) > 0)));
    }
    this.#rows.value = String(shape.rows);
    if (typeof base.kv.k === "string") this.#format.value = base.kv.k;
    this.#reset.hidden = !FACTORS.some((name) => this.hasAttribute(name));
    if (this.#source.textContent === "") this.#point(null);
    say(
      this.#mixed,
      uniform
        ? ""
        : this.word("formula.mixed", { model: base.model.name, n: own.layers, layers: base.model.layer_count }),
    );
    if (plan) this.#showResult(plan);
    else for (const node of [this.#result, this.#bytes, this.#sentence]) say(node, "");
  }

  #read(text: string): unknown {
    const value = kit.numeral(text) ?? text;
    return typeof value === "bigint" ? text : value;
  }

  /** The request with a model of the formula's own shape. */
  #changed({ model: _, config: __, ...request }: Request, { layers, kv_heads, head_size, rows }: Shape): Request {
    const run = {
      count: layers,
      kind: "full",
      kv_heads,
      key_width: head_size,
      value_width: rows === 1 ? 0 : head_size,
    };
    return { ...request, model: { layers: [run as LayerRun] }, engine: "textbook" };
  }

  #showResult(plan: Answer): void {
    say(this.#result, this.size(plan, "kv_bytes_per_token"));
    // The kernel's own factors, as it multiplied them.
    const steps = plan.derivation.filter((step) => step.name === "kv_bytes_per_token");
    const terms = steps.length === 1 ? (steps[0]?.terms ?? []) : [];
    const value = (of: string) => terms.find((term) => term.of === of)?.value ?? 0;
    const label = this.#format.nextElementSibling;
    const [bytes, numbers] = [value("bytes_per_block"), value("values_per_block")];
    if (label && numbers) say(label, this.word("formula.block", { n: bytes, numbers }));
    else if (label) say(label, this.word("formula.kv", { n: value("bytes") }));
    const product = terms.map(({ op, value }) => `${op} ${this.speech.number(value, 6)}`.trim()).join(" ");
    const total = this.speech.number(plan.kv_bytes_per_token);
    say(this.#bytes, this.word("formula.product", { product, v: total, n: plan.kv_bytes_per_token }));
    sayRich(
      this.#sentence,
      this.speech.stretches("formula.sentence", {
        token: this.size(plan, "kv_bytes_per_token"),
        context: plan.context,
        sequence: this.size(plan, "kv_bytes_per_sequence"),
      }),
    );
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "kv-formula": KvFormula;
  }
  interface HTMLElementEventMap {
    "kv-factor": FactorEvent;
  }
}
