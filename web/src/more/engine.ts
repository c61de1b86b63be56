/** Which engine answers, how it is set, and how the model is split: the settings behind the lesson. */
import type { CatalogueOption, EngineId } from "../contract.js";
import type { Host } from "../more.js";
import { h, mark, say } from "../nodes.js";
import { complain, field, type Labelled, locked, type Part, word } from "./parts.js";

const SIZES = ["tensor_parallel", "pipeline_parallel", "data_parallel"] as const;

export function engineSettings(host: Host): Part {
  const { speech } = host;
  const panel = host.panels.engine;

  const engine = h(
    "select",
    {},
    ...host.catalogue.engines.map(({ id }) => h("option", { value: id }, speech.text(`engine.${id}`))),
  );
  const engineField = field(speech.text("engine"), engine);
  engine.addEventListener("change", () => {
    // Another engine has other settings.
    host.change({
      engine: engine.value === "textbook" ? undefined : engine.value,
      options: undefined,
      tensor_parallel: undefined,
      pipeline_parallel: undefined,
      data_parallel: undefined,
    });
  });

  const format = (which: "k" | "v") => {
    const select = h("select", {});
    for (const one of host.catalogue.formats.filter((other) => other.cache)) {
      select.append(h("option", { value: one.id }, speech.text("format", { bits: one.bits, id: one.id })));
    }
    select.addEventListener("change", () => {
      const { k, v } = host.plan?.kv ?? { k: "bf16", v: "bf16" };
      const both = { k, v, [which]: select.value };
      host.change({ kv: both.k === both.v ? both.k : both });
    });
    return field(speech.text(`engine.${which}`), select);
  };
  const k = format("k");
  const v = format("v");

  const sizes = SIZES.map((key) => {
    const input = h("input", { type: "text", inputmode: "numeric", autocomplete: "off", spellcheck: "false" });
    input.addEventListener("change", () => {
      const typed = input.value.trim();
      host.change({
        [key]: typed === "" ? undefined : speech.parse(typed),
        ...(key === "tensor_parallel" && typed ? { gpus: undefined } : {}),
      });
    });
    return { key, input, labelled: field(speech.text(`engine.${key}`), input, speech.text(`engine.${key}-about`)) };
  });
  const split = h("div", { class: "grid" }, ...sizes.map((one) => one.labelled.box));

  let options: { spec: CatalogueOption; control: HTMLInputElement | HTMLSelectElement; labelled: Labelled }[] = [];
  const settings = h("div", { class: "grid settings" });
  const settingsTitle = h("p", { class: "title" });
  const sources = h("dl", { class: "sources" });
  const sourcesBox = h("details", {}, h("summary", {}, h("span", {}, speech.text("engine.sources"))), sources);
  panel.replaceChildren(
    h("p", { class: "about" }, speech.text("engine.about")),
    h("div", { class: "grid" }, engineField.box, k.box, v.box),
    split,
    settingsTitle,
    settings,
    sourcesBox,
  );

  function put(name: string, value: unknown): void {
    const next: Record<string, unknown> = { ...host.request.options };
    if (value === undefined) delete next[name];
    else next[name] = value;
    host.change({ options: Object.keys(next).length > 0 ? next : undefined });
  }

  const amount = (value: CatalogueOption["fallback"]): string => {
    if (value === null) return speech.text("engine.default");
    if (typeof value === "boolean") return speech.text(value ? "engine.on" : "engine.off");
    return typeof value === "number" ? speech.number(value, 9) : value;
  };

  function control(spec: CatalogueOption): HTMLInputElement | HTMLSelectElement {
    const fallback = amount(spec.fallback);
    if (spec.kind === "truth" || spec.kind === "choice") {
      const usual = spec.fallback === null ? fallback : speech.text("engine.usual", { value: fallback });
      const select = h("select", {}, h("option", { value: "" }, usual));
      const values = spec.kind === "truth" ? ["true", "false"] : spec.choices;
      for (const value of values) {
        select.append(h("option", { value }, spec.kind === "truth" ? amount(value === "true") : value));
      }
      select.addEventListener("change", () => {
        const { value } = select;
        put(spec.name, value === "" ? undefined : spec.kind === "truth" ? value === "true" : value);
      });
      return select;
    }
    const input = h("input", {
      type: "text",
      inputmode: spec.kind === "version" ? "text" : "decimal",
      placeholder: fallback,
      autocomplete: "off",
      spellcheck: "false",
    });
    input.addEventListener("change", () => {
      const typed = input.value.trim();
      put(spec.name, typed === "" ? undefined : spec.kind === "version" ? typed : speech.parse(typed));
    });
    return input;
  }

  let built: EngineId | "" = "";
  function build(id: EngineId): void {
    if (built === id) return;
    built = id;
    const specs = host.catalogue.engines.find((one) => one.id === id)?.options.filter((one) => one.offered) ?? [];
    options = specs.map((spec) => {
      const made = control(spec);
      const unit = spec.unit && spec.kind !== "truth" ? word(speech, [`engine.unit.${spec.unit}`], spec.unit) : "";
      const about = word(speech, [`option.${id}.${spec.name}`, `option.${spec.name}`], spec.name);
      const labelled = field(spec.name, made, about, true);
      if (unit) labelled.box.querySelector("label")?.append(h("span", {}, speech.text("comma") + unit));
      return { spec, control: made, labelled };
    });
    say(settingsTitle, specs.length > 0 ? speech.text("engine.settings", { engine: speech.text(`engine.${id}`) }) : "");
    settings.replaceChildren(...options.map((one) => one.labelled.box));
    sourcesBox.hidden = specs.length === 0;
    sources.replaceChildren(
      ...specs.flatMap((spec) => [
        h("dt", {}, h("code", {}, spec.name)),
        h("dd", { lang: "en", dir: "ltr" }, spec.source ?? ""),
      ]),
    );
  }

  const text = (value: unknown) =>
    value === undefined ? "" : typeof value === "number" ? speech.number(value, 9) : String(value);

  return {
    show() {
      const { request, plan, error } = host;
      const id = (request.engine ?? "textbook") as EngineId;
      engine.value = id;
      build(id);
      const focus = host.root.activeElement;
      const set = (input: HTMLInputElement | HTMLSelectElement, value: string) => {
        if (input !== focus || input instanceof HTMLSelectElement) {
          if (input.value !== value) input.value = value;
        }
      };
      const kv = plan?.kv;
      if (kv) {
        set(k.control as HTMLSelectElement, kv.k);
        set(v.control as HTMLSelectElement, kv.v);
      }
      split.hidden = id === "textbook";
      for (const { key, input, labelled } of sizes) {
        set(input, text(request[key]));
        mark(input, "placeholder", plan ? speech.number(plan.deployment[key]) : "");
        input.disabled = locked(host, ["engine", key]);
        complain(labelled, error?.field === key ? error.message : "");
        // llama.cpp deals out layers, so there it has one value.
        labelled.box.hidden = key === "tensor_parallel" && id === "llama.cpp";
      }
      for (const { spec, control: made, labelled } of options) {
        set(made, text(request.options?.[spec.name]));
        made.disabled = locked(host, ["engine", "options"]);
        complain(labelled, error?.field === `options.${spec.name}` ? error.message : "");
      }
      engine.disabled = locked(host, ["engine"]);
      for (const one of [k, v]) (one.control as HTMLSelectElement).disabled = locked(host, ["kv"]);
      complain(engineField, error?.field === "engine" ? error.message : "");
      complain(k, error?.field.startsWith("kv") ? error.message : "");
    },
  };
}
