/** Controls and pictures that several of the lesson's elements have. */
import type { Answer, Catalogue } from "../contract.js";
import { h } from "../nodes.js";
import type { Speech } from "../words.js";

export function button(text: string, pressed: () => void, kind = "button"): HTMLButtonElement {
  const node = h("button", { type: "button", class: kind }, text);
  node.addEventListener("click", pressed);
  return node;
}

/** A label over its control. */
export function field(label: string, control: HTMLElement, id: string): HTMLElement {
  control.id = id;
  return h("div", { class: `field ${id}-field` }, h("label", { for: id }, label), control);
}

/** Says "more models" in a selector, until the full kernel has brought the whole catalogue. */
export const MORE = "…";

/** Fills a selector with the catalogue's models by family and shows the plan's, wherever it came from. */
export function offerModels(select: HTMLSelectElement, catalogue: Catalogue, { model }: Answer, speech: Speech): void {
  const offered = String(catalogue.models.length);
  if (select.dataset.offered !== offered) {
    select.dataset.offered = offered;
    const groups = new Map<string, HTMLOptGroupElement>();
    for (const { id, name, family } of catalogue.models) {
      let group = groups.get(family);
      if (!group) {
        group = h("optgroup", { label: family });
        groups.set(family, group);
      }
      group.append(h("option", { value: id }, name));
    }
    const whole = catalogue.engines.length > 1;
    select.replaceChildren(
      ...groups.values(),
      ...(whole ? [] : [h("option", { value: MORE }, speech.text("more-models"))]),
    );
  }
  const value = model.id || "+";
  if (![...select.options].some((option) => option.value === value)) {
    select.prepend(h("option", { value }, model.name || speech.text("own-model")));
  }
  select.value = value;
}

/** Whether the reader would rather that nothing moved. */
export const still = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;
