/** Paste your log: what an engine printed at its start, read here, shown, explained, and set in the calculator. */
import type { Failure, LogReading, MemorySegment, Note, Request } from "../contract.js";
import type { Host } from "../more.js";
import { h, say, sayRich } from "../nodes.js";
import { complain, field, filePicker, locked, noteValues, type Part, takeDrops, word } from "./parts.js";

/** Longest log that the kernel reads, in bytes. */
const MOST = 64 << 20;
/** A text longer than this is read, but not put into the box, where it would be slow to lay out. */
const SHOWN = 200_000;
/** Lines shown at once. */
const LINES = 60;

export function logReader(host: Host): Part {
  const { speech } = host;
  const panel = host.panels.log;
  const box = h("textarea", { rows: "5", spellcheck: "false", autocomplete: "off", wrap: "off" });
  const pasted = field(speech.text("log.paste"), box);
  const files = filePicker(speech.text("log.file"), false, (list) => void takeFile(list));
  const clear = h("button", { type: "button", class: "plain", hidden: "" }, speech.text("log.clear"));
  const outcome = h("div", { class: "log-outcome" });
  // Stands before there is anything to say, so that what it says is read aloud.
  const title = h("p", { class: "title" });
  const back = h("button", { type: "button", class: "plain" }, speech.text("log.undo"));
  const taken = h("p", { class: "taken", hidden: "" }, `${speech.text("log.taken")} `, back);
  panel.replaceChildren(
    h("p", { class: "about" }, speech.text("log.about")),
    pasted.box,
    h("div", { class: "buttons" }, files, clear),
    title,
    taken,
    outcome,
  );
  takeDrops(panel, (list) => void takeFile(list));

  let timer: ReturnType<typeof setTimeout> | undefined;
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => read(box.value), 250);
  });
  box.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (text.length <= SHOWN) return;
    event.preventDefault();
    take(text);
  });
  clear.addEventListener("click", () => {
    box.value = "";
    read("");
    box.focus();
  });

  /** A long text is shown by its start alone. */
  function take(text: string): void {
    box.value = text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}\n${speech.text("log.cut", { n: text.length })}`;
    read(text);
  }

  async function takeFile([file]: File[]): Promise<void> {
    if (!file) return;
    if (file.size > MOST) return complain(pasted, speech.text("log.too-large"));
    try {
      take(await file.text());
    } catch (error) {
      complain(pasted, speech.text("own.unreadable", { detail: String(error) }));
    }
  }

  function read(text: string): void {
    complain(pasted, "");
    clear.hidden = text === "";
    outcome.replaceChildren();
    taken.hidden = true;
    if (text.trim() === "") {
      say(title, "");
      return;
    }
    const { instance } = host.kernel;
    let reading: LogReading | Failure;
    try {
      // As bytes, since the binding encodes a text more slowly than the browser does.
      reading = JSON.parse(instance.readLog?.(new TextEncoder().encode(text)) ?? "null") as LogReading | Failure;
    } catch (error) {
      reading = { error: { code: "internal", field: "log", message: String(error) } };
    }
    if ("error" in reading) {
      complain(pasted, speech.text("error.other", { field: reading.error.field, message: reading.error.message }));
      say(title, "");
      return;
    }
    show(reading);
    apply(reading.request);
  }

  /** The question as it stood before the first log. */
  let before: Request | null = null;
  back.addEventListener("click", () => {
    const now = Object.fromEntries(Object.keys(host.request).map((key) => [key, undefined]));
    if (before) host.change({ ...now, ...before });
    before = null;
    taken.hidden = true;
    box.focus();
  });

  /** Sets the calculator to the deployment that the log describes; what the log does not say stays as it is. */
  function apply(request: Request | null): void {
    if (!request) return;
    before ??= { ...host.request };
    taken.hidden = false;
    const { model, context, gpu } = host.request;
    const empty = Object.keys(request.options ?? {}).length === 0;
    host.change({
      config: undefined,
      weights: undefined,
      parameters: undefined,
      weight_bytes: undefined,
      kv: undefined,
      gpus: undefined,
      tensor_parallel: undefined,
      pipeline_parallel: undefined,
      data_parallel: undefined,
      gpu,
      model,
      context,
      ...request,
      options: empty ? undefined : request.options,
    });
  }

  // ---- showing --------------------------------------------------------------------------------------------------------

  const name = (code: string) => word(speech, [`log.field.${code}`, `option.name.${code}`], code);

  const sentence = (group: string, note: Note) => {
    const values = noteValues(note, note.readings, speech);
    for (const key of ["field", "change"]) if (values[key] !== undefined) values[key] = name(String(values[key]));
    const key = `log.${group}.${note.code}`;
    const item = h("li");
    if (speech.has(key)) sayRich(item, speech.stretches(key, values));
    else say(item, note.code.replaceAll("_", " "));
    return item;
  };

  function bar(segments: MemorySegment[], total: number): HTMLElement[] {
    const legend = h("ul", { class: "legend", role: "list" });
    const strip = h("div", { class: "bar", "aria-hidden": "true" });
    for (const one of segments) {
      const segment = h("div", { class: `segment ${one.kind}` });
      segment.style.inlineSize = `${one.share * 100}%`;
      strip.append(segment);
      legend.append(
        h(
          "li",
          {},
          h("span", { class: `swatch ${one.kind}`, "aria-hidden": "true" }),
          h("span", {}, word(speech, [`log.seg.${one.kind}`, `seg.${one.kind}`], one.kind)),
          h("strong", {}, speech.reading(one.reading, "three")),
        ),
      );
    }
    if (total < 1) {
      const end = h("div", { class: "end" });
      end.style.insetInlineStart = `${total * 100}%`;
      strip.append(end);
    }
    return [strip, legend];
  }

  const value = (one: { value: number | string; unit: string }): string => {
    if (typeof one.value === "string") return one.value;
    const v = speech.number(one.value, 6);
    return one.unit ? word(speech, [`of.${one.unit}`], `${v} ${one.unit}`, { v, n: one.value }) : v;
  };

  function show(reading: LogReading): void {
    const { engine, variant, engine_version: version } = reading;
    const list = (className: string, items: HTMLElement[]) =>
      items.length > 0 ? [h("ul", { class: className, role: "list" }, ...items)] : [];
    const parts: HTMLElement[] = [];
    if (engine === null) {
      parts.push(h("p", { class: "problem" }, speech.text("log.nothing")));
      say(title, "");
    } else {
      const found = speech.text("log.title", {
        engine: variant ?? speech.text(`engine.${engine}`),
        version: version ?? "",
        n: reading.ranks,
        lines: reading.lines.length + reading.lines_left_out,
      });
      say(title, found);
      host.announce(found);
    }
    if (reading.memory) parts.push(...bar(reading.memory.segments, reading.memory.total_share));
    parts.push(
      ...list(
        "contradictions",
        reading.contradictions.map((note) => sentence("contradiction", note)),
      ),
      ...list(
        "findings",
        reading.findings.filter((note) => note.code !== "nothing_found").map((note) => sentence("finding", note)),
      ),
    );
    if (engine !== null && reading.missing.length > 0) {
      parts.push(
        h(
          "p",
          { class: "missing" },
          speech.text("log.missing", {
            list: reading.missing.map(name).join(speech.text("comma")),
            n: reading.missing.length,
          }),
        ),
      );
    }
    if (reading.comparison.length > 0) parts.push(comparison(reading));
    if (reading.alternatives.length > 0) parts.push(alternatives(reading));
    if (reading.lines.length > 0) parts.push(lines(reading));
    outcome.replaceChildren(...parts);
  }

  const table = (caption: string, heads: string[], rows: (string | Node)[][]) =>
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
      h(
        "table",
        {},
        h("caption", {}, caption),
        h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))),
        h(
          "tbody",
          {},
          ...rows.map(([first, ...rest]) =>
            h("tr", {}, h("th", { scope: "row" }, first ?? ""), ...rest.map((cell) => h("td", {}, cell))),
          ),
        ),
      ),
    );

  function comparison(reading: LogReading): HTMLElement {
    const figure = (one: LogReading["comparison"][number], which: "printed" | "computed") => {
      const scaled = one[`${which}_reading`];
      return scaled ? speech.reading(scaled) : speech.number(one[which], one.unit === "conversations" ? 2 : 0);
    };
    return table(
      speech.text("log.comparison"),
      ["log.figure", "log.printed", "log.computed", "log.ratio"].map((key) => speech.text(key)),
      reading.comparison.map((one) => [
        name(one.figure) +
          (one.of ? speech.text("of-kind", { v: "", kind: word(speech, [`cache.${one.of}`], one.of) }) : ""),
        figure(one, "printed"),
        figure(one, "computed"),
        one.agrees ? speech.text("log.agrees") : speech.number(one.ratio, 3),
      ]),
    );
  }

  function alternatives(reading: LogReading): HTMLElement {
    return table(
      speech.text("log.alternatives"),
      ["log.change", "log.concurrency", "log.gain"].map((key) => speech.text(key)),
      [...reading.alternatives]
        .sort((a, b) => b.gain - a.gain)
        .map((one) => [
          speech.text("log.change-to", {
            name: name(one.change),
            value: /^\d+$/.test(one.value) ? Number(one.value) : one.value,
          }),
          speech.number(one.concurrency, 2),
          speech.text("log.times", { v: speech.number(one.gain, 2) }),
        ]),
    );
  }

  /** Line by line, some at a time. */
  function lines(reading: LogReading): HTMLElement {
    const items = h("ol", { class: "lines", role: "list" });
    const more = h("button", { type: "button", class: "plain" }, speech.text("log.more-lines"));
    let shown = 0;
    const extend = () => {
      for (const one of reading.lines.slice(shown, shown + LINES)) {
        const rank = one.rank === null ? "" : speech.text("log.rank", { n: String(one.rank) });
        items.append(
          h(
            "li",
            {},
            h("span", { class: "where" }, speech.text("log.line", { n: one.line }) + rank),
            h("span", {}, `${name(one.field)} `, h("strong", {}, value(one))),
            h("code", {}, one.text),
          ),
        );
      }
      shown += LINES;
      more.hidden = shown >= reading.lines.length;
    };
    extend();
    more.addEventListener("click", extend);
    const left =
      reading.lines_left_out > 0
        ? [h("p", { class: "about" }, speech.text("log.left-out", { n: reading.lines_left_out }))]
        : [];
    return h(
      "details",
      {},
      h("summary", {}, h("span", {}, speech.text("log.lines", { n: reading.lines.length }))),
      items,
      more,
      ...left,
    );
  }

  return {
    show() {
      const closed = locked(host, ["model", "engine", "gpu", "gpus", "context"]);
      box.disabled = closed;
      files.classList.toggle("off", closed);
      (files.querySelector("input") as HTMLInputElement).disabled = closed;
    },
  };
}
