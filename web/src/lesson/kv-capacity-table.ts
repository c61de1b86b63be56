/**
 * <kv-capacity-table>: capacity by context length for chosen deployments, filled on request. Attributes:
 *
 * - `deployments`: requests separated by semicolons, each a list of `key=id` as in the calculator's attributes:
 *   `model=llama-3-8b; model=llama-3-70b gpus=4 kv=fp8`
 * - `contexts`: context lengths separated by spaces
 * - `auto`: fill at once, without a button
 */
import type { Answer, Failure, Kernel, Request } from "../contract.js";
import type { KernelError } from "../kernel.js";
import { h, mark, say, sayRich } from "../nodes.js";
import type { Precision, Speech } from "../words.js";
import { kit, part } from "./kit.js";
import css from "./kv-capacity-table.css";

const DEPLOYMENTS = "model=llama-3-8b; model=llama-3-70b gpus=4";
const CONTEXTS = "1024 2048 4096 8192 16384 32768 65536 131072";
/** The context that the line on grouped queries counts at, when the table has it. */
const USUAL_CONTEXT = 8192;
const SPOKEN_AS_TEXT = ["model", "weights", "kv", "gpu", "engine"];

function requestOf(text: string): Request {
  const request: Record<string, unknown> = {};
  for (const pair of text.trim().split(/\s+/)) {
    const [key = "", ...rest] = pair.split("=");
    const value = rest.join("=");
    request[key] = SPOKEN_AS_TEXT.includes(key) ? value : (kit.numeral(value) ?? value);
  }
  return request as unknown as Request;
}

/** How many KV heads there would be if each query head had its own; null where nothing would change. */
function ungrouped(plan: Answer): number | null {
  const heads = plan.model.query_heads;
  return plan.model.layers.some((run) => run.kv_heads !== undefined && run.kv_heads < (heads ?? 0)) ? heads : null;
}

interface Row {
  context: number;
  sequence: HTMLElement;
  room: HTMLElement;
  count: HTMLElement;
}

interface Shown {
  request: Request;
  caption: HTMLElement;
  rows: Row[];
}

export class KvCapacityTable extends HTMLElement {
  static observedAttributes: string[] = ["deployments", "contexts", "auto"];

  readonly #root: ShadowRoot;
  #kernel: Kernel | null = null;
  /** The kernel that an engine needs did not come. */
  #lacking = false;
  /** Why the table cannot be filled. */
  #woe: unknown;
  #speech!: Speech;
  #base: HTMLElement | null = null;
  #button!: HTMLButtonElement;
  #shown: Shown[] = [];
  #gqa!: HTMLElement;
  #trouble!: HTMLElement;
  #announceReady!: () => void;
  #queued = false;

  /** Resolves once the button can be pressed, or with `auto` once the table is filled. */
  readonly ready: Promise<void> = new Promise((resolve) => {
    this.#announceReady = resolve;
  });

  constructor() {
    super();
    this.#root = this.attachShadow({ mode: "open" });
  }

  get deployments(): string {
    return this.getAttribute("deployments") ?? DEPLOYMENTS;
  }

  set deployments(text: string) {
    mark(this, "deployments", text);
  }

  get contexts(): string {
    return this.getAttribute("contexts") ?? CONTEXTS;
  }

  set contexts(text: string) {
    mark(this, "contexts", text);
  }

  get auto(): boolean {
    return this.hasAttribute("auto");
  }

  set auto(on: boolean) {
    mark(this, "auto", on ? "" : null);
  }

  /** The state as a link carries it. */
  get state(): string {
    const given = KvCapacityTable.observedAttributes.flatMap((key) =>
      this.hasAttribute(key) ? [[key, this.getAttribute(key) ?? ""]] : [],
    );
    return `${new URLSearchParams(given)}`;
  }

  set state(state: string) {
    const given = new URLSearchParams(state);
    for (const key of KvCapacityTable.observedAttributes) mark(this, key, given.get(key));
  }

  connectedCallback(): void {
    for (const key of [...KvCapacityTable.observedAttributes, "state"]) {
      if (!Object.hasOwn(this, key)) continue;
      const self = this as unknown as Record<string, unknown>;
      const value = self[key];
      delete self[key];
      self[key] = value;
    }
    const words = kit.speakAs(this, part, this.#speak);
    if (!this.#base) this.#speak(kit.speechFor("en"));
    kit.adopt(this.#root, kit.styles[0], css);
    if (!this.#kernel)
      kit
        .loadKernel()
        .finally(() => words)
        .then(this.#start, this.#fail);
  }

  disconnectedCallback(): void {
    kit.turns.delete(this);
  }

  #speak = (speech: Speech): void => {
    if (this.#base && speech === this.#speech) return;
    this.#speech = speech;
    this.#build(this.#root);
    if (this.#woe) this.#fail(this.#woe);
  };

  adoptedCallback(): void {
    if (this.#base) kit.adopt(this.#root, kit.styles[0], css);
  }

  attributeChangedCallback(): void {
    if (!this.#base || this.#queued) return;
    this.#queued = true;
    queueMicrotask(() => {
      this.#queued = false;
      if (this.isConnected) {
        this.#build(this.#root);
      }
    });
  }

  #start = (kernel: Kernel): void => {
    if (this.#kernel) return;
    this.#kernel = kernel;
    this.#enable();
    this.#announceReady();
  };

  #fail = (error: unknown): void => {
    this.#woe = error;
    const { trouble = "failed", message = String(error) } = error as Partial<KernelError>;
    sayRich(this.#trouble, this.#speech.stretches(`trouble.${trouble}`, { detail: message }));
    if (this.#base) this.#base.className = "kv failed";
  };

  #enable(): void {
    const kernel = this.#kernel;
    const beyond = ({ request, rows }: Shown) =>
      rows.some(({ context }) => kernel && kit.needsFull(kernel.plan({ ...request, context })));
    if (!this.#lacking && this.#shown.some(beyond)) {
      kit.loadFullKernel().then(
        (full) => {
          this.#kernel = full;
          this.#enable();
        },
        () => {
          this.#lacking = true;
          this.#enable();
        },
      );
      return;
    }
    if (this.#base) this.#base.className = "kv";
    this.#button.disabled = false;
    for (const shown of this.#shown) this.#describe(shown);
    if (this.auto) this.run();
  }

  #build(root: ShadowRoot): void {
    const word = (key: string) => this.#speech.text(key);
    const contexts = this.contexts
      .trim()
      .split(/[\s,]+/)
      .map((text) => kit.numeral(text) ?? text);
    this.#shown = this.deployments
      .split(";")
      .filter((text) => text.trim() !== "")
      .map((text) => ({
        request: requestOf(text),
        caption: h("caption", { part: "caption" }, h("span", {}, "\u00a0")),
        rows: contexts.map((context) => ({
          context: context as number,
          sequence: h("td", {}, "\u00a0"),
          room: h("td"),
          count: h("td"),
        })),
      }));
    const columns = ["context", "sequence", "room", "count"].map((key) =>
      h("th", { scope: "col" }, word(`table.${key}`)),
    );
    const tables = this.#shown.map((shown) =>
      h(
        "table",
        { part: "table" },
        shown.caption,
        h("thead", {}, h("tr", {}, ...columns.map((cell) => cell.cloneNode(true)))),
        h(
          "tbody",
          {},
          ...shown.rows.map((row) => {
            const { context } = row;
            const name = typeof context === "number" ? this.#speech.number(context) : String(context);
            return h("tr", {}, h("th", { scope: "row" }, name), row.sequence, row.room, row.count);
          }),
        ),
      ),
    );
    this.#button = h("button", { type: "button", part: "button" }, word("table.run"));
    this.#button.disabled = true;
    this.#button.hidden = this.auto;
    this.#button.addEventListener("click", () => {
      this.run();
      kit.announce(`${word("table.done")} ${this.#gqa.textContent}`);
    });
    this.#gqa = h("p", { class: "gqa", part: "sentence" });
    this.#trouble = h("p", { class: "trouble", part: "problem" });
    this.#base = h(
      "div",
      { class: "kv waiting" },
      h("div", { class: "example" }, h("slot")),
      this.#trouble,
      h("div", { class: "body" }, this.#button, h("div", { class: "tables" }, ...tables), this.#gqa),
    );
    mark(this.#base, "lang", this.#speech.language);
    mark(this.#base, "dir", this.#speech.direction);
    root.replaceChildren(this.#base);
    if (this.#kernel) this.#enable();
  }

  /** Names a deployment above its table. */
  #describe(shown: Shown): void {
    const answer = this.#kernel?.plan({ context: USUAL_CONTEXT, ...shown.request });
    if (!answer) return;
    if (kit.refused(answer)) {
      this.#refuse(shown.caption, answer);
      return;
    }
    const speech = this.#speech;
    const format = (id: string) => {
      const bits = this.#kernel?.catalogue().formats.find((one) => one.id === id)?.bits;
      return bits === undefined ? id : speech.text("format", { bits, id });
    };
    const { k, v } = answer.kv;
    shown.caption.replaceChildren(
      speech.text("table.caption", {
        model: answer.model.name || speech.text("own-model"),
        gpus: answer.deployment.gpus,
        gpu: answer.gpu.name,
      }),
      h(
        "span",
        {},
        speech.text("table.weights", {
          weights: answer.weights ? format(answer.weights) : speech.text("weights-unknown"),
          kv: k === v ? format(k) : speech.text("formats", { k: format(k), v: format(v) }),
        }),
      ),
    );
  }

  #refuse(node: HTMLElement, { error }: Failure): void {
    node.replaceChildren(h("span", { class: "problem" }, this.#speech.text("error.other", { ...error })));
  }

  /** Fills the tables. */
  run(): void {
    const kernel = this.#kernel;
    if (!kernel) return;
    const speech = this.#speech;
    let telling: { request: Request; plan: Answer } | null = null;
    for (const { request, rows } of this.#shown) {
      for (const row of rows) {
        const plan = kernel.plan({ ...request, context: row.context });
        if (kit.refused(plan)) {
          this.#refuse(row.sequence, plan);
          say(row.room, "");
          say(row.count, "");
          continue;
        }
        const cell = (node: HTMLElement, name: string, bytes: number | null, precision: Precision) => {
          const reading = plan.readings[name];
          say(node, reading ? speech.reading(reading, precision) : speech.text("none"));
          mark(node, "title", bytes === null ? null : speech.text("of.bytes", { v: speech.number(bytes), n: bytes }));
        };
        cell(row.sequence, "kv_bytes_per_sequence", plan.kv_bytes_per_sequence, "three");
        cell(row.room, "kv_memory_bytes", plan.kv_memory_bytes, "spoken");
        row.count.replaceChildren(plan.sequences === null ? speech.text("none") : speech.number(plan.sequences));
        // No zero without its reason.
        const why =
          plan.limit === "weights_do_not_fit"
            ? "count-weights"
            : plan.limit === "one_sequence_too_long"
              ? "count-long"
              : plan.limit === null
                ? "weights-unknown"
                : "";
        if (why) row.count.append(h("small", {}, speech.text(why)));
        if (
          plan.sequences &&
          ungrouped(plan) &&
          (row.context === USUAL_CONTEXT || telling?.plan.model.id !== plan.model.id)
        ) {
          telling = { request: { ...request, context: row.context }, plan };
        }
      }
    }
    say(this.#gqa, "");
    if (telling) this.#compare(kernel, telling.request, telling.plan);
  }

  /** The line that makes grouped queries matter. */
  #compare(kernel: Kernel, request: Request, grouped: Answer): void {
    const plain = kernel.plan({ ...request, kv_heads: ungrouped(grouped) ?? 1 });
    const shared = grouped.model.layers.find((run) => run.kv_heads)?.kv_heads ?? 0;
    const [before, after] = [
      grouped.readings.kv_bytes_per_token,
      !kit.refused(plain) && plain.readings.kv_bytes_per_token,
    ];
    if (kit.refused(plain) || !before || !after) return;
    const speech = this.#speech;
    sayRich(
      this.#gqa,
      speech.stretches("table.gqa", {
        model: grouped.model.name,
        kv_heads: shared,
        query_heads: grouped.model.query_heads ?? 0,
        with: speech.reading(before),
        without: speech.reading(after),
        ratio: speech.number((grouped.model.query_heads ?? 0) / shared, 1),
        n: grouped.sequences ?? 0,
        context: grouped.context,
        left: plain.sequences ?? 0,
      }),
    );
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "kv-capacity-table": KvCapacityTable;
  }
}
