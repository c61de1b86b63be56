/**
 * <kv-attention>: the same model with a KV head for each query head, for each group of them, one for all, a latent, and
 * windows: heads drawn as readers that share notebooks, and what that does to bytes and conversations. Attribute beside
 * the request's: `show`, which of them, separated by spaces (`mha gqa mqa mla window`), and `groups`, the KV heads of the second.
 */
import type { Answer, LayerRun, Request } from "../contract.js";
import { h, mark, say, sayRich } from "../nodes.js";
import { attributes, LessonElement } from "./element.js";
import css from "./kv-attention.css";
import { svg } from "../picture.js";
import { field, offerModels } from "./parts.js";

const VARIANTS = ["mha", "gqa", "mqa", "mla", "window"] as const;
type Variant = (typeof VARIANTS)[number];

/** KV heads where a model's own are not groups. */
const GROUPS = 8;
/** The row of DeepSeek-V2 and V3: a latent of 512 numbers and 64 for positions. */
const LATENT = 512 + 64;
/** One layer in six sees everything, the others a window: the pattern of Gemma 3. */
const [WINDOW, ONE_IN] = [1024, 6];
/** Kinds of layers that no way of sharing heads changes. */
const OTHER_KINDS = ["recurrent", "none", "shared", "cross"];

/** The picture's units: across for the whole width, and down. */
const [WIDTH, HEAD_Y, BOOK_Y, BOOK_HEIGHT, HEIGHT] = [640, 10, 36, 22, 60];
const THINNEST_BOOK = 2;

interface Row {
  item: HTMLElement;
  heads: HTMLElement;
  picture: SVGSVGElement;
  token: HTMLElement;
  count: HTMLElement;
  bar: HTMLElement;
}

/** The first layers that have KV heads; a hybrid may begin with others. */
const headed = (plan?: Answer): LayerRun | undefined => plan?.model.layers.find((run) => run.kv_heads);

/** Layers that keep every token. */
const fullLayers = (plan: Answer): number =>
  plan.model.layers.reduce((sum, { kind, count }) => sum + (kind === "full" ? count : 0), 0);

/** Whether the model has windows of its own, all of one length, beside nothing but full attention. */
function ownWindows(plan: Answer): boolean {
  const windows = new Set(plan.model.layers.filter(({ kind }) => kind === "window").map((run) => run.window));
  return windows.size === 1 && plan.model.layers.every(({ kind }) => kind === "full" || kind === "window");
}

export class KvAttention extends LessonElement {
  static readonly observedAttributes = attributes("show", "groups");
  static override readonly css = css;

  #model!: HTMLSelectElement;
  #rows!: Record<Variant, Row>;
  #groups!: HTMLInputElement;
  /** The numbers of KV heads that share out the query heads evenly. */
  #shares: number[] = [];
  #sentence!: HTMLElement;

  protected build(): Node[] {
    this.#model = this.modelSelect(() => {
      this.removeAttribute("groups");
      this.#tell();
    });
    this.#rows = {} as Record<Variant, Row>;
    const list = h("ul", { class: "variants", role: "list" });
    for (const variant of VARIANTS) {
      const heads = h("p", { class: "about" });
      const picture = svg("svg", {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        preserveAspectRatio: "none",
        "aria-hidden": "true",
      });
      const token = h("b");
      const count = h("b");
      const bar = h("span", { class: "cache" });
      const item = h(
        "li",
        {},
        h("div", { class: "words" }, h("h3", {}, this.word(`attention.${variant}`)), heads),
        picture,
        h("p", { class: "figure" }, token, h("span", {}, this.word("attention.token"))),
        h(
          "p",
          { class: "figure" },
          count,
          h("span", {}, this.word("attention.count")),
          h("span", { class: "track", "aria-hidden": "true" }, bar),
        ),
      );
      this.#rows[variant] = { item, heads, picture, token, count, bar };
      list.append(item);
    }
    this.#groups = h("input", {
      type: "range",
      min: "0",
      step: "1",
      autocomplete: "off",
      "aria-label": this.word("attention.groups"),
    });
    this.#groups.addEventListener("input", () =>
      mark(this, "groups", String(this.#shares[this.#groups.valueAsNumber])),
    );
    this.#groups.addEventListener("change", () => this.#tell());
    this.#rows.gqa.heads.after(this.#groups);
    this.#sentence = h("p", { class: "sentence" });
    const key = (kind: string) =>
      h("li", {}, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), this.word(`attention.key.${kind}`));
    return [
      h("div", { class: "row" }, field(this.word("model"), this.#model, "model")),
      h("ul", { class: "keys", role: "list" }, key("query"), key("cache")),
      list,
      this.#sentence,
    ];
  }

  #tell(): void {
    this.tellOf(this.#sentence);
  }

  /** A variant's request; null where the model has no such variant. */
  #request(variant: Variant, plan: Answer, request: Request): Request | null {
    const query = plan.model.query_heads;
    const heads = headed(plan);
    // Only what attends is changed: states, and layers that keep nothing, stay as they are.
    const kept = plan.model.layers.filter((run) => OTHER_KINDS.includes(run.kind));
    const layers = plan.model.layers.reduce((sum, run) => sum + (kept.includes(run) ? 0 : run.count), 0);
    if (layers === 0) return null;
    const { model: _, config: __, kv_heads: ___, ...rest } = request;
    const known = plan.weight_bytes === null ? {} : { weight_bytes: plan.weight_bytes };
    const made = (runs: LayerRun[]): Request => ({
      ...rest,
      ...known,
      model: { name: plan.model.name, layers: [...runs, ...kept] },
    });
    switch (variant) {
      case "mla":
        return made([{ count: layers, kind: "latent", latent_width: LATENT }]);
      case "window": {
        if (ownWindows(plan)) return request;
        if (!heads) return null;
        const { kv_heads = 1, key_width = 1, value_width = key_width } = heads;
        const shape = { kv_heads, key_width, value_width };
        const full = Math.ceil(layers / ONE_IN);
        const runs: LayerRun[] = [{ count: full, kind: "full", ...shape }];
        if (layers > full) runs.push({ count: layers - full, kind: "window", window: WINDOW, ...shape });
        return made(runs);
      }
      default: {
        if (!heads || query === null) return null;
        const own = heads.kv_heads ?? 1;
        const grouped = this.whole("groups", own > 1 && own < query ? own : GROUPS);
        const kv_heads = variant === "mha" ? query : variant === "mqa" ? 1 : grouped;
        return { ...request, kv_heads };
      }
    }
  }

  /** The variants that `show` names: all of them where it names none that there is. */
  #wanted(): readonly Variant[] {
    const text = this.getAttribute("show");
    const names: readonly string[] = text?.trim().split(/\s+/) ?? VARIANTS;
    const known = VARIANTS.filter((variant) => names.includes(variant));
    const wanted = known[0] ? known : VARIANTS;
    if (known.length < names.length) {
      this.complainOf("show", this.word("choices", { list: VARIANTS.join(" ") }), text, wanted.join(" "));
    }
    return wanted;
  }

  protected show(): void {
    const { kv_heads: _, ...request } = this.request;
    const plan = this.ask(request);
    if (!plan) return;
    offerModels(this.#model, this.catalogue, plan, this.speech);
    const wanted = this.#wanted();
    const answers = new Map<Variant, Answer>();
    for (const variant of VARIANTS) {
      const asked = wanted.includes(variant) ? this.#request(variant, plan, request) : null;
      const answer = asked && this.ask(asked);
      if (answer) answers.set(variant, answer);
    }
    const most = Math.max(1, ...[...answers.values()].map((answer) => answer.sequences ?? 0));
    const own = plan.model.layers.length === 1 ? plan.model.layers[0] : undefined;
    for (const variant of VARIANTS) {
      const row = this.#rows[variant];
      const answer = answers.get(variant);
      row.item.hidden = !answer;
      if (!answer) continue;
      const kv_heads = headed(answer)?.kv_heads ?? 1;
      const isOwn =
        variant === "mla"
          ? own?.kind === "latent" && own.latent_width === LATENT
          : variant === "window"
            ? ownWindows(plan)
            : own?.kind === "full" && own.kv_heads === kv_heads;
      row.item.classList.toggle("own", isOwn);
      const values = {
        n: kv_heads,
        query: plan.model.query_heads ?? 0,
        layers: answer.model.layer_count,
        full: fullLayers(answer),
        window: answer.model.layers.find((run) => run.kind === "window")?.window ?? WINDOW,
        latent: LATENT,
      };
      const about = this.word(`attention.${variant}.about`, values);
      say(row.heads, isOwn ? this.word("attention.own", { about, model: plan.model.name }) : about);
      say(row.token, this.size(answer, "kv_bytes_per_token"));
      say(row.count, answer.sequences === null ? this.word("none") : this.speech.number(answer.sequences));
      row.bar.style.inlineSize = `${(100 * (answer.sequences ?? 0)) / most}%`;
      this.#draw(row.picture, variant, plan.model.query_heads ?? 1, kv_heads, answer);
    }
    const query = plan.model.query_heads ?? 0;
    this.#shares = Array.from({ length: query }, (_, i) => i + 1).filter((heads) => query % heads === 0);
    const kvHeads = headed(answers.get("gqa"))?.kv_heads ?? 1;
    const at = Math.max(this.#shares.indexOf(kvHeads), 0);
    this.#groups.max = String(this.#shares.length - 1);
    this.#groups.value = String(at);
    mark(this.#groups, "aria-valuetext", this.word("attention.gqa.about", { query, n: kvHeads }));
    this.#explain(plan, answers, this.#request("mha", plan, request) !== null);
  }

  /** Query heads above, and under them the notebooks that they share: their area is what a token costs. */
  #draw(picture: SVGSVGElement, variant: Variant, query: number, kvHeads: number, answer: Answer): void {
    const share = variant === "window" ? fullLayers(answer) / answer.model.layer_count : 1;
    const drawn = `${variant} ${query} ${kvHeads} ${share}`;
    if (picture.dataset.drawn === drawn) return;
    picture.dataset.drawn = drawn;
    const books = variant === "mla" ? 1 : Math.min(kvHeads, query);
    const step = WIDTH / query;
    const at = (head: number) => (head + 0.5) * step;
    const bookAt = (head: number) => (Math.floor((head * books) / query) + 0.5) * (WIDTH / books);
    const { key_width = 128, value_width = 128 } = headed(answer) ?? {};
    // A latent is as wide as the numbers in it, beside a head's key and value.
    const relative = variant === "mla" ? LATENT / (key_width + value_width) : 1;
    const wide = Math.max(0.8 * step * relative, THINNEST_BOOK);
    const threads = Array.from({ length: query }, (_, i) => `M${at(i)} ${HEAD_Y}L${bookAt(i)} ${BOOK_Y}`).join("");
    const r = Math.min(0.32 * step, 7);
    const dots = Array.from(
      { length: query },
      (_, i) => `M${at(i) - r} ${HEAD_Y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    ).join("");
    const notebook = (part: number) =>
      Array.from({ length: books }, (_, i) => {
        const x = (i + 0.5) * (WIDTH / books) - wide / 2;
        return `M${x} ${BOOK_Y}h${wide}v${BOOK_HEIGHT * part}h${-wide}z`;
      }).join("");
    picture.replaceChildren(
      svg("path", { class: "threads", d: threads }),
      svg("path", { class: "query", d: dots }),
      ...(variant === "window" ? [svg("path", { class: "book once", d: notebook(1) })] : []),
      svg("path", { class: "book", d: notebook(share) }),
    );
  }

  /** `shared`: whether the model has heads to share out, whatever rows are shown. */
  #explain(plan: Answer, answers: Map<Variant, Answer>, shared: boolean): void {
    const [mha, gqa] = [answers.get("mha"), answers.get("gqa")];
    if (!mha || !gqa) {
      sayRich(
        this.#sentence,
        this.speech.stretches(shared ? "attention.weights" : "attention.other", { model: plan.model.name }),
      );
      return;
    }
    sayRich(
      this.#sentence,
      this.speech.stretches("attention.sentence", {
        model: plan.model.name,
        query: plan.model.query_heads ?? 0,
        heads: headed(gqa)?.kv_heads ?? 0,
        mha: this.size(mha, "kv_bytes_per_token"),
        gqa: this.size(gqa, "kv_bytes_per_token"),
        n: mha.sequences ?? 0,
        m: gqa.sequences ?? 0,
        context: plan.context,
      }),
    );
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "kv-attention": KvAttention;
  }
}
