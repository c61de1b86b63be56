/** Bring your own model: a config pasted, files dropped, or a name on a hub. Everything is read here, by the kernel. */
import type { Failure, Imported, LayerRun } from "../contract.js";
import type { Host } from "../more.js";
import { h, say } from "../nodes.js";
import { complain, field, filePicker, type Labelled, locked, type Part, runText, takeDrops, word } from "./parts.js";

type Outcome = Imported | Failure;

/** Runs of one shape together, wherever they stand among the layers. */
function alike(runs: LayerRun[]): LayerRun[] {
  const shapes = new Map<string, LayerRun>();
  for (const { count, ...shape } of runs) {
    const key = JSON.stringify(shape);
    shapes.set(key, { ...shape, count: count + (shapes.get(key)?.count ?? 0) });
  }
  return [...shapes.values()];
}

/** The first slice of a file that is looked at; the kernel says how much more it needs. */
const FIRST_SLICE = 1 << 16;
/** More than any head that is known, and as much as a page should hold of one. */
const MOST_OF_A_HEAD = 256 << 20;
const MOST_OF_A_CONFIG = 4 << 20;
/** How long a hub may take, in milliseconds. */
const PATIENCE = 15_000;
const HUB = "https://huggingface.co";

export function ownModel(host: Host): Part {
  const { speech } = host;
  const say1 = (key: string, values = {}) => speech.text(key, values);

  const paste = h("textarea", { rows: "4", spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
  const pasted = field(say1("own.paste"), paste);
  const files = filePicker(say1("own.files"), true, takeFiles);
  const filesField = h("div", { class: "field" }, h("span", { class: "label" }, say1("own.files-label")), files);
  const fileWrong = h("p", { class: "problem" });
  filesField.append(fileWrong);
  const name = h("input", {
    type: "text",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    placeholder: "owner/name",
  });
  const hub = field(say1("own.hub"), name);
  const fetchIt = h("button", { type: "button", class: "button" }, say1("own.fetch"));
  const about = h("p", { class: "about" });
  hub.box.insertBefore(h("div", { class: "with-button" }, name, fetchIt), hub.wrong);
  hub.box.append(about);
  const understood = h("div", { class: "understood", hidden: "" });
  const weights = h("dd");
  const panel = host.panels.own;
  panel.replaceChildren(
    h("p", { class: "about" }, say1("own.about")),
    h("div", { class: "columns" }, pasted.box, h("div", {}, filesField, hub.box)),
    understood,
  );
  takeDrops(panel, takeFiles);

  let timer: ReturnType<typeof setTimeout> | undefined;
  let fetching: AbortController | null = null;
  let task = 0;
  let shown: Imported | null = null;

  paste.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(readPasted, 250);
  });
  name.addEventListener("input", () => {
    const link = hubId(name.value);
    if (link !== name.value.trim() && /^https?:/.test(name.value.trim())) name.value = link;
  });
  name.addEventListener("keydown", (event) => {
    if (event.key === "Enter") void fetchConfig();
  });
  fetchIt.addEventListener("click", () => void fetchConfig());

  function clear(): void {
    complain(pasted, "");
    complain(hub, "");
    say(fileWrong, "");
  }

  const sentence = (failure: Failure) => {
    const { field: at, message } = failure.error;
    return (
      word(speech, [`own.error.${failure.error.code}`], "", { field: at, message }) ||
      say1("error.other", { field: at, message })
    );
  };

  /** Takes a model that was read; its fields are for showing, not for the request. */
  function adopt(read: Imported, from: string): void {
    const { fields, ...model } = read.model as NonNullable<Imported["model"]>;
    if (!model.name) model.name = from;
    shown = read;
    host.change({
      model,
      config: undefined,
      weights: undefined,
      weight_bytes: undefined,
      parameters: undefined,
    });
    showUnderstood(fields);
  }

  function ask(kind: string, bytes: Uint8Array, size: number, config: string): Outcome {
    const read = host.kernel.instance.importModel;
    try {
      return JSON.parse(read?.call(host.kernel.instance, kind, bytes, size, config) ?? "null") as Outcome;
    } catch (error) {
      return { error: { code: "internal", field: "file", message: String(error) } };
    }
  }

  const encoder = new TextEncoder();
  const readText = (kind: "config" | "index", text: string, config = ""): Outcome => {
    // The kernel's memory never shrinks: of what is too long, it is given the beginning and the size.
    const long = text.length > (kind === "config" ? MOST_OF_A_CONFIG : 4 * MOST_OF_A_CONFIG);
    const bytes = encoder.encode(long ? text.slice(0, FIRST_SLICE) : text);
    return ask(kind, bytes, long ? new Blob([text]).size : bytes.length, config);
  };

  function readPasted(): void {
    task++;
    clear();
    const text = paste.value;
    if (text.trim() === "") {
      understood.hidden = true;
      return;
    }
    const read = readText("config", text);
    if ("error" in read) complain(pasted, sentence(read));
    else if (read.model) adopt(read, say1("own-model"));
  }

  /** Reads a file's head in growing slices, as far as the kernel asks. */
  async function readHead(file: Blob, kind: string, config: string, current: () => boolean): Promise<Outcome | null> {
    let length = Math.min(file.size, FIRST_SLICE);
    for (;;) {
      const bytes = new Uint8Array(await file.slice(0, length).arrayBuffer());
      if (!current()) return null;
      const read = ask(kind, bytes, file.size, config);
      if ("error" in read || read.need_bytes === undefined) return read;
      const wanted = Math.min(read.need_bytes, file.size);
      if (wanted <= length || wanted > MOST_OF_A_HEAD) {
        return { error: { code: "too_large", field: "file", message: say1("own.head-too-long") } };
      }
      length = wanted;
    }
  }

  function takeFiles(list: File[]): void {
    const mine = ++task;
    const current = () => mine === task;
    clear();
    readFiles(list, current).then(
      (wrong) => current() && say(fileWrong, wrong),
      (error) => current() && say(fileWrong, say1("own.unreadable", { detail: String(error) })),
    );
  }

  /** What is wrong with these files, or "". */
  async function readFiles(list: File[], current: () => boolean): Promise<string> {
    const named = (pattern: RegExp) => list.filter((file) => pattern.test(file.name));
    const gguf = named(/\.gguf$/i);
    const shards = named(/\.safetensors$/i);
    const index = named(/index[^/]*\.json$/i);
    const configs = named(/\.(json|txt)$/i).filter((file) => !index.includes(file));
    const main = gguf[0] ?? index[0] ?? shards[0] ?? configs[0] ?? (list[0] as File);
    if (!index[0] && shards.length > 1) return say1("own.need-index", { n: shards.length });
    let config = "";
    const beside = configs[0];
    if (beside && beside !== main) {
      if (beside.size > MOST_OF_A_CONFIG) return say1("own.too-large", { name: beside.name });
      config = await beside.text();
    } else if (main !== beside && paste.value.trim() !== "") {
      config = paste.value;
    }
    const read = await readHead(main, "auto", config, current);
    if (!read) return "";
    if ("error" in read) return `${main.name}: ${sentence(read)}`;
    if (!read.model) return say1("own.need-config", { name: main.name, n: read.checkpoint?.bytes ?? 0 });
    adopt(read, main.name);
    return "";
  }

  // ---- a hub ----------------------------------------------------------------------------------------------------------

  /** "owner/name", also from the address of its page. */
  function hubId(text: string): string {
    return text
      .trim()
      .replace(/^https?:\/\/[^/]+\//, "")
      .replace(/^([^/\s]+\/[^/\s?#]+).*$/, "$1");
  }

  const base = () => (host.element.getAttribute("hub") ?? HUB).replace(/\/+$/, "");

  const sayAbout = () =>
    say(about, base() === "off" ? "" : say1("own.hub-about", { base: base().replace(/^https?:\/\//, "") }));

  async function fetchConfig(): Promise<void> {
    const id = hubId(name.value);
    const mine = ++task;
    const current = () => mine === task;
    clear();
    if (!/^[\w.-]+\/[\w.-]+$/.test(id)) return complain(hub, say1("own.hub-id"));
    fetching?.abort();
    fetching = new AbortController();
    fetchIt.disabled = true;
    say(about, say1("own.fetching"));
    const { signal } = fetching;
    const timeout = setTimeout(() => fetching?.abort("timeout"), PATIENCE);
    const wrong = await readHub(id, signal, current).catch((error: unknown) =>
      say1(signal.reason === "timeout" ? "own.hub-timeout" : "own.hub-unreachable", {
        id,
        base: base(),
        detail: String(error),
      }),
    );
    clearTimeout(timeout);
    fetchIt.disabled = false;
    sayAbout();
    if (current()) complain(hub, wrong);
  }

  /** What is wrong, or "". */
  async function readHub(id: string, signal: AbortSignal, current: () => boolean): Promise<string> {
    const address = (file: string) => `${base()}/${id}/resolve/main/${file}`;
    const response = await fetch(address("config.json"), { signal, credentials: "omit" });
    const values = { id, base: base(), status: response.status };
    if (!response.ok) {
      const key = `own.hub-${response.status}`;
      return say1(speech.has(key) ? key : "own.hub-status", values);
    }
    const text = await limited(response, MOST_OF_A_CONFIG);
    if (text === null) return say1("own.too-large", { name: "config.json" });
    if (/^\s*</.test(text)) return say1("own.hub-html", values);
    if (!current()) return "";
    let read = readText("config", text);
    if ("error" in read) return sentence(read);
    // The index knows the weights to the byte; small models have none.
    const index = await fetch(address("model.safetensors.index.json"), { signal, credentials: "omit" }).catch(
      () => null,
    );
    if (index?.ok) {
      const listed = await limited(index, 4 * MOST_OF_A_CONFIG);
      const exact = listed === null ? null : readText("index", listed, text);
      if (exact && !("error" in exact) && exact.model) read = exact;
    }
    if (current() && read.model) {
      // A name typed says more than most configs do.
      read.model.name = id;
      adopt(read, id);
    }
    return "";
  }

  /** A body as text, if it is no longer than that. */
  async function limited(response: Response, most: number): Promise<string | null> {
    const reader = response.body?.getReader();
    if (!reader) return response.text();
    const decoder = new TextDecoder();
    let text = "";
    let length = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      length += value.length;
      if (length > most) {
        void reader.cancel();
        return null;
      }
      text += decoder.decode(value, { stream: true });
    }
  }

  // ---- what was understood --------------------------------------------------------------------------------------------

  /** What the model weighs in the format that is chosen, which may change after it was understood. */
  function showWeights(): void {
    const { plan } = host;
    const reading = plan?.model.name === shown?.model?.name ? plan?.readings.weight_bytes : undefined;
    say(weights, reading ? speech.reading(reading) + speech.text("comma") + plan?.weights : say1("own.unknown"));
  }

  function showUnderstood(fields: NonNullable<Imported["model"]>["fields"]): void {
    const model = shown?.model;
    if (!model) return;
    const rows: [string, string][] = [
      [say1("own.parameters"), model.parameters ? speech.number(model.parameters) : say1("own.unknown")],
    ];
    if (model.max_context) rows.push([say1("own.longest"), say1("tokens", { n: model.max_context })]);
    const fact = (term: string, told: Node) => h("div", {}, h("dt", {}, term), told);
    const list = (items: (Node | string)[][]) =>
      h("ul", { role: "list" }, ...items.map((item) => h("li", {}, ...item)));
    const group = (key: string, items: (Node | string)[][]) =>
      items.length === 0
        ? []
        : [h("details", {}, h("summary", {}, h("span", {}, say1(key, { n: items.length }))), list(items))];
    const code = (text: string) => h("code", {}, text);
    showWeights();
    understood.hidden = false;
    understood.replaceChildren(
      h("p", { class: "title" }, say1("own.understood", { name: model.name ?? "" })),
      h("ul", { class: "runs", role: "list" }, ...alike(model.layers).map((run) => h("li", {}, runText(speech, run)))),
      h(
        "dl",
        { class: "facts" },
        ...rows.map(([term, value]) => fact(term, h("dd", {}, value))),
        fact(say1("own.weights"), weights),
      ),
      ...group(
        "own.used",
        fields.used.map((one) => [code(one.name), ` ${one.value}`]),
      ),
      ...group(
        "own.defaulted",
        fields.defaulted.map((one) => [code(one.name), ` ${one.value}`, h("span", { class: "about" }, one.source)]),
      ),
      ...group(
        "own.ignored",
        fields.ignored.map((one) => [code(one)]),
      ),
    );
  }

  const controls: Labelled[] = [pasted, hub];
  return {
    show() {
      const off = base() === "off";
      hub.box.hidden = off;
      if (!fetchIt.disabled) sayAbout();
      const closed = locked(host, ["model"]);
      for (const { control } of controls) (control as HTMLInputElement).disabled = closed;
      fetchIt.disabled = closed;
      files.classList.toggle("off", closed);
      (files.querySelector("input") as HTMLInputElement).disabled = closed;
      // Another model was chosen since: what was understood is no longer what is shown.
      const { model } = host.request;
      showWeights();
      if (shown && (typeof model !== "object" || model.name !== shown.model?.name)) understood.hidden = true;
    },
  };
}
