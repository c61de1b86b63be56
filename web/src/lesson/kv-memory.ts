/**
 * <kv-memory>: what fills a GPU's memory, as a textbook counts it and as an engine sets it aside, one bar above the other.
 * The attributes are the request's; `engine` is the lower bar's.
 */
import type { Answer, EngineId, Request } from "../contract.js";
import { h, mark, say, sayRich } from "../nodes.js";
import { attributes, LessonElement } from "./element.js";
import css from "./kv-memory.css";
import { field, offerModels } from "./parts.js";

const DEFAULT_ENGINE: EngineId = "vllm";
/** An engine budgets on what a card really has, so the card is one that there is. */
const DEFAULT_GPU = "h100-sxm-80gb";
/** Kinds of parts with a look of their own, which all others share. */
const LOOKS = new Set(["weights", "cache", "left", "reserve"]);
const look = (kind: string): string => (LOOKS.has(kind) ? kind : "part");

interface Bar {
  name: HTMLElement;
  count: HTMLElement;
  bar: HTMLElement;
  legend: HTMLElement;
}

export class KvMemory extends LessonElement {
  static readonly observedAttributes = attributes();
  static override readonly css = css;

  #model!: HTMLSelectElement;
  #engine!: HTMLSelectElement;
  #gpu!: HTMLSelectElement;
  #textbook!: Bar;
  #real!: Bar;
  #sentence!: HTMLElement;
  #set!: HTMLElement;

  protected build(): Node[] {
    const tell = () => this.tellOf(this.#sentence);
    const select = (key: "engine" | "gpu") => {
      const control = h("select", { autocomplete: "off" });
      control.addEventListener("change", () => {
        mark(this, key, control.value);
        tell();
      });
      return control;
    };
    this.#model = this.modelSelect(tell);
    this.#engine = select("engine");
    this.#gpu = select("gpu");
    const bar = (): [Bar, Node] => {
      const made = {
        name: h("h3"),
        count: h("b"),
        bar: h("div", { class: "bar", "aria-hidden": "true" }),
        legend: h("ul", { class: "legend", role: "list" }),
      };
      return [
        made,
        h("div", { class: "one" }, h("p", { class: "head" }, made.name, made.count), made.bar, made.legend),
      ];
    };
    const [textbook, upper] = bar();
    const [real, lower] = bar();
    this.#textbook = textbook;
    this.#real = real;
    this.#sentence = h("p", { class: "sentence" });
    this.#set = h("p", { class: "notes" });
    return [
      h(
        "div",
        { class: "row" },
        field(this.word("model"), this.#model, "model"),
        field(this.word("gpu"), this.#gpu, "gpu"),
        field(this.word("memory.engine"), this.#engine, "engine"),
      ),
      upper,
      lower,
      this.#sentence,
      this.#set,
    ];
  }

  /** The engine of the lower bar: the calculator's own, where it asks one. */
  get #chosen(): EngineId {
    const { engine } = this.request;
    return engine === undefined || engine === "textbook" ? DEFAULT_ENGINE : engine;
  }

  protected show(): void {
    const { engine: _, options, ...asked } = this.request;
    const base: Request = { ...asked, gpu: asked.gpu === undefined || asked.gpu === "80gb" ? DEFAULT_GPU : asked.gpu };
    const engine = this.#chosen;
    const own = options && this.request.engine === engine ? { options } : {};
    const real = this.ask({ ...base, ...own, engine });
    const { tensor_parallel: __, pipeline_parallel: ___, data_parallel: ____, ...pooled } = base;
    const textbook = this.ask({ ...pooled, engine: "textbook" });
    if (!real || !textbook) return;
    const { catalogue } = this;
    offerModels(this.#model, catalogue, real, this.speech);
    if (this.#gpu.options.length === 0) {
      this.#gpu.append(
        ...catalogue.gpus.filter((one) => one.vendor).map(({ id, name }) => h("option", { value: id }, name)),
      );
      this.#engine.append(
        ...catalogue.engines
          .filter(({ id }) => id !== "textbook")
          .map(({ id }) => h("option", { value: id }, this.word(`engine.${id}`))),
      );
    }
    if (real.gpu.id) this.#gpu.value = real.gpu.id;
    this.#engine.value = engine;
    this.#showBar(this.#textbook, textbook, "textbook");
    this.#showBar(this.#real, real, engine);
    this.#explain(textbook, real, engine);
  }

  #showBar(at: Bar, plan: Answer, engine: EngineId): void {
    say(at.name, this.word(`engine.${engine}`));
    say(at.count, plan.sequences === null ? this.word("none") : this.word("memory.count", { n: plan.sequences }));
    const segments = plan.memory?.segments ?? [];
    at.bar.replaceChildren(
      ...segments.map(({ kind, share }) => {
        const segment = h("div", { class: `segment ${look(kind)}` });
        segment.style.inlineSize = `${100 * share}%`;
        return segment;
      }),
    );
    at.legend.replaceChildren(
      ...segments.map(({ kind, reading }) => {
        const key = kind === "reserve" ? (engine === "textbook" ? "memory.reserve" : "seg.outside") : `seg.${kind}`;
        return h(
          "li",
          {},
          h("span", { class: `swatch ${look(kind)}`, "aria-hidden": "true" }),
          h("span", {}, this.word(key, { n: plan.sequences ?? 0 })),
          h("strong", {}, this.speech.reading(reading, "three")),
        );
      }),
    );
    mark(at.legend, "aria-label", this.word("memory.holds", { engine: this.word(`engine.${engine}`) }));
  }

  #explain(textbook: Answer, real: Answer, engine: EngineId): void {
    const values = {
      engine: this.word(`engine.${engine}`),
      n: textbook.sequences ?? 0,
      m: real.sequences ?? 0,
      context: real.context,
      room: this.size(textbook, "kv_memory_bytes"),
      real: this.size(real, "kv_memory_bytes"),
      written: this.size(real, "kv_bytes_per_sequence"),
      reserved: this.size(real, "kv_reserved_per_sequence"),
    };
    const fits = (real.sequences ?? 0) > 0 ? "sentence" : "nothing";
    sayRich(this.#sentence, this.speech.stretches(`memory.${fits}`, values));
    const more = real.kv_reserved_per_sequence > real.kv_bytes_per_sequence;
    say(this.#set, this.word(more ? "memory.reserved" : "memory.same", values));
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "kv-memory": KvMemory;
  }
}
