/** What would it take? A wish such as "100 users at 32k", and the three ways to it. */
import type { Failure, WishAnswer } from "../contract.js";
import { requestText } from "../kernel.js";
import type { Host } from "../more.js";
import { h } from "../nodes.js";
import type { Speech, Stretch } from "../words.js";
import { complain, field, type Part } from "./parts.js";

/** Milliseconds that what is typed must rest. */
const REST = 250;

interface Amount {
  value: number | bigint | string;
  thousands: boolean;
}

/** Tokens of 1M, in k. */
const K_IN_M = 1024;

/**
 * The numbers of a wish: the one with a k or an M is the context, else the second one. A number behind a minus or a letter
 * is none of them, nor is one before a word for ten thousand; conversations are not counted in k.
 */
export function readWish(speech: Speech, typed: string): { sequences?: Amount; context?: Amount } {
  // Where numbers are grouped by spaces, people type plain ones.
  const spaced = /\s/.test(speech.number(1048576));
  const whole = spaced ? typed.replace(/(?<=\p{Nd}) (?=\p{Nd}{3}(?![\p{Nd}km]))/giu, "\u00a0") : typed;
  const found = whole.matchAll(
    /(?<![\p{Script=Latin}\p{Nd}.,\u2212-])(\p{Nd}(?:[\p{Nd}.,\uff0c\uff0e'\u2019\u066b\u066c\u00a0\u202f]*\p{Nd})?)(?![\p{Nd}万萬千百億亿])\s?([kmｋｍ](?!\p{Script=Latin}))?/giu,
  );
  const amounts = [...found].map(([, digits = "", unit = ""]) => {
    const value = speech.parse(digits);
    const millions = /[mｍ]/i.test(unit) && typeof value === "number";
    return { value: millions ? value * K_IN_M : value, thousands: unit !== "" };
  });
  const [first, second] = amounts;
  if (!first) return {};
  if (!second) return first.thousands ? { context: first } : { sequences: first };
  if (first.thousands && second.thousands) return {};
  const turned = first.thousands;
  return turned ? { sequences: second, context: first } : { sequences: first, context: second };
}

export function wishes(host: Host): Part {
  const { speech } = host;
  const panel = host.panels.wish;
  const input = h("input", {
    type: "text",
    placeholder: speech.text("wish.hint"),
    autocomplete: "off",
    spellcheck: "false",
  });
  const wish = field(speech.text("wish.label"), input, speech.text("wish.about"));
  const sentence = h("p", { class: "sentence" });
  const ways = h("div", { class: "buttons" });
  panel.replaceChildren(wish.box, sentence, ways);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let shown = "";

  const ask = (tell: boolean) => {
    clearTimeout(timer);
    show();
    if (tell && sentence.textContent) host.announce(sentence.textContent);
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, REST, false);
  });
  input.addEventListener("change", () => ask(true));

  function answer(): WishAnswer | Failure | null {
    const { sequences, context } = readWish(speech, input.value);
    const question: Record<string, unknown> = { request: host.request, sequences: sequences?.value };
    if (context) question[context.thousands ? "context_k" : "context"] = context.value;
    return JSON.parse(host.kernel.instance.wish?.(requestText(question)) ?? "null") as WishAnswer | Failure | null;
  }

  function tell(found: WishAnswer): Stretch[] {
    const { sequences: n, context, fits, sequences_now: now, longest_context: longest, gpus, kv } = found;
    const values = {
      n,
      context,
      now,
      longest: longest ?? 0,
      gpus: gpus?.count ?? 0,
      copies: gpus?.copies ?? 1,
      kv: kv?.format ?? "",
      with: kv?.sequences ?? 0,
    };
    const keys = [
      fits ? "wish.fits" : "wish.short",
      longest === null ? "wish.no-context" : "wish.context",
      gpus === null ? "wish.no-gpus" : gpus.copies > 1 ? "wish.gpus-copies" : "wish.gpus",
      ...(fits ? [] : [kv === null ? "wish.no-kv" : "wish.kv"]),
    ];
    return keys.flatMap((key, i) => [...(i > 0 ? speech.stretches("gap") : []), ...speech.stretches(key, values)]);
  }

  /** Each way as a button that goes it. */
  function offer(found: WishAnswer): HTMLElement[] {
    const { context, longest_context: longest, gpus, gpus_now: had, kv, fits } = found;
    const way = (keys: string[], text: string, changes: Parameters<Host["change"]>[0]) => {
      const button = h("button", { type: "button", class: "button" }, text);
      button.disabled = keys.some((key) => host.locked(key));
      button.addEventListener("click", () => {
        host.change(changes);
        input.focus();
      });
      return button;
    };
    const out: HTMLElement[] = [];
    if (longest !== null && !fits) {
      out.push(way(["context"], speech.text("wish.take-context", { n: longest }), { context: longest }));
    }
    if (gpus !== null && gpus.count !== had) {
      const split = gpus.copies > 1 ? { data_parallel: gpus.copies } : { data_parallel: undefined };
      const rest = { tensor_parallel: undefined, pipeline_parallel: undefined };
      const changes = { context, gpus: gpus.count, ...rest, ...split };
      out.push(way(["gpus", "context"], speech.text("wish.take-gpus", { n: gpus.count }), changes));
    }
    if (kv !== null) {
      const changes = { context, kv: kv.format };
      out.push(way(["kv", "context"], speech.text("wish.take-kv", { kv: kv.format }), changes));
    }
    return out;
  }

  function show(): void {
    const key = requestText([input.value, host.request]);
    if (key === shown) return;
    shown = key;
    const nothing = input.value.trim() === "";
    const found = nothing ? null : answer();
    const failed = found !== null && "error" in found ? found.error : null;
    const unread = failed && /^(sequences|context|context_k)$/.test(failed.field);
    complain(wish, !failed ? "" : unread ? speech.text("wish.unread") : speech.text("error.other", { ...failed }));
    const told = found && !failed ? (found as WishAnswer) : null;
    sentence.replaceChildren(
      ...(told ? tell(told) : []).map(({ text, strong }) => (strong ? h("strong", {}, text) : text)),
    );
    ways.replaceChildren(...(told ? offer(told) : []));
  }

  return { show };
}
