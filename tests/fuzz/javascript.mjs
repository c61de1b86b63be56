// The doors of JavaScript: bytes for both kernels as pages call them, WebAssembly and bindings and all, and the texts of
// links. Seeded, so that whatever is found can be found again: `tests/web/fuzz.test.mjs` tries a fixed seed.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import * as esbuild from "esbuild";
import { bundle } from "../../web/build.mjs";
import { watchMemories } from "../web/memories.mjs";
import { gguf, safetensors } from "./seeds.mjs";

const project = fileURLToPath(new URL("../../", import.meta.url));
const dist = process.env.KV_SITE ?? join(project, "web/dist");
const data = join(project, "tests/data");

/** Codes of refusals that are the asker's fault; `internal` is never. */
const CODES =
  /^(missing|wrong_type|not_whole|out_of_range|unknown_id|conflict|not_divisible|unsupported|malformed|too_large|no_cache)$/;

/** mulberry32: the same numbers for the same seed, in every engine. */
export class Dice {
  constructor(seed) {
    this.state = seed >>> 0;
  }
  /** A whole number below `count`. */
  below(count) {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = this.state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % count;
  }
  one(list) {
    return list[this.below(list.length)];
  }
}

/** Values that have broken readers of JSON elsewhere, and those that decide something here. */
const VALUES = [
  null,
  true,
  false,
  0,
  -0,
  1,
  -1,
  0.5,
  1e-9,
  8192,
  2 ** 31,
  2 ** 31 + 1,
  2 ** 32,
  2 ** 53 - 1,
  2 ** 53,
  1e21,
  1e308,
  "",
  "0",
  "8192",
  "NaN",
  "llama-3.1-8b",
  "bf16",
  "fp8",
  "vllm",
  "full",
  "recurrent",
  "linear_attention",
  "\u0000",
  "\ud800",
  "<img src=x onerror=alert(1)>",
  "__proto__",
  "x".repeat(5000),
  [],
  {},
  [[]],
  [1, 2, 3],
  [null],
  { k: "fp8", v: "q4_0" },
  { memory_bytes: 1 },
  { memory_bytes: 1e10 },
];

/** A JSON value with one to three of its parts changed. */
function mutated(dice, value) {
  const root = { value: structuredClone(value) };
  for (let changes = 1 + dice.below(3); changes > 0; changes--) {
    const places = [];
    const walk = (holder) => {
      for (const key of Object.keys(holder)) {
        places.push([holder, key]);
        if (holder[key] && typeof holder[key] === "object") walk(holder[key]);
      }
    };
    walk(root);
    const [holder, key] = dice.one(places);
    const [other, name] = dice.one(places);
    switch (dice.below(5)) {
      case 0:
        if (holder !== root) delete holder[key];
        break;
      case 1:
        holder[key] = structuredClone(other[name]);
        break;
      case 2:
        if (holder !== root) {
          const one = JSON.stringify(holder[key]);
          holder[key] = Array.from({ length: dice.below(40) }, () => (one === undefined ? null : JSON.parse(one)));
        }
        break;
      default:
        holder[key] = structuredClone(dice.one(VALUES));
    }
    if (JSON.stringify(root).length > 100_000) return value;
  }
  return root.value;
}

const PIECES = [
  "{",
  "}",
  "[",
  "]",
  '"',
  ",",
  ":",
  "null",
  "1e999",
  "\\u0000",
  "\\ud800",
  "//",
  "/*",
  "\n",
  "GGUF",
  "&",
  "=",
  "%",
].map((one) => Buffer.from(one));

/** Bytes with one to eight changes. */
function damaged(dice, bytes) {
  let out = Buffer.from(bytes);
  for (let changes = 1 + dice.below(8); changes > 0 && out.length > 0; changes--) {
    const at = dice.below(out.length);
    const count = 1 + dice.below(Math.min(64, out.length - at));
    const splice = (...middle) => Buffer.concat([out.subarray(0, at), ...middle]);
    switch (dice.below(8)) {
      case 0:
        out[at] = dice.below(256);
        break;
      case 1:
        out[at] ^= 1 << dice.below(8);
        break;
      case 2:
        out = splice(out.subarray(at + count));
        break;
      case 3:
        out = splice(out.subarray(at, at + count), out.subarray(at));
        break;
      case 4:
        out = splice(dice.one(PIECES), out.subarray(at));
        break;
      case 5:
        if (dice.below(4) === 0) out = splice();
        break;
      case 6:
        if (at + 8 <= out.length)
          out.writeBigUInt64LE(dice.one([0n, 1n, 1n << 31n, 1n << 32n, 1n << 53n, (1n << 64n) - 1n]), at);
        break;
      default:
        out.copyWithin(dice.below(out.length), at, at + count);
    }
  }
  return out;
}

const filesIn = (name, ending) =>
  readdirSync(join(data, name))
    .filter((file) => file.endsWith(ending))
    .map((file) => readFileSync(join(data, name, file)));

const vectors = () =>
  readFileSync(join(data, "vectors.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).request);

/**
 * Starts the kernels of a build, each with a look at its memory. They are those of the module: the first kernel and the
 * full one.
 */
export async function kernels() {
  const memories = [];
  const unwatch = watchMemories(memories);
  try {
    const module = await import(pathToFileURL(join(dist, "kv-capacity.mjs")).href);
    const core = await module.loadKernel();
    const full = await module.loadFullKernel();
    assert.equal(memories.length, 2, "each kernel has one memory");
    return { core: core.instance, full: full.instance, bytes: () => memories.map(({ buffer }) => buffer.byteLength) };
  } finally {
    unwatch();
  }
}

/** What is asked, from `count` throws of the dice: the name of a function and its arguments. */
function* questions(dice, count) {
  const configs = filesIn("configs", ".json");
  const trees = configs.flatMap((bytes) => {
    try {
      return [JSON.parse(bytes)];
    } catch {
      return []; // One that is broken on purpose.
    }
  });
  const logs = filesIn("logs", ".log");
  const requests = vectors();
  const json = (value) => JSON.stringify(value);
  const bytes = (value) => new Uint8Array(Buffer.from(json(value)));
  const of = (kind, content, config = "") => {
    const sizes = [content.length, content.length, content.length + dice.below(1 << 20), 2 ** 40, 2 ** 53 - 1, NaN, -1];
    return ["importModel", kind, new Uint8Array(content), dice.one(sizes), config];
  };
  for (let i = 0; i < count; i++) {
    switch (dice.below(10)) {
      case 0:
        yield of(dice.one(["config", "auto"]), damaged(dice, dice.one(configs)));
        break;
      case 1:
        yield of("config", bytes(mutated(dice, dice.one(trees))));
        break;
      case 2:
        yield of(dice.one(["gguf", "auto"]), damaged(dice, dice.one(gguf)));
        break;
      case 3:
        yield of("safetensors", damaged(dice, dice.one(safetensors)), json(mutated(dice, dice.one(trees))));
        break;
      case 4:
        yield of(
          dice.one(["index", "", "gg\u0000uf"]),
          bytes(mutated(dice, { metadata: { total_size: 16 }, weight_map: { a: "x", b: "y" } })),
        );
        break;
      case 5:
        yield [
          "readLog",
          dice.below(2) ? damaged(dice, dice.one(logs)) : damaged(dice, dice.one(logs)).toString("latin1"),
        ];
        break;
      case 6:
        yield ["plan", damaged(dice, json(dice.one(requests))).toString()];
        break;
      case 7:
        yield ["wish", json(mutated(dice, { request: dice.one(requests), sequences: 8 }))];
        break;
      case 8:
        yield dice.below(2)
          ? [
              "paging",
              json(mutated(dice, { lengths: "161 338", page: 16, memory: 4096, requests: 9, seed: 1, step: 5 })),
            ]
          : ["quiz", json(mutated(dice, { seed: 1, count: 3, topics: ["room"], check: { question: 0, value: 12 } }))];
        break;
      default:
        yield ["plan", json(mutated(dice, dice.one(requests)))];
    }
  }
}

const shown = (question) =>
  JSON.stringify(question, (_key, one) =>
    one instanceof Uint8Array ? Buffer.from(one).toString("base64") : one,
  ).slice(0, 4000);

/** Asks one question; an answer is an object, or an error whose code is known. */
function ask(kernel, question) {
  const [name, ...given] = question;
  let text;
  try {
    text = kernel[name](...given);
  } catch (error) {
    assert.fail(`${error}: ${shown(question)}`);
  }
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    assert.fail(`no JSON is ${text.slice(0, 200)}: ${shown(question)}`);
  }
  assert.equal(typeof answer, "object", shown(question));
  if (answer.error) {
    assert.match(answer.error.code, CODES, shown(question));
    assert.equal(typeof answer.error.message, "string", shown(question));
  }
  return { text, answer };
}

/** That a kernel answers a plain question as ever. */
function well({ core, full }) {
  for (const kernel of [core, full]) {
    assert.equal(JSON.parse(kernel.plan('{"model":"llama-3-8b"}')).sequences, 52);
  }
  const config = readFileSync(join(data, "configs/plain-llama.json"));
  assert.equal(JSON.parse(full.importModel("config", config, config.length, "")).model.layers.length, 1);
}

/**
 * Asks both kernels `count` hostile questions. None traps or throws, each has an answer or an error, what the first kernel
 * answers the full one answers alike, and plain questions are answered as ever. Returns how many were answered.
 */
export function fuzzKernels(all, { seed, count }) {
  let answered = 0;
  let asked = 0;
  for (const question of questions(new Dice(seed), count)) {
    const { text, answer } = ask(all.full, question);
    if (!answer.error) answered++;
    if (question[0] === "plan") {
      const first = ask(all.core, question);
      if (!first.answer.error) assert.equal(first.text, text, shown(question));
      else assert.equal(first.answer.error.message, "", shown(question));
    }
    if (++asked % 100 === 0) well(all);
  }
  well(all);
  return answered;
}

let reader;
/** The reader of links' texts, as a module. */
async function textReader() {
  if (!reader) {
    const folder = join(project, "build/fuzz-text");
    mkdirSync(folder, { recursive: true });
    for (const name of ["request-text", "kernel", "stops"]) {
      const text = await bundle(esbuild, `${name}.ts`, { format: "esm", terse: false, external: ["./locales/*"] });
      writeFileSync(join(folder, `${name}.mjs`), text);
    }
    const load = (name) => import(pathToFileURL(join(folder, `${name}.mjs`)).href);
    reader = { ...(await load("stops")), ...(await load("kernel")), ...(await load("request-text")) };
  }
  return reader;
}

/** A text as somebody could put behind the # of an address. */
export function fragment(dice, requests) {
  const request = mutated(dice, dice.one(requests));
  const pairs = Object.entries(Object(request)).map(([key, value]) => [
    dice.below(8) ? key : dice.one(["", "kv-capacity.", "kv-quiz.", "."]) + key,
    typeof value === "object" ? JSON.stringify(value) : String(value),
  ]);
  const own = dice.one([
    [],
    [["lang", "xx-"]],
    [["theme", "dark"]],
    [["accent", "zzz"]],
    [["lock", "all"]],
    [["element", "kv-quiz"]],
  ]);
  const text = new URLSearchParams([...pairs, ...own]).toString().slice(0, 5000);
  return dice.below(3) ? text : damaged(dice, text || "=").toString("latin1");
}

export const linkRequests = () => [
  ...vectors().filter(({ model }) => typeof model === "string"),
  {
    model: "llama-3.1-8b",
    kv: { k: "q8_0", v: "q4_0" },
    gpus: 2,
    context: 8192,
    engine: "vllm",
    options: { block_size: 32 },
  },
];

/**
 * Reads `count` links. Nothing throws; what was read, written as a link and read again is the same request; and the kernel
 * has an answer or a refusal for it.
 */
export async function fuzzLinks({ full }, { seed, count }) {
  const { KEYS, fromText, toText, requestText, stopsUpTo } = await textReader();
  const dice = new Dice(seed);
  const requests = linkRequests();
  for (let i = 0; i < count; i++) {
    const text = fragment(dice, requests);
    const given = new URLSearchParams(text);
    const request = {};
    for (const key of KEYS) {
      const value = given.get(key);
      if (value !== null) request[key] = fromText(key, value);
    }
    const asked = requestText(request);
    const written = new URLSearchParams(Object.entries(request).map(([key, value]) => [key, toText(value)]));
    const again = Object.fromEntries(
      [...new URLSearchParams(written.toString())].map(([key, one]) => [key, fromText(key, one)]),
    );
    assert.equal(requestText(again), asked, text);
    ask(full, ["plan", asked]);
    const max = 1 + dice.below(2 ** 31);
    const stops = stopsUpTo(max);
    assert.ok(
      stops.length < 50 && stops.at(-1) >= max && stops.every((one, at) => at === 0 || one > stops[at - 1]),
      `${max}`,
    );
  }
}

/** The doors by their names: each takes {seed, count}. */
const doors = {
  bindings: (all, what) => fuzzKernels(all, what),
  links: (all, what) => fuzzLinks(all, what),
};

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [door, seconds, seed] = process.argv.slice(2);
  const all = await kernels();
  const end = Date.now() + 1000 * Number(seconds);
  let runs = 0;
  for (let at = Number(seed); Date.now() < end; at++) {
    // Whatever is found, its seed stands above it.
    console.error(`seed ${at}`);
    await doors[door](all, { seed: at, count: 200 });
    runs += 200;
  }
  console.error(`stat::number_of_executed_units: ${runs}`);
}
