/** Nodes and their texts, without words or styles: what both scripts need. */
import type { Stretch } from "./words.js";

type Child = Node | string;

/** A node with attributes and children. Never takes markup, so Trusted Types have nothing to refuse. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  for (const name of Object.keys(attributes)) node.setAttribute(name, attributes[name] as string);
  node.append(...children);
  return node;
}

/** Sets text only where it differs, and in the node that holds it: that is laid out again, and nothing around it. */
export function say(node: Node, text: string): void {
  const [only, more] = node.childNodes;
  if (node.textContent !== text) (only instanceof Text && !more ? only : node).textContent = text;
}

/** Sets or removes an attribute only where it differs. */
export function mark(node: Element, name: string, value: string | null): void {
  if (node.getAttribute(name) === value) return;
  if (value === null) node.removeAttribute(name);
  else node.setAttribute(name, value);
}

/** A sentence with its stresses. */
export function sayRich(node: Element, stretches: Stretch[]): void {
  const { childNodes } = node;
  // Mostly only numbers change, and the nodes can stay.
  const stays = (one: Stretch, i: number) => one.strong === (childNodes[i]?.nodeName === "STRONG");
  if (childNodes.length === stretches.length && stretches.every(stays)) {
    stretches.forEach((one, i) => {
      say(childNodes[i] as Node, one.text);
    });
  } else node.replaceChildren(...stretches.map((one) => (one.strong ? h("strong", {}, one.text) : one.text)));
}

const reported = new Set<string>();

/** Tells a page's author, once, what of their page is not understood. */
export function report(what: string): void {
  if (!reported.has(what)) console.warn(`kv-capacity: ${what}`);
  reported.add(what);
}
