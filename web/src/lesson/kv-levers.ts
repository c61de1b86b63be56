/**
 * <kv-levers>: what each way of making room would add to the conversations that fit, as bars; each is a button that does
 * it, in the calculator that `for` names or here, and can be undone. The attributes are the request's.
 */
import type { Answer, Request } from "../contract.js";
import { h, say, sayRich } from "../nodes.js";
import type { Values } from "../words.js";
import { attributes, LessonElement, type RequestKey } from "./element.js";
import css from "./kv-levers.css";
import { button } from "./parts.js";

/** Half the bits of a format; what is not here has no half that engines use. */
const HALF: Record<string, string> = {
  fp32: "bf16",
  bf16: "fp8",
  fp16: "fp8",
  fp8: "int4",
  fp8_block: "int4",
  int8: "int4",
  q8_0: "q4_0",
};
/** What a model with a KV head for each query head is grouped into. */
const GROUPS = 8;

/** In the order in which equals are named: those that cost least come first. */
const LEVERS = ["kv", "weights", "heads", "context", "gpus"] as const;
type Lever = (typeof LEVERS)[number];

type Changes = { [key in RequestKey]?: unknown };

interface Pull {
  changes: Changes;
  values: Values;
}

interface Row {
  button: HTMLButtonElement;
  name: HTMLElement;
  bar: HTMLElement;
  added: HTMLElement;
  pull: Pull | null;
}

export class KvLevers extends LessonElement {
  static readonly observedAttributes = attributes();
  static override readonly css = css;

  #now!: HTMLElement;
  #rows!: Record<Lever, Row>;
  #undo!: HTMLButtonElement;
  #sentence!: HTMLElement;
  #done: Changes[] = [];

  protected build(): Node[] {
    this.#now = h("p", { class: "now" });
    this.#rows = {} as Record<Lever, Row>;
    const list = h("ul", { class: "levers", role: "list" });
    for (const lever of LEVERS) {
      const name = h("span", { class: "name" });
      const bar = h("span", { class: "added cache" });
      const added = h("b");
      const pull = button("", () => this.#pull(lever), "lever");
      pull.append(name, h("span", { class: "track", "aria-hidden": "true" }, bar), added);
      this.#rows[lever] = { button: pull, name, bar, added, pull: null };
      list.append(h("li", {}, pull));
    }
    this.#undo = button(this.word("levers.undo"), () => this.#back());
    this.#sentence = h("p", { class: "sentence" });
    return [this.#now, list, h("div", { class: "buttons" }, this.#undo), this.#sentence];
  }

  /** What a lever changes; null where it has nothing to change. */
  #pullOf(lever: Lever, plan: Answer, request: Request): Pull | null {
    const bits = (id: string) => this.catalogue.formats.find((one) => one.id === id)?.bits ?? 0;
    const halved = (key: "kv" | "weights", from: string | null, changes: Changes = {}): Pull | null => {
      const to = from && HALF[from];
      return to ? { changes: { ...changes, [key]: to }, values: { to: bits(to), from: bits(from), id: to } } : null;
    };
    switch (lever) {
      case "kv":
        return plan.kv.k === plan.kv.v ? halved("kv", plan.kv.k) : null;
      case "weights":
        return request.weight_bytes === undefined ? halved("weights", plan.weights) : null;
      case "gpus": {
        const gpus = 2 * plan.deployment.gpus;
        const split = request.tensor_parallel === undefined ? {} : { tensor_parallel: gpus };
        return { changes: { gpus, ...split }, values: { to: gpus, from: plan.deployment.gpus } };
      }
      case "context": {
        const context = Math.floor(plan.context / 2);
        return context < 1 ? null : { changes: { context }, values: { to: context, from: plan.context } };
      }
      case "heads": {
        const from = Math.max(...plan.model.layers.map((run) => run.kv_heads ?? 0));
        const to = from === plan.model.query_heads && from > GROUPS ? GROUPS : Math.floor(from / 2);
        return to < 1 ? null : { changes: { kv_heads: to }, values: { to, from, query: plan.model.query_heads ?? 0 } };
      }
    }
  }

  #pull(lever: Lever): void {
    const { pull, name } = this.#rows[lever];
    if (!pull) return;
    const request = this.request as Changes;
    const before = Object.keys(pull.changes).map((key) => [key, request[key as RequestKey] ?? null]);
    this.#done.push(Object.fromEntries(before));
    this.#change(pull.changes, this.word("levers.applied", { name: name.textContent ?? "" }));
  }

  #back(): void {
    const before = this.#done.pop();
    if (before) this.#change(before, this.word("levers.undone"));
  }

  #change(changes: Changes, done: string): void {
    void this.put(changes).then(() => {
      const plan = this.ask(this.request);
      if (plan) this.emit("kv-change", plan);
      this.announce(`${done} ${this.#now.textContent} ${this.#sentence.textContent}`);
    });
  }

  protected show(): void {
    const request = this.request;
    const plan = this.ask(request);
    if (!plan) return;
    const now = plan.sequences;
    sayRich(
      this.#now,
      this.speech.stretches("levers.now", { model: plan.model.name, n: now ?? 0, context: plan.context }),
    );
    const gains = new Map<Lever, number>();
    for (const lever of LEVERS) {
      const row = this.#rows[lever];
      row.pull = this.#pullOf(lever, plan, request);
      const after = row.pull && this.ask({ ...request, ...(row.pull.changes as Request) });
      row.button.disabled = !after;
      say(row.name, row.pull ? this.word(`lever.${lever}`, row.pull.values) : this.word(`lever.${lever}.no`));
      if (after && after.sequences !== null) gains.set(lever, after.sequences - (now ?? 0));
    }
    const most = Math.max(1, ...gains.values());
    for (const lever of LEVERS) {
      const { bar, added } = this.#rows[lever];
      const gain = gains.get(lever);
      bar.style.inlineSize = `${(100 * Math.max(gain ?? 0, 0)) / most}%`;
      say(added, gain === undefined ? "" : this.word("levers.added", { n: gain }));
    }
    this.#undo.disabled = this.#done.length === 0;
    this.#explain(plan, gains);
  }

  /** Which lever is the strongest, and why. */
  #explain(plan: Answer, gains: Map<Lever, number>): void {
    const strongest = (but?: Lever) => {
      let best: Lever | null = null;
      for (const lever of LEVERS) {
        if (lever !== but && (gains.get(lever) ?? 0) > (best ? (gains.get(best) ?? 0) : 0)) best = lever;
      }
      return best;
    };
    const best = strongest();
    if (!best) {
      sayRich(this.#sentence, this.speech.stretches("levers.none"));
      return;
    }
    const share = plan.memory?.segments.find((one) => one.kind === "weights")?.share ?? 0;
    const values: Values = {
      ...this.#rows[best].pull?.values,
      name: this.#rows[best].name.textContent ?? "",
      n: gains.get(best) ?? 0,
      share: this.speech.percent(Math.round(share * 100) / 100),
      model: plan.model.name,
    };
    const because = (lever: Lever) => {
      if (plan.limit === "weights_do_not_fit") return "levers.why.no-room";
      if (lever === "gpus") return "levers.why.gpus";
      const equals = [...gains.values()].filter((gain) => gain === gains.get(lever)).length - 1;
      return equals > 0 ? "levers.why.equals" : `levers.why.${lever}`;
    };
    const keys = ["levers.best", because(best)];
    const free = best === "gpus" ? strongest("gpus") : null;
    if (free) {
      const { name, pull } = this.#rows[free];
      keys.push("levers.free");
      if (!keys.includes(because(free))) keys.push(because(free));
      Object.assign(values, pull?.values, { free: name.textContent ?? "", m: gains.get(free) ?? 0 });
    }
    const parts = keys.flatMap((key) => [...this.speech.stretches(key, values), ...this.speech.stretches("gap")]);
    sayRich(this.#sentence, parts.slice(0, -1));
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "kv-levers": KvLevers;
  }
}
