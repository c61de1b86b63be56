/** Lets defaults stand in for what a page gave and the kernel refuses, and says so above the figures. */
import type { Catalogue, Failure } from "../contract.js";
import type { Attached, Host } from "../more.js";
import { report, say } from "../nodes.js";
import { blamed, insteadOf, quoted, usedFor } from "../refusal.js";
import { isKey, KEYS } from "../request-text.js";
import type { Speech } from "../words.js";
import type { Part } from "./parts.js";

/** The option that a refusal is about, such as `reserve`. */
const optionOf = (error: Failure["error"]): string | undefined => error.field.match(/^options\.([^.]+)$/)?.[1];

/** `value` is what was set for the refusal's key. */
function whyRefused(speech: Speech, error: Failure["error"], value: unknown, catalogue: Catalogue): string {
  const { code, field, message } = error;
  const { limits } = catalogue;
  const max = field === "gpus" ? limits.max_gpus : limits.max_context;
  // That fields contradict each other, or are too much together, is not said by what each of them accepts.
  const lone =
    !["conflict", "not_divisible"].includes(code) &&
    !(Number.isInteger(value) && Number(value) >= 1 && Number(value) <= max);
  const keys = [`error.${field}.${code}`, ...(lone ? [`error.${field}`] : [])];
  const word = keys.find((one) => speech.has(one)) ?? "error.other";
  return speech.text(word, { field, message, value: quoted(value), max });
}

/** Tells the page's author of attributes that neither the element nor HTML has; frameworks' own have other signs in them. */
function reportAttributes(element: Element): void {
  const { observedAttributes } = element.constructor as unknown as { observedAttributes: string[] };
  const known = [...observedAttributes, "link", "hub", "lit", "class", "tabindex"];
  for (const name of element.getAttributeNames()) {
    if (/^[a-z_]+$/.test(name) && !(name in element) && !known.includes(name)) report(`no attribute is called ${name}`);
  }
  for (const key of (element.getAttribute("lock") ?? "").split(/[\s,]+/)) {
    if (key && key !== "all" && !isKey(key)) report(`lock: no key is called ${key}`);
  }
}

export function standIns(host: Host): Part & Pick<Attached, "standIn" | "why"> {
  const { speech, standIns: all } = host;
  const why = (error: Failure["error"], value: unknown) => whyRefused(speech, error, value, host.catalogue);
  reportAttributes(host.element);
  return {
    why,
    standIn(error) {
      const left = KEYS.filter((one) => host.given(one) !== undefined && (all.get(one)?.value ?? !all.has(one)));
      const at = blamed(error, left);
      if (at === undefined) return false;
      const option = optionOf(error) ?? "";
      const { value = host.given(at), errors = [] } = all.get(at) ?? {};
      const { [option]: _, ...others } = Object(value);
      // Of options only the one that is refused is left out.
      const partly = at === "options" && Object.hasOwn(Object(value), option);
      all.set(at, { value: partly ? others : undefined, errors: [...errors, error] });
      return true;
    },
    show() {
      const { plan } = host;
      if (host.error || !plan) return;
      const sentences = [...all].flatMap(([key, { errors }]) =>
        errors.map((error) => {
          const option = optionOf(error);
          const given = host.given(key);
          const value = option === undefined ? given : Object(given)[option];
          return insteadOf(speech, why(error, value), value, usedFor(key, plan));
        }),
      );
      const problem = host.root.getElementById("problem");
      if (problem) say(problem, sentences.join(speech.text("gap")));
    },
  };
}
