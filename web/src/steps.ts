/** The steps of a derivation, each with its numbers in place: what <kv-capacity> and the quiz show of one. */
import type { Step } from "./contract.js";
import { h } from "./nodes.js";
import type { Speech } from "./words.js";

/** One step; `more` goes to its end. */
export function stepItem(speech: Speech, step: Step, more = ""): HTMLElement {
  const kind = (name: string) => (speech.has(`kind.${name}`) ? speech.text(`kind.${name}`) : "");
  const worded = (value: number, of: string) => {
    const v = speech.number(value, 6);
    if (speech.has(`of.${of}`)) return speech.text(`of.${of}`, { v, n: value });
    return kind(of) ? speech.text("of-kind", { v, kind: kind(of) }) : v;
  };
  const name = speech.has(`step.${step.name}`) ? speech.text(`step.${step.name}`) : step.name;
  const part = kind(step.part) && speech.text("of-kind", { v: "", kind: kind(step.part) });
  return h(
    "li",
    {},
    h("span", {}, name + part),
    ...step.terms.flatMap((one) => [one.op && `${one.op} `, h("i", { class: one.of }, worded(one.value, one.of)), " "]),
    "= ",
    h("strong", {}, worded(step.value, step.unit)),
    step.rounded_down ? speech.text("comma") + speech.text("rounded-down") : "",
    more,
  );
}
