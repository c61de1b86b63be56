/** The answer for elsewhere: as text, as a table, as JSON, as a picture of the memory, and as a link to this very state. */
import { requestText } from "../kernel.js";
import type { KvCapacity } from "../kv-capacity.js";
import type { Host } from "../more.js";
import { h, say } from "../nodes.js";
import { DRESS_KEYS } from "../tags.js";
import { pageColour, pictureFile, save, svg } from "../picture.js";
import type { Part } from "./parts.js";

/** How long it is said that something was copied, in milliseconds. */
const COPIED = 4000;
/** The picture's measures, in pixels. */
const WIDTH = 880;
const EDGE = 32;
const BAR = { top: 96, height: 56 };
const ROW = 26;
/** Conversations thinner than this are drawn as one band. */
const THINNEST = 3;

/** Texts that stand in the calculator, by their part of it. */
const texts = (root: ParentNode, selector: string): string[] =>
  [...root.querySelectorAll(selector)].map((node) => node.textContent ?? "").filter(Boolean);

/** The address of a calculator in its present state; "" where the page has none that anybody could open. */
export function linkTo(element: KvCapacity): string {
  if (!/^(https?|file):$/.test(location.protocol)) return "";
  // Without the attribute only keys that bear the element's name are its own.
  const prefix = element.hasAttribute("link") ? "" : `${element.id || element.localName}.`;
  const keys = [...new URLSearchParams(element.state)].map(([key, text]) => [prefix + key, text]);
  // How a frame's page is dressed.
  keys.push(...[...new URLSearchParams(location.hash.slice(1))].filter(([key]) => DRESS_KEYS.includes(key)));
  return `${location.href.replace(/#.*/s, "")}#${new URLSearchParams(keys)}`;
}

/** The question and the four figures, each with its name. */
function rowsOf({ root, plan, speech, catalogue }: Host): [string, string][] {
  if (!plan) return [];
  const format = (id: string) => {
    const known = catalogue.formats.find((one) => one.id === id);
    return known ? speech.text("format", { bits: known.bits, id }) : id;
  };
  const { k, v } = plan.kv;
  const { deployment } = plan;
  const rows: [string, string][] = [
    [speech.text("model"), plan.model.name || speech.text("own-model")],
    [speech.text("weights"), plan.weights === null ? speech.text("none") : format(plan.weights)],
    [speech.text("kv"), k === v ? format(k) : speech.text("formats", { k: format(k), v: format(v) })],
    [speech.text("gpu"), plan.gpu.name],
    [speech.text("gpus"), speech.number(deployment.gpus)],
    [speech.text("context"), speech.text("tokens", { n: plan.context })],
  ];
  if (plan.engine !== "textbook") {
    rows.push([speech.text("engine"), speech.text(`engine.${plan.engine}`)]);
    for (const key of ["tensor_parallel", "pipeline_parallel", "data_parallel"] as const)
      if (deployment[key] > 1) rows.push([speech.text(`engine.${key}`), speech.number(deployment[key])]);
  }
  for (const figure of root.querySelectorAll(".figures > .figure")) {
    const value = texts(figure, ".value > *").join(" ");
    const [small] = texts(figure, ".small");
    rows.push([texts(figure, "dt").join(), small ? `${value} (${small})` : value]);
  }
  return rows;
}

function asText(host: Host, link: string): string {
  const told = [...texts(host.root, "[part=sentence]"), ...texts(host.root, ".notes > li")];
  return [...rowsOf(host).map(([name, value]) => `${name}: ${value}`), "", ...told, ...(link ? ["", link] : [])].join(
    "\n",
  );
}

/** A cell may hold what an author wrote, so nothing in it is markup. */
const cell = (text: string) => text.replace(/\s+/g, " ").replace(/[\\`*_[\]<>|~]/g, "\\$&");

function asTable(host: Host, link: string): string {
  const [head = ["", ""], ...rows] = rowsOf(host).map((row) => row.map(cell));
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  const told = texts(host.root, "[part=sentence]").map(cell);
  return [line(head), "| --- | --- |", ...rows.map(line), "", ...told, ...(link ? ["", `<${link}>`] : [])].join("\n");
}

/** What the kernel was asked and what it said, for programs. */
function asJson({ request, plan, error }: KvCapacity): string {
  const answer = error ? { error } : plan;
  return `{\n"request": ${requestText(request)},\n"answer": ${JSON.stringify(answer, null, 2)}\n}`;
}

/** Colours as every program knows them, of what lies over a ground. */
function mixer(ground: string): (colour: string) => string {
  const context = h("canvas").getContext("2d", { willReadFrequently: true });
  return (colour) => {
    if (!context) return colour;
    for (const one of [ground, colour]) {
      context.fillStyle = one;
      context.fillRect(0, 0, 1, 1);
    }
    const [red = 0, green = 0, blue = 0] = context.getImageData(0, 0, 1, 1).data;
    return `#${[red, green, blue].map((one) => one.toString(16).padStart(2, "0")).join("")}`;
  };
}

/** The memory as the calculator shows it, in the colours in which it stands there, as a picture of its own. */
export function memoryPicture({ root, plan, speech, element }: Host): SVGSVGElement | null {
  const memory = plan?.memory;
  if (!plan || !memory) return null;
  const styleOf = (selector: string) => getComputedStyle(root.querySelector(selector) ?? element);
  const ground = pageColour(element);
  const mix = mixer(ground);
  const ink = mix(styleOf(".sentence").color);
  const quiet = mix(styleOf("dt").color);
  const edge = mix(styleOf("select").borderTopColor);
  const warning = mix(styleOf(".problem").color);
  const paper = mix(ground);
  const backwards = speech.direction === "rtl";
  const family = styleOf(".sentence").fontFamily;
  const length = WIDTH - 2 * EDGE;
  /** A stretch of the bar from one share of it to another. */
  const stretch = (from: number, to: number) => ({
    x: EDGE + length * (backwards ? 1 - to : from),
    width: length * (to - from),
    y: BAR.top,
    height: BAR.height,
  });
  const text = (at: number, y: number, words: string, { size = 15, fill = ink, weight = 400, end = false } = {}) =>
    svg(
      "text",
      {
        x: backwards ? WIDTH - at : at,
        y,
        fill,
        "font-size": size,
        "font-weight": weight,
        "text-anchor": end ? "end" : "start",
      },
      words,
    );

  const nodes: Node[] = [];
  const names = [...root.querySelectorAll(".legend > li")].map((item) => texts(item, "span, strong"));
  const blocks = [...root.querySelectorAll(".bar > .segment")];
  const legend = (index: number, swatch: Node) => {
    const [name = "", size = ""] = names[index] ?? [];
    const y = BAR.top + BAR.height + 36 + ROW * index;
    nodes.push(
      swatch,
      text(EDGE + 26, y, name, { fill: quiet }),
      text(WIDTH - EDGE, y, size, { weight: 600, end: true }),
    );
  };
  /** The square before a line of the legend. */
  const square = (index: number) => ({
    x: backwards ? WIDTH - EDGE - 14 : EDGE,
    y: BAR.top + BAR.height + 24 + ROW * index,
    width: 14,
    height: 14,
  });
  let from = 0;
  memory.segments.forEach(({ kind, share }, i) => {
    const fill = mix(blocks[i] ? getComputedStyle(blocks[i]).backgroundColor : "transparent");
    const box = stretch(from, from + share);
    const over = kind === "weights" ? "url(#stripes)" : kind === "reserve" ? "url(#lines)" : "";
    for (const one of [box, square(i)]) {
      const swatch = svg("g", {}, svg("rect", { ...one, fill }));
      if (over) swatch.append(svg("rect", { ...one, fill: over }));
      if (one !== box) {
        swatch.append(svg("rect", { ...one, fill: "none", stroke: edge }));
        legend(i, swatch);
      } else nodes.push(swatch);
    }
    const count = plan.sequences ?? 0;
    if (kind === "cache" && memory.sequence_share * length >= THINNEST) {
      let path = "";
      for (let cut = 1; cut < count; cut++)
        path += `M${(box.x + (box.width * cut) / count).toFixed(2)} ${box.y}v${box.height}`;
      nodes.push(svg("path", { d: path, stroke: paper, "stroke-opacity": 0.75 }));
    }
    from += share;
    if (from < 1)
      nodes.push(
        svg("path", {
          d: `M${EDGE + length * (backwards ? 1 - from : from)} ${box.y}v${box.height}`,
          stroke: paper,
          "stroke-width": 2,
        }),
      );
  });
  nodes.push(svg("rect", { ...stretch(0, 1), fill: "none", stroke: edge }));
  if (memory.total_share < 1) {
    const box = stretch(memory.total_share, 1);
    const x = backwards ? box.x + box.width : box.x;
    const mark = { stroke: warning, "stroke-width": 3 };
    nodes.push(svg("rect", { ...box, fill: warning, "fill-opacity": 0.35 }));
    nodes.push(svg("path", { d: `M${x} ${box.y}v${box.height}`, ...mark }));
    const at = square(memory.segments.length);
    legend(memory.segments.length, svg("path", { d: `M${at.x + 7} ${at.y}v${at.height}`, ...mark }));
  }

  const { gpus } = plan.deployment;
  const { k, v } = plan.kv;
  const question = [
    `${speech.number(gpus)} × ${plan.gpu.name}`,
    ...(plan.weights === null ? [] : [`${speech.text("weights")}: ${plan.weights}`]),
    `${speech.text("kv")}: ${k === v ? k : speech.text("formats", { k, v })}`,
    speech.text("tokens", { n: plan.context }),
    ...(plan.engine === "textbook" ? [] : [speech.text(`engine.${plan.engine}`)]),
  ];
  const height = BAR.top + BAR.height + 24 + ROW * names.length + EDGE - 8;
  const stripe = { stroke: paper, "stroke-width": 4, "stroke-opacity": 0.26 };
  return svg(
    "svg",
    {
      width: WIDTH,
      height,
      viewBox: `0 0 ${WIDTH} ${height}`,
      "font-family": family,
      direction: speech.direction,
      lang: speech.language,
    },
    svg("title", {}, texts(root, "[part=sentence]").join(" ")),
    svg(
      "defs",
      {},
      svg(
        "pattern",
        { id: "stripes", width: 12, height: 12, patternUnits: "userSpaceOnUse" },
        svg("path", { d: "M-3 3L3 -3M0 12L12 0M9 15L15 9", ...stripe }),
      ),
      svg(
        "pattern",
        { id: "lines", width: 6, height: 6, patternUnits: "userSpaceOnUse" },
        svg("path", { d: "M0.5 0V6", stroke: edge }),
      ),
    ),
    svg("rect", { width: WIDTH, height, fill: paper }),
    text(EDGE, 50, plan.model.name || speech.text("own-model"), { size: 22, weight: 600 }),
    text(WIDTH - EDGE, 50, texts(root, ".count .value > b, .count .small").join(" "), {
      size: 22,
      weight: 700,
      fill: mix(styleOf(".count b").color),
      end: true,
    }),
    text(EDGE, 78, question.join(" · "), { size: 14, fill: quiet }),
    ...nodes,
  );
}

export function sharing(host: Host): Part {
  const { speech } = host;
  const element = host.element as KvCapacity;
  const word = (key: string) => speech.text(`share.${key}`);
  const told = h("p", { class: "about" });
  const byHand = h("textarea", { rows: "6", readonly: "", spellcheck: "false", "aria-label": word("by-hand-label") });
  const hand = h("div", { class: "by-hand", hidden: "" }, h("p", { class: "about" }, word("by-hand")), byHand);
  let timer: ReturnType<typeof setTimeout> | undefined;

  function tell(key: string): void {
    clearTimeout(timer);
    say(told, word(key));
    host.announce(word(key));
    timer = setTimeout(() => say(told, ""), COPIED);
  }

  function give(text: string): void {
    say(told, "");
    hand.hidden = false;
    byHand.value = text;
    byHand.focus();
    byHand.select();
  }

  async function copy(text: string): Promise<void> {
    hand.hidden = true;
    try {
      await navigator.clipboard.writeText(text);
      tell("copied");
    } catch {
      // A page without a secure address, or in a frame, may not: the text is there to be taken by hand.
      give(text);
    }
  }

  const picture = async (type: "svg" | "png"): Promise<Blob> => {
    const drawn = memoryPicture(host);
    if (!drawn) throw new Error("there is no answer to draw");
    return pictureFile(drawn, type);
  };

  async function copyPicture(): Promise<void> {
    hand.hidden = true;
    try {
      // Within the click, as some browsers demand; the picture may come later.
      await navigator.clipboard.write([new ClipboardItem({ "image/png": picture("png") })]);
      tell("copied");
    } catch {
      tell("no-picture");
    }
  }

  async function savePicture(type: "svg" | "png"): Promise<void> {
    try {
      save(await picture(type), `${element.localName}.${type}`);
    } catch {
      tell("no-picture");
    }
  }

  const button = (key: string, press: () => void) => {
    const node = h("button", { type: "button", class: "button" }, word(key));
    node.addEventListener("click", press);
    return node;
  };
  const link = button("link", () => void copy(linkTo(element)));
  const ofAnswer = [
    button("text", () => void copy(asText(host, linkTo(element)))),
    button("table", () => void copy(asTable(host, linkTo(element)))),
  ];
  const json = button("json", () => void copy(asJson(element)));
  const ofMemory = [
    button("picture", () => void copyPicture()),
    button("svg", () => void savePicture("svg")),
    button("png", () => void savePicture("png")),
  ];
  host.panels.share.replaceChildren(
    h("p", { class: "about" }, word("about")),
    h("div", { class: "buttons" }, link, ...ofAnswer, json, ...ofMemory),
    told,
    hand,
  );

  return {
    show() {
      hand.hidden = true;
      link.hidden = linkTo(element) === "";
      const plan = host.error ? null : host.plan;
      for (const one of ofAnswer) one.disabled = !plan;
      for (const one of ofMemory) one.disabled = !plan?.memory;
    },
  };
}
