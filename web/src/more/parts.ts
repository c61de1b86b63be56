/** What the further parts share. */
import type { LayerRun, Note, Reading } from "../contract.js";
import type { Host } from "../more.js";
import { h } from "../nodes.js";
import type { Speech, Values } from "../words.js";

export interface Part {
  show(): void;
}

let last = 0;

/** A label over its control, with a sentence and room for what is wrong with it. */
export function field(label: string, control: HTMLElement, sentence = "", flag = false): Labelled {
  const id = `more-${++last}`;
  control.id = id;
  const wrong = h("p", { class: "problem", id: `${id}-wrong` });
  const about = h("p", { class: "about", id: `${id}-about` }, sentence);
  control.setAttribute("aria-describedby", `${id}-wrong${sentence ? ` ${id}-about` : ""}`);
  const name = h("label", { for: id, ...(flag ? { class: "flag" } : {}) }, label);
  return { box: h("div", { class: "field" }, name, control, wrong, ...(sentence ? [about] : [])), control, wrong };
}

export interface Labelled {
  box: HTMLElement;
  control: HTMLElement;
  wrong: HTMLElement;
}

export function complain(at: Labelled, text: string): void {
  if (at.wrong.textContent !== text) at.wrong.textContent = text;
  if (text) at.control.setAttribute("aria-invalid", "true");
  else at.control.removeAttribute("aria-invalid");
}

/** The first of these keys that there are words for; else the code itself, in words at least. */
export function word(speech: Speech, keys: string[], code: string, values: Values = {}): string {
  const key = keys.find((one) => speech.has(one));
  return key === undefined ? code.replaceAll("_", " ") : speech.text(key, values);
}

/** As a sentence needs it. */
const rounded = (value: number) => Math.round(value * 100) / 100;

/** A note's values as its sentence takes them: numbers as such, bytes as people read them. */
export function noteValues(note: Note, readings: Record<string, Reading> = {}, speech?: Speech): Values {
  const values: Values = {};
  for (const [name, text] of Object.entries(note.values)) {
    const reading = readings[name];
    values[name] =
      reading && speech
        ? speech.reading(reading, "three")
        : /^-?\d+(\.\d+)?$/.test(text)
          ? rounded(Number(text))
          : text;
  }
  return values;
}

/** "62 layers of full attention, 8 KV heads of 128 + 128". */
export function runText(speech: Speech, run: LayerRun): string {
  const layers = speech.text("run.layers", { n: run.count });
  const kind = speech.text(`kind-of.${run.kind}`);
  const shape: string[] = [];
  if (run.kv_heads) {
    const same = run.key_width === run.value_width;
    shape.push(
      speech.text(same ? "run.heads" : "run.heads-apart", {
        n: run.kv_heads,
        width: run.key_width ?? 0,
        value: run.value_width ?? 0,
      }),
    );
  }
  if (run.latent_width) shape.push(speech.text("run.latent", { n: run.latent_width }));
  if (run.indexer_width) shape.push(speech.text("run.indexer", { n: run.indexer_width }));
  if (run.window) shape.push(speech.text("run.window", { n: run.window }));
  if (run.tokens_per_entry) shape.push(speech.text("run.entry", { n: run.tokens_per_entry }));
  if (run.state_values || run.conv_values) {
    shape.push(speech.text("run.state", { n: run.state_values ?? 0, conv: run.conv_values ?? 0 }));
  }
  if (run.source_tokens) shape.push(speech.text("run.source", { n: run.source_tokens }));
  return [speech.text("run", { layers, kind }), ...shape].join(speech.text("comma"));
}

/** A file or pasted text is taken wherever it is dropped in a panel. */
export function takeDrops(panel: HTMLElement, take: (files: File[]) => void): void {
  const over = (event: DragEvent, is: boolean) => {
    if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    event.preventDefault();
    panel.classList.toggle("dropping", is);
  };
  panel.addEventListener("dragover", (event) => over(event, true));
  panel.addEventListener("dragleave", (event) => {
    if (!panel.contains(event.relatedTarget as Node | null)) panel.classList.remove("dropping");
  });
  panel.addEventListener("drop", (event) => {
    over(event, false);
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length > 0) take(files);
  });
}

/** A list of files to choose from, as a button in the page's own looks. */
export function filePicker(label: string, multiple: boolean, take: (files: File[]) => void): HTMLElement {
  const input = h("input", { type: "file", class: "file" });
  input.multiple = multiple;
  input.addEventListener("change", () => {
    const files = [...(input.files ?? [])];
    // The same file may be chosen again.
    input.value = "";
    if (files.length > 0) take(files);
  });
  return h("label", { class: "button" }, input, label);
}

export function locked(host: Host, keys: string[]): boolean {
  return keys.some((key) => host.locked(key));
}
