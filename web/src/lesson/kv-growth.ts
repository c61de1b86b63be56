/**
 * <kv-growth>: a prompt is read at once and an answer is written token by token, while the cache grows by one column a
 * token. Attributes beside the model's: `step` (0: nothing read, 1: the prompt read, then one a token written), `prompt`
 * and `answer` (tokens separated by spaces).
 */
import type { Answer } from "../contract.js";
import { h, mark, say, sayRich } from "../nodes.js";
import { attributes } from "./element.js";
import css from "./kv-growth.css";
import { svg } from "../picture.js";
import { field, offerModels } from "./parts.js";
import { SteppedElement } from "./stepped.js";

/** Kinds of layers that keep something for every token. */
const GROWING = new Set(["full", "window", "chunked", "latent", "compressed"]);

/** What stands upright where lines run downwards, as Chinese, Japanese and Korean do, with their punctuation; and a digit. */
const UPRIGHT = /^\d$|[\u2e80-\ua4cf\uac00-\ud7ff\uff01-\uff60]/;

export class KvGrowth extends SteppedElement {
  static readonly observedAttributes = attributes("step", "prompt", "answer");
  static override readonly css = css;

  #model!: HTMLSelectElement;
  #tokens!: HTMLElement;
  #grid!: SVGSVGElement;
  #layers!: HTMLElement;
  #size!: HTMLElement;
  #count!: HTMLElement;
  #sentence!: HTMLElement;
  #scrub!: HTMLInputElement;
  #drawn = "";

  /** The tokens of prompt and answer. */
  #texts(): { prompt: string[]; answer: string[] } {
    const split = (key: "prompt" | "answer") =>
      (this.getAttribute(key)?.trim() || this.word(`growth.${key}`)).split(/\s+/);
    return { prompt: split("prompt"), answer: split("answer") };
  }

  /** The number of tokens that the cache holds after a step. */
  #held(step: number): number {
    return step === 0 ? 0 : this.#texts().prompt.length + step - 1;
  }

  /** About as fast as a person reads along. */
  protected readonly pace = 650;

  protected get last(): number {
    return 1 + this.#texts().answer.length;
  }

  protected strides(): { playing: number; byHand: number } {
    return { playing: 1, byHand: 1 };
  }

  protected get told(): HTMLElement {
    return this.#sentence;
  }

  protected build(): Node[] {
    this.#model = this.modelSelect(() => this.tell());
    this.#scrub = h("input", { type: "range", min: "0", step: "1", autocomplete: "off" });
    this.#scrub.addEventListener("input", () => this.go(this.#scrub.valueAsNumber));
    this.#scrub.addEventListener("change", () => this.tell());
    this.#tokens = h("ol", { class: "tokens", role: "list", "aria-label": this.word("growth.tokens") });
    this.#grid = svg("svg", { class: "grid", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.#layers = h("span");
    this.#size = h("b");
    this.#count = h("span");
    this.#sentence = h("p", { class: "sentence" });
    this.#drawn = "";
    const key = (kind: string) =>
      h("li", {}, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), this.word(`growth.${kind}`));
    const scrub = field(this.word("growth.scrub"), this.#scrub, "scrub");
    scrub.classList.add("scrub");
    return [
      h(
        "div",
        { class: "row" },
        field(this.word("model"), this.#model, "model"),
        h("div", { class: "buttons" }, ...this.stepButtons()),
        scrub,
      ),
      h(
        "div",
        { class: "picture" },
        this.#tokens,
        this.#grid,
        h("p", { class: "axis" }, this.#layers, h("span", {}, this.word("growth.axis"))),
      ),
      h("ul", { class: "keys", role: "list" }, key("k"), key("v")),
      h("p", { class: "counter" }, this.#size, this.#count),
      this.#sentence,
    ];
  }

  protected show(): void {
    const request = this.request;
    const step = this.step;
    const held = this.#held(step);
    const plan = this.ask({ ...request, context: Math.max(held, 1) });
    const whole = this.ask(request);
    if (!plan || !whole) return;
    offerModels(this.#model, this.catalogue, plan, this.speech);
    this.#draw(plan, held);
    this.#scrub.max = String(this.last);
    this.#scrub.value = String(step);
    mark(this.#scrub, "aria-valuetext", this.word("tokens", { n: held }));
    this.showStepButtons(this.word("growth.step"));
    const size = held === 0 ? this.word("growth.nothing") : this.size(plan, "kv_bytes_per_sequence");
    say(this.#size, size);
    say(this.#count, this.word("growth.count", { n: held }));
    const { prompt, answer } = this.#texts();
    const phase = step === 0 ? "empty" : step === 1 ? "prefill" : step < this.last ? "decode" : "done";
    const values = {
      n: prompt.length,
      layers: plan.model.layer_count,
      word: answer[step - 2] ?? "",
      token: this.size(plan, "kv_bytes_per_token"),
      size,
      context: whole.context,
      whole: this.size(whole, "kv_bytes_per_sequence"),
    };
    sayRich(this.#sentence, this.speech.stretches(`growth.${phase}`, values));
  }

  /** Draws the columns that there can be, and marks those that are there. */
  #draw(plan: Answer, held: number): void {
    const { prompt, answer } = this.#texts();
    const texts = [...prompt, ...answer];
    const { layers, layer_count: rows } = plan.model;
    const drawn = JSON.stringify([layers, texts]);
    if (drawn !== this.#drawn) {
      this.#drawn = drawn;
      this.#tokens.replaceChildren(
        ...texts.map((text) => h("li", { class: UPRIGHT.test(text) ? "upright" : "" }, text)),
      );
      this.#tokens.style.setProperty("--columns", String(texts.length));
      mark(this.#grid, "viewBox", `0 0 ${texts.length} ${rows}`);
      // The rows of a column that hold a key and a value, from the first layer down.
      const stretches: [number, number][] = [];
      let at = 0;
      for (const { kind, count } of layers) {
        if (GROWING.has(kind)) stretches.push([at, count]);
        at += count;
      }
      const half = (class_: string, x: number) =>
        svg("path", { class: class_, d: stretches.map(([y, tall]) => `M${x} ${y}h.43v${tall}h-.43z`).join("") });
      const lines = Array.from({ length: rows - 1 }, (_, i) => `M0 ${i + 1}H${texts.length}`).join("");
      this.#grid.replaceChildren(
        ...texts.map((_, i) => svg("g", { class: "column" }, half("k", i + 0.05), half("v", i + 0.52))),
        svg("path", { class: "lines", d: lines, "stroke-width": rows > 64 ? 0.5 : 1 }),
      );
      say(this.#layers, this.word("layers", { n: rows }));
    }
    texts.forEach((_, i) => {
      this.#tokens.children[i]?.classList.toggle("in", i < held);
      this.#tokens.children[i]?.classList.toggle("written", i >= prompt.length && i < held);
      this.#grid.children[i]?.classList.toggle("in", i < held);
    });
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "kv-growth": KvGrowth;
  }
}
