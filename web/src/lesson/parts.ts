/** Controls and pictures that several of the lesson's elements have. */
import type { Catalogue } from "../contract.js";
import { h } from "../nodes.js";

const SVG = "http://www.w3.org/2000/svg";

/** A node of a picture. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number> = {},
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

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

/** Fills a selector with the catalogue's models by family and shows `chosen`, wherever it came from. */
export function offerModels(select: HTMLSelectElement, catalogue: Catalogue, chosen: string, name: string): void {
  if (select.options.length === 0) {
    const groups = new Map<string, HTMLOptGroupElement>();
    for (const { id, name, family } of catalogue.models) {
      let group = groups.get(family);
      if (!group) {
        group = h("optgroup", { label: family });
        groups.set(family, group);
        select.append(group);
      }
      group.append(h("option", { value: id }, name));
    }
  }
  if (![...select.options].some(({ value }) => value === chosen)) select.append(h("option", { value: chosen }, name));
  select.value = chosen;
}

/** Whether the reader would rather that nothing moved. */
export const still = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;
