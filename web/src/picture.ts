/** Pictures: their nodes, and a picture as a file of its own, without the page around it. */
import { h } from "./nodes.js";

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

/** What is behind an element: the nearest background that is not clear. */
export function pageColour(element: Element): string {
  for (let at: Element | null = element; at; at = at.parentElement) {
    const { backgroundColor } = getComputedStyle(at);
    if (!/^(transparent|rgba\(0, 0, 0, 0\))$/.test(backgroundColor)) return backgroundColor;
  }
  // The browser's own, light or dark as it is here.
  const probe = h("span");
  probe.style.color = "Canvas";
  (element.shadowRoot ?? element).append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** The picture as a file. A PNG has two pixels for each of `width` and `height`; rejects where a page forbids images. */
export async function pictureFile(picture: SVGSVGElement, type: "svg" | "png"): Promise<Blob> {
  const text = new XMLSerializer().serializeToString(picture);
  if (type === "svg") return new Blob([text], { type: "image/svg+xml" });
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = h("canvas");
  canvas.width = 2 * Number(picture.getAttribute("width"));
  canvas.height = 2 * Number(picture.getAttribute("height"));
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png"),
  );
}

/** Gives a file to the reader. */
export function save(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
