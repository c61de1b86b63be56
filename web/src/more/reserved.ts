/** What an engine sets aside beside what a conversation writes, and what else stands on each GPU. */
import type { Answer, CachePool, GpuShare, MemoryPart } from "../contract.js";
import type { Host } from "../more.js";
import { h, mark } from "../nodes.js";
import { type Part, word } from "./parts.js";

export function reservation(host: Host): Part {
  const { speech, reserved: place } = host;
  const words = (key: string, values = {}) => speech.text(key, values);
  let drawn: Answer | null = null;
  /** Which of the closed parts the reader has opened. */
  const open = new Set<string>();

  const sure = (part: { confidence: MemoryPart["confidence"] }) => words(`confidence.${part.confidence}`);
  const range = (low: string, high: string) => words("range", { low, high });

  function line(name: string, size: string, segments: HTMLElement[]): HTMLElement {
    return h(
      "div",
      { class: "line" },
      h("span", {}, name),
      h("strong", {}, size),
      h("div", { class: "track", "aria-hidden": "true" }, ...segments),
    );
  }

  function piece(kind: string, bytes: number): HTMLElement {
    const segment = h("div", { class: `segment ${kind}` });
    segment.style.flexGrow = String(bytes);
    return segment;
  }

  /** Two bars over the same scale, and by what they differ. */
  function bars(plan: Answer): HTMLElement[] {
    const { kv_bytes_per_sequence: written, readings, gaps } = plan;
    const size = (key: string) => {
      const reading = readings[key];
      return reading ? speech.reading(reading, "three") : "";
    };
    const first = line(words("written"), size("kv_bytes_per_sequence"), [
      piece("cache", written),
      ...gaps.map((gap) => piece("blank", gap.bytes)),
    ]);
    const second = line(words("set-aside"), size("kv_reserved_per_sequence"), [
      piece("cache", written),
      ...gaps.map((gap) => piece(`gap ${gap.code}`, gap.bytes)),
    ]);
    const causes = gaps.map((gap) =>
      h(
        "li",
        {},
        h("span", { class: `swatch gap ${gap.code}`, "aria-hidden": "true" }),
        h("span", {}, word(speech, [`gap.${gap.code}`], gap.code)),
        h("strong", {}, speech.reading(gap.reading, "three")),
      ),
    );
    return [
      h("p", { class: "title" }, words("one-conversation", { n: plan.context })),
      first,
      second,
      causes.length > 0
        ? h("ul", { class: "causes", role: "list" }, ...causes)
        : h("p", { class: "about" }, words("no-gap")),
    ];
  }

  const row = (cells: (string | Node)[], className = "") => {
    const [first, ...rest] = cells;
    return h(
      "tr",
      className ? { class: className } : {},
      h("th", { scope: "row" }, first ?? ""),
      ...rest.map((cell) => h("td", {}, cell)),
    );
  };

  const table = (caption: string, heads: string[], rows: HTMLElement[], className = "") =>
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
      h(
        "table",
        { class: className },
        h("caption", {}, caption),
        h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, ...rows),
      ),
    );

  function oneGpu(plan: Answer): HTMLElement {
    const { readings, confidence } = plan;
    const figure = (key: string) => {
      const reading = readings[key];
      return reading ? speech.reading(reading, "three") : words("none");
    };
    const size = (name: string, key: string, how: string, between = "") =>
      row([name, figure(key), words(`confidence.${how}`), between]);
    const [low, high] = [readings.kv_memory_bytes_per_gpu_low, readings.kv_memory_bytes_per_gpu_high];
    return table(
      words("one-gpu", { size: figure("gpu_memory_bytes"), basis: words(`basis.${plan.gpu.basis}`) }),
      ["part", "size", "how-sure", "range-head"].map((key) => words(key)),
      [
        size(words("seg.weights"), "weight_bytes_per_gpu", confidence.weight_bytes ?? "exact"),
        ...plan.parts.map((part) =>
          row([
            word(speech, [`part.${part.code}`, `seg.${part.code}`], part.code),
            speech.reading(part.reading, "three"),
            sure(part),
            part.low === part.high
              ? ""
              : range(speech.reading(part.low_reading, "three"), speech.reading(part.high_reading, "three")),
          ]),
        ),
        size(
          words("room-of-cache"),
          "kv_memory_bytes_per_gpu",
          confidence.kv_memory_bytes ?? "exact",
          low && high ? range(speech.reading(low, "three"), speech.reading(high, "three")) : "",
        ),
      ],
    );
  }

  /** As the engine counts: tokens by both ways of printing them, blocks. */
  function counts(plan: Answer): HTMLElement[] {
    const lines: string[] = [];
    if (plan.kv_tokens !== null) {
      lines.push(
        plan.kv_tokens_other === null || plan.kv_tokens_other === plan.kv_tokens
          ? words("kv-tokens", { n: plan.kv_tokens })
          : words("kv-tokens-both", { n: plan.kv_tokens, other: plan.kv_tokens_other }),
      );
    }
    if (plan.kv_blocks !== null) {
      lines.push(
        plan.block_tokens === null
          ? words("kv-blocks", { n: plan.kv_blocks })
          : words("kv-blocks-of", { n: plan.kv_blocks, tokens: plan.block_tokens }),
      );
    }
    if (plan.concurrency !== null) lines.push(words("concurrency", { v: speech.number(plan.concurrency, 2) }));
    if (plan.sequences_range) {
      lines.push(words("sequences-range", { low: plan.sequences_range[0], high: plan.sequences_range[1] }));
    }
    return lines.length > 0
      ? [h("ul", { class: "counts", role: "list" }, ...lines.map((text) => h("li", {}, text)))]
      : [];
  }

  function caches(list: CachePool[]): HTMLElement {
    const of = (bytes: number) =>
      bytes === 0 ? words("none") : speech.text("of.bytes", { v: speech.number(bytes), n: bytes });
    return table(
      words("caches-caption"),
      ["cache", "cells", "cache-layers", "keys", "values", "states", "together"].map((key) => words(key)),
      list.map((one) =>
        row([
          word(speech, [`cache.${one.name}`], one.name),
          one.streams > 1 ? words("cells-streams", { n: one.cells, streams: one.streams }) : speech.number(one.cells),
          speech.number(one.layers),
          of(one.k_bytes),
          of(one.v_bytes),
          of(one.state_bytes),
          speech.reading(one.reading),
        ]),
      ),
    );
  }

  function holds(rank: GpuShare): string {
    return rank.shares
      .map((share) => {
        const values = {
          layers: share.layers,
          kind: words(`kind-of.${share.kind}`),
          first: share.first_head + 1,
          last: share.first_head + share.heads,
          of: share.of_heads,
          n: share.heads,
          copies: share.copies,
        };
        const key =
          share.heads > 0
            ? share.copies > 1
              ? "holds-copy"
              : share.heads === share.of_heads
                ? "holds-all"
                : "holds-heads"
            : share.copies > 1
              ? "holds-whole"
              : "holds";
        return words(key, values);
      })
      .join("; ");
  }

  function ranks(plan: Answer): HTMLElement {
    const uneven = plan.ranks.some((one) => !one.fullest);
    const all = plan.deployment.tensor_parallel * plan.deployment.pipeline_parallel;
    return table(
      words("gpu-by-gpu-caption", { n: plan.deployment.data_parallel, shown: plan.ranks.length, all }),
      ["gpu-number", "holds-head", "holds-sequence"].map((key) => words(key)),
      plan.ranks.map((rank) =>
        row(
          [
            words("gpu-of-stage", {
              n: rank.gpu + 1,
              stage: rank.stage + 1,
              stages: plan.deployment.pipeline_parallel,
            }),
            holds(rank),
            speech.reading(rank.reading, "three") + (uneven && rank.fullest ? ` ${words("fullest")}` : ""),
          ],
          uneven && rank.fullest ? "fullest" : "",
        ),
      ),
      "texts",
    );
  }

  function closed(key: string, name: string, content: () => HTMLElement): HTMLElement {
    const details = h("details", {}, h("summary", {}, h("span", {}, name)));
    const fill = () => {
      if (details.childElementCount === 1) details.append(content());
    };
    if (open.has(key)) {
      details.open = true;
      fill();
    }
    details.addEventListener("toggle", () => {
      if (details.open) open.add(key);
      else open.delete(key);
      if (details.open) fill();
    });
    return details;
  }

  return {
    show() {
      const { plan } = host;
      if (plan === drawn) return;
      drawn = plan;
      const engine = plan !== null && plan.engine !== "textbook";
      mark(place, "hidden", engine ? null : "");
      if (!engine) {
        place.replaceChildren();
        return;
      }
      place.replaceChildren(
        ...bars(plan),
        ...counts(plan),
        closed("gpu", words("memory-of-gpu"), () => oneGpu(plan)),
        ...(plan.caches.length > 0 ? [closed("caches", words("caches"), () => caches(plan.caches))] : []),
        ...(plan.ranks.length > 1 ? [closed("ranks", words("gpu-by-gpu"), () => ranks(plan))] : []),
      );
    },
  };
}
