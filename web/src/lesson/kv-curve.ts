/**
 * <kv-curve>: how many conversations fit at each context length, both axes logarithmic, for one deployment and up to three
 * kept ones. Attributes beside the request's, of which `context` is the marked point: `keep`, the kept deployments
 * separated by spaces, each as a link has it (`model=llama-3.1-70b&gpus=4`).
 */
import type { Answer, Request } from "../contract.js";
import { h, mark, say, sayRich } from "../nodes.js";
import { pageColour, pictureFile, save, svg } from "../picture.js";
import { attributes, LessonElement } from "./element.js";
import { kit } from "./kit.js";
import css from "./kv-curve.css";
import { button } from "./parts.js";

const MOST_KEPT = 3;
/** Where the context axis starts and where it ends at least. */
const [FIRST, LAST] = [1024, 131072];
const DEFAULT_CONTEXT = 8192;
/** Points of a line in each doubling of the context. */
const POINTS = 2;
/** Lines that are remembered, so that coming back to one costs nothing. */
const REMEMBERED = 16;
/** Pixels around the plot. */
const MARGIN = { top: 32, right: 24, bottom: 44, left: 56 };
/** Pixels that a tick's label wants along the context axis. */
const LABEL = 64;

interface Line {
  request: Request;
  name: string;
  /** Contexts and the unrounded count at each. */
  points: [number, number][];
  longest: number;
}

interface Scale {
  x(context: number): number;
  y(count: number): number;
  contextAt(x: number): number;
  contexts: [number, number];
  counts: [number, number];
  width: number;
  height: number;
}

export class KvCurve extends LessonElement {
  static readonly observedAttributes = attributes("keep");
  static override readonly css = css;

  #picture!: SVGSVGElement;
  #axes!: SVGGElement;
  #paths!: SVGGElement;
  #guide!: SVGGElement;
  #handle!: SVGGElement;
  #legend!: HTMLElement;
  #sentence!: HTMLElement;
  #hover!: HTMLElement;
  #keep!: HTMLButtonElement;
  #table!: HTMLTableElement;
  #details!: HTMLDetailsElement;
  #width = 640;
  #height = 360;
  #scale: Scale | null = null;
  #lines: Line[] = [];
  #known = new Map<string, Line>();
  #plan: Answer | null = null;
  #drawn = "";
  #dragging = false;

  protected build(): Node[] {
    this.#axes = svg("g", { class: "axes" });
    this.#paths = svg("g");
    this.#guide = svg("g", { class: "guide" });
    this.#handle = svg(
      "g",
      { class: "handle", role: "slider", tabindex: 0, "aria-label": this.word("context") },
      svg("path", { class: "drop" }),
      svg("circle", { class: "touch", r: 22 }),
      svg("circle", { class: "ring", r: 9 }),
    );
    this.#picture = svg("svg", { class: "plot" }, this.#axes, this.#paths, this.#guide, this.#handle);
    this.#handle.addEventListener("keydown", this.#key);
    this.#picture.addEventListener("pointerdown", this.#grab);
    this.#picture.addEventListener("pointermove", this.#move);
    this.#picture.addEventListener("pointerup", this.#drop);
    this.#picture.addEventListener("pointercancel", this.#drop);
    this.#picture.addEventListener("pointerleave", () => this.#point(null));
    new ResizeObserver(([entry]) => {
      const { width = 0, height = 0 } = entry?.contentRect ?? {};
      if (width === 0 || (width === this.#width && height === this.#height)) return;
      this.#width = width;
      this.#height = height;
      this.#drawn = "";
      if (this.kernel) this.#draw();
    }).observe(this.#picture);
    this.#legend = h("ul", { class: "lines", role: "list", "aria-label": this.word("curve.lines") });
    this.#sentence = h("p", { class: "sentence" });
    this.#hover = h("p", { class: "hover", "aria-hidden": "true" });
    this.#keep = button(this.word("curve.keep"), () => this.#keepLine());
    this.#table = h("table");
    this.#details = h(
      "details",
      {},
      h("summary", {}, h("span", {}, this.word("curve.table"))),
      h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": this.word("curve.table") }, this.#table),
    );
    this.#details.addEventListener("toggle", () => this.#showTable());
    this.#drawn = "";
    const saved = (type: "svg" | "png") =>
      button(this.word(`curve.save.${type}`), () => void this.#save(type), "plain");
    return [
      h("figure", {}, this.#picture, this.#hover),
      this.#legend,
      h("div", { class: "buttons" }, this.#keep, saved("svg"), saved("png")),
      this.#sentence,
      this.#details,
    ];
  }

  // ---- lines -----------------------------------------------------------------------------------------------------------

  #kept(): Request[] {
    const texts = (this.getAttribute("keep") ?? "").split(/\s+/).filter(Boolean).slice(0, MOST_KEPT);
    return texts.map((text) => {
      const request: Record<string, unknown> = {};
      for (const [key, value] of new URLSearchParams(text)) {
        const known = kit.KEYS.find((one) => one === key);
        if (known) request[known] = kit.fromText(known, value);
      }
      return request as Request;
    });
  }

  #keepLine(): void {
    const { context: _, ...request } = this.request;
    const text = new URLSearchParams();
    for (const [key, value] of Object.entries(request)) if (value !== undefined) text.set(key, kit.toText(value));
    mark(this, "keep", `${this.getAttribute("keep") ?? ""} ${text}`.trim());
    this.announce(this.word("curve.kept"));
  }

  #forget(index: number): void {
    const texts = (this.getAttribute("keep") ?? "").split(/\s+/).filter(Boolean);
    texts.splice(index, 1);
    mark(this, "keep", texts.join(" ") || null);
    this.#keep.focus();
  }

  /** The line of a deployment, remembered: a drag along it asks for nothing but the point. */
  #line({ context: _, ...request }: Request): Line | null {
    const key = JSON.stringify(request);
    const known = this.#known.get(key);
    if (known) return known;
    const first = this.ask({ ...request, context: FIRST });
    if (!first) return null;
    const longest = Math.max(first.model.max_context ?? LAST, FIRST);
    const contexts = [FIRST];
    for (let i = 1; FIRST * 2 ** (i / POINTS) < longest; i++) contexts.push(Math.round(FIRST * 2 ** (i / POINTS)));
    contexts.push(longest, ...first.slope_changes.filter((at) => at > FIRST && at < longest));
    contexts.sort((a, b) => a - b);
    const points: [number, number][] = [];
    for (const context of new Set(contexts)) {
      const plan = this.ask({ ...request, context });
      if (plan?.concurrency) points.push([context, plan.concurrency]);
    }
    const line = { request, name: this.#name(first), points, longest };
    this.#known.set(key, line);
    for (const old of this.#known.keys()) if (this.#known.size > REMEMBERED) this.#known.delete(old);
    return line;
  }

  #name(plan: Answer): string {
    const { k, v } = plan.kv;
    return this.word("curve.name", {
      model: plan.model.name || this.word("own-model"),
      gpus: plan.deployment.gpus,
      gpu: plan.gpu.name,
      weights: plan.weights ?? this.word("none"),
      kv: k === v ? k : this.word("formats", { k, v }),
    });
  }

  // ---- showing ---------------------------------------------------------------------------------------------------------

  protected show(): void {
    const request = this.request;
    const line = this.#line(request);
    const plan = this.ask({ context: DEFAULT_CONTEXT, ...request });
    if (!line || !plan) return;
    const kept = this.#kept().map((one) => this.#line(one));
    this.#plan = plan;
    this.#lines = [line, ...kept.filter((one) => one !== null)];
    this.#draw();
    const duplicate = kept.includes(line);
    this.#keep.disabled = kept.length >= MOST_KEPT || duplicate;
    const bends = plan.slope_changes.some((at) => at > FIRST && at < line.longest);
    const shape =
      plan.limit === "weights_do_not_fit" ? "none" : bends ? "bends" : plan.kv_fixed_bytes ? "fixed" : "straight";
    sayRich(
      this.#sentence,
      this.speech.stretches(`curve.${shape}`, {
        n: plan.sequences ?? 0,
        context: plan.context,
        model: plan.model.name,
      }),
    );
  }

  #draw(): void {
    const plan = this.#plan;
    if (!plan) return;
    const scale = this.#makeScale(plan.context);
    this.#scale = scale;
    const drawn = JSON.stringify([this.#lines.map((line) => line.request), scale.contexts, this.#width, this.#height]);
    if (drawn !== this.#drawn) {
      this.#drawn = drawn;
      mark(this.#picture, "viewBox", `0 0 ${this.#width} ${this.#height}`);
      this.#drawAxes(scale);
      this.#paths.replaceChildren(
        // The current line lies on top.
        ...this.#lines.map((line, i) => this.#path(line, i, scale)).reverse(),
      );
      this.#drawLegend();
      this.#showTable();
    }
    this.#lines.forEach((line, i) => {
      const value = this.#legend.children[i]?.querySelector("b");
      if (value) say(value, this.#count(line, plan.context));
    });
    const x = scale.x(plan.context);
    const y = scale.y(plan.concurrency ?? 0);
    const [drop, ...circles] = this.#handle.children;
    if (drop) mark(drop, "d", `M${x} ${y}V${scale.y(scale.counts[0])}`);
    for (const circle of circles) {
      mark(circle, "cx", String(x));
      mark(circle, "cy", String(y));
    }
    mark(this.#handle, "aria-valuemin", String(scale.contexts[0]));
    mark(this.#handle, "aria-valuemax", String(scale.contexts[1]));
    mark(this.#handle, "aria-valuenow", String(plan.context));
    mark(this.#handle, "aria-valuetext", this.word("curve.value", { context: plan.context, n: plan.sequences ?? 0 }));
  }

  #makeScale(context: number): Scale {
    const longest = Math.max(LAST, context, ...this.#lines.map((line) => line.longest));
    const contexts: [number, number] = [Math.min(FIRST, context), longest];
    const most = Math.max(10, ...this.#lines.flatMap((line) => line.points.map(([, count]) => count)));
    const counts: [number, number] = [1, 10 ** Math.ceil(Math.log10(most))];
    const width = this.#width - MARGIN.left - MARGIN.right;
    const height = this.#height - MARGIN.top - MARGIN.bottom;
    const across = Math.log(contexts[1] / contexts[0]);
    const up = Math.log(counts[1]);
    return {
      contexts,
      counts,
      width,
      height,
      x: (at) => MARGIN.left + (width * Math.log(at / contexts[0])) / across,
      y: (count) => MARGIN.top + height * (1 - Math.log(Math.max(count, 1)) / up),
      contextAt: (x) => contexts[0] * Math.exp(Math.min(Math.max((x - MARGIN.left) / width, 0), 1) * across),
    };
  }

  #drawAxes(scale: Scale): void {
    const { contexts, counts, width, height } = scale;
    const bottom = MARGIN.top + height;
    const nodes: Node[] = [];
    for (let count = 1; count <= counts[1]; count *= 10) {
      const y = scale.y(count);
      nodes.push(
        svg("path", { class: "rule", d: `M${MARGIN.left} ${y}h${width}` }),
        svg("text", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, this.speech.number(count)),
      );
    }
    const doublings = Math.floor(Math.log2(contexts[1] / FIRST));
    const every = Math.max(1, Math.ceil((doublings * LABEL) / width));
    for (let i = 0; i <= doublings; i++) {
      const x = scale.x(FIRST * 2 ** i);
      nodes.push(svg("path", { class: "rule", d: `M${x} ${MARGIN.top}v${height}` }));
      if (i % every === 0)
        nodes.push(svg("text", { x, y: bottom + 18, "text-anchor": "middle" }, this.speech.number(FIRST * 2 ** i)));
    }
    nodes.push(
      svg(
        "text",
        { class: "title", x: MARGIN.left + width, y: bottom + 37, "text-anchor": "end" },
        this.word("curve.contexts"),
      ),
      svg("text", { class: "title", x: 0, y: 14 }, this.word("curve.counts")),
    );
    this.#axes.replaceChildren(...nodes);
  }

  #path(line: Line, index: number, scale: Scale): Node {
    const { points } = line;
    let d = "";
    points.forEach(([context, count], i) => {
      // Below one conversation there is nothing to count: the line ends where it crosses one.
      const before = points[i - 1];
      if (count >= 1) d += `${d ? "L" : "M"}${scale.x(context).toFixed(1)} ${scale.y(count).toFixed(1)}`;
      else if (before && before[1] >= 1) {
        const part = Math.log(before[1]) / Math.log(before[1] / count);
        const x = scale.x(before[0]) + part * (scale.x(context) - scale.x(before[0]));
        d += `L${x.toFixed(1)} ${scale.y(1).toFixed(1)}`;
      }
    });
    return svg("path", { class: `line l${index}`, d });
  }

  #drawLegend(): void {
    this.#legend.replaceChildren(
      ...this.#lines.map((line, i) => {
        const sample = svg(
          "svg",
          { class: "sample", viewBox: "0 0 28 8", "aria-hidden": "true" },
          svg("path", { class: `line l${i}`, d: "M0 4h28" }),
        );
        const item = h("li", {}, h("span", {}, line.name), h("b"));
        item.prepend(sample);
        if (i > 0) {
          const away = button("×", () => this.#forget(i - 1), "plain");
          away.setAttribute("aria-label", this.word("curve.forget", { name: line.name }));
          item.append(away);
        }
        return item;
      }),
    );
  }

  /** How many fit of a line's conversations, as text. */
  #count(line: Line, context: number): string {
    const plan = this.kernel.plan({ ...line.request, context });
    return "error" in plan || plan.sequences === null ? this.word("none") : this.speech.number(plan.sequences);
  }

  #showTable(): void {
    if (!this.#details.open || !this.#scale) return;
    const contexts: number[] = [];
    for (let at = FIRST; at <= this.#scale.contexts[1]; at *= 2) contexts.push(at);
    this.#table.replaceChildren(
      h("caption", {}, this.word("curve.counts")),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, this.word("table.context")),
          ...this.#lines.map((line) => h("th", { scope: "col" }, line.name)),
        ),
      ),
      h(
        "tbody",
        {},
        ...contexts.map((context) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, this.speech.number(context)),
            ...this.#lines.map((line) =>
              h("td", {}, context > line.longest ? this.word("none") : this.#count(line, context)),
            ),
          ),
        ),
      ),
    );
  }

  // ---- moving ----------------------------------------------------------------------------------------------------------

  #to(context: number, settled: boolean): void {
    void this.put({ context }).then(() => {
      if (!this.#plan) return;
      this.emit(settled ? "kv-change" : "kv-input", this.#plan);
      if (settled) this.announce(this.#sentence.textContent ?? "");
    });
  }

  #key = (event: KeyboardEvent): void => {
    const scale = this.#scale;
    const now = this.#plan?.context;
    if (!scale || now === undefined) return;
    const stops = [...kit.stopsUpTo(scale.contexts[1]), scale.contexts[0]].sort((a, b) => a - b);
    const next = stops.find((stop) => stop > now) ?? now;
    const before = stops.findLast((stop) => stop < now) ?? now;
    const steps: Record<string, number> = {
      ArrowRight: next,
      ArrowUp: next,
      ArrowLeft: before,
      ArrowDown: before,
      PageUp: Math.min(now * 2, scale.contexts[1]),
      PageDown: Math.max(Math.round(now / 2), scale.contexts[0]),
      Home: scale.contexts[0],
      End: scale.contexts[1],
    };
    const to = steps[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.#to(to, true);
  };

  /** The context under a pointer, rounded as a person would. */
  #under(event: PointerEvent): number {
    const scale = this.#scale as Scale;
    const context = scale.contextAt(event.clientX - this.#picture.getBoundingClientRect().left);
    const step = context < 4096 ? 64 : context < 32768 ? 256 : 1024;
    return Math.min(Math.max(Math.round(context / step) * step, scale.contexts[0]), scale.contexts[1]);
  }

  #grab = (event: PointerEvent): void => {
    if (!this.#scale || event.button !== 0) return;
    this.#dragging = true;
    this.#picture.setPointerCapture(event.pointerId);
    this.#point(null);
    this.#to(this.#under(event), false);
  };

  #move = (event: PointerEvent): void => {
    if (!this.#scale) return;
    if (this.#dragging) this.#to(this.#under(event), false);
    else if (event.pointerType === "mouse") this.#point(this.#under(event));
  };

  #drop = (event: PointerEvent): void => {
    if (!this.#dragging) return;
    this.#dragging = false;
    this.#to(this.#under(event), true);
  };

  /** Reads every line at a context. */
  #point(context: number | null): void {
    const scale = this.#scale;
    if (!scale || context === null) {
      this.#guide.replaceChildren();
      say(this.#hover, "");
      return;
    }
    const x = scale.x(context);
    this.#guide.replaceChildren(svg("path", { class: "rule", d: `M${x} ${MARGIN.top}v${scale.height}` }));
    const counts = this.#lines.map((line) => this.#count(line, context)).join(" · ");
    say(this.#hover, this.word("curve.hover", { context, counts }));
    this.#hover.style.insetInlineStart = `${Math.min(Math.max(x, MARGIN.left), this.#width - 140)}px`;
  }

  // ---- taking away -----------------------------------------------------------------------------------------------------

  /** The picture as a file, in the colours in which it stands here. */
  async picture(type: "svg" | "png"): Promise<Blob> {
    const copy = this.#picture.cloneNode(true) as SVGSVGElement;
    const [from, to] = [this.#picture.querySelectorAll("*"), copy.querySelectorAll("*")];
    from.forEach((node, i) => {
      const style = getComputedStyle(node);
      for (const name of [
        "fill",
        "stroke",
        "stroke-width",
        "stroke-dasharray",
        "opacity",
        "font-size",
        "font-family",
      ]) {
        to[i]?.setAttribute(name, style.getPropertyValue(name));
      }
      for (const name of ["class", "role", "tabindex", "style"]) to[i]?.removeAttribute(name);
    });
    const [width, height] = [this.#width, this.#height + 24 * this.#lines.length];
    const { color, fontFamily } = getComputedStyle(this);
    const names = this.#lines.map((line, i) => {
      const y = this.#height + 24 * i + 8;
      return svg(
        "g",
        {},
        svg("path", { d: `M${MARGIN.left} ${y}h28`, ...this.#strokeOf(i) }),
        svg(
          "text",
          { x: MARGIN.left + 40, y: y + 5, fill: color, "font-size": "13px", "font-family": fontFamily },
          line.name,
        ),
      );
    });
    copy.prepend(svg("rect", { width, height, fill: pageColour(this) }));
    copy.append(...names);
    copy.removeAttribute("class");
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` }))
      copy.setAttribute(name, String(value));
    return pictureFile(copy, type);
  }

  #strokeOf(index: number): Record<string, string> {
    const sample = this.#legend.children[index]?.querySelector(".line");
    if (!sample) return {};
    const style = getComputedStyle(sample);
    const names = ["stroke", "stroke-width", "stroke-dasharray"];
    return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name)]));
  }

  async #save(type: "svg" | "png"): Promise<void> {
    save(await this.picture(type), `${this.localName}.${type}`);
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "kv-curve": KvCurve;
  }
}
