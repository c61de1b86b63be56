// How long one plan takes: native, in WebAssembly, with texts and with objects at both ends, through embind, and by hand.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import { projectFolder } from "../../cpp/toolchain/setup.mjs";
import { Failure } from "../../cpp/toolchain/terminal.mjs";
import { textbook } from "./formula.mjs";
import { median, ROUNDS } from "./statistics.mjs";

/** What is asked: the page's first question, a hybrid on many GPUs, and one whose remedy has to be searched for. */
const questions = [
  { name: "Llama 3.1 8B on one GPU", request: { model: "llama-3.1-8b", gpu: "80gb", context: 8192 } },
  { name: "gpt-oss 120B on eight GPUs", request: { model: "gpt-oss-120b", gpu: "80gb", gpus: 8, context: 8192 } },
  {
    name: "Llama 3.1 70B, too long for two",
    request: { model: "llama-3.1-70b", gpu: "80gb", gpus: 2, context: 131072 },
  },
];

const MILLISECONDS = 30;
/** Rounds that are not counted. */
const WARM_UP = 4;
/** Calls between two looks at the clock. */
const BATCH = 64;

/** Nanoseconds of one call. Each is given another number, so that no answer can be kept from the last. */
function time(call) {
  let sink = 0;
  let calls = 0;
  const start = performance.now();
  let spent = 0;
  do {
    for (let i = 0; i < BATCH; i++) sink += call(i);
    calls += BATCH;
    spent = performance.now() - start;
  } while (spent < MILLISECONDS);
  if (!Number.isFinite(sink)) throw new Failure("A call in the benchmark gave no number.");
  return (spent * 1e6) / calls;
}

/** The formula's question for a request, with the figures that the kernel looks up. */
function byHand(answer) {
  return {
    layers: answer.model.layers,
    value_bytes: 2,
    weight_bytes: answer.weight_bytes,
    gpu_bytes: answer.gpu.memory_bytes,
    gpus: answer.deployment.gpus,
    reserve_thousandths: 100,
    context: answer.context,
  };
}

/** What is compared must be the same: the formula's figures are the kernel's. */
function verify(name, answer) {
  for (const [key, value] of Object.entries(textbook(byHand(answer)))) {
    if (answer[key] !== value) throw new Failure(`${name}: ${key} is ${answer[key]} by the kernel, ${value} by hand.`);
  }
}

/** Runs a program that times itself for each lot of requests. */
function timed(command, args) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: projectFolder, encoding: "utf8" });
  const numbers = (stdout ?? "").trim().split("\n").map(Number);
  if (status !== 0 || numbers.some((number) => !(number > 0))) throw new Failure(`${command} failed: ${stderr}`);
  return numbers;
}

/** The core kernel with nothing around it: bytes of a request in, the answer's bytes left where they are. */
export async function bareKernel() {
  const module = await WebAssembly.compile(readFileSync(join(projectFolder, "web/dist/kv-capacity.wasm")));
  const { _initialize, memory, begin, plan } = (await WebAssembly.instantiate(module, {})).exports;
  _initialize();
  return (bytes) => {
    const at = begin(bytes.length);
    new Uint8Array(memory.buffer).set(bytes, at);
    return plan();
  };
}

/** Medians of nanoseconds, of rounds in which every way has its turn. */
export async function measureKernel() {
  const module = await import(pathToFileURL(join(projectFolder, "web/dist/kv-capacity.mjs")).href);
  const kernel = await module.loadKernel();
  const full = await module.loadFullKernel();
  const bare = await bareKernel();
  const cases = questions.map(({ name, request }) => {
    const asked = Array.from({ length: BATCH }, (_, i) => ({ ...request, context: request.context + i }));
    for (const one of asked) verify(name, kernel.plan(one));
    const texts = asked.map((one) => JSON.stringify(one));
    const bytes = texts.map((text) => new TextEncoder().encode(text));
    const answers = texts.map((text) => kernel.planText(text));
    const figures = asked.map((one) => byHand(kernel.plan(one)));
    return {
      name,
      texts,
      answer_bytes: answers[0].length,
      ways: {
        wasm: (i) => bare(bytes[i]),
        text: (i) => kernel.instance.plan(texts[i]).length,
        object: (i) => kernel.plan(asked[i]).sequences,
        parse: (i) => JSON.parse(answers[i]).sequences,
        embind: (i) => full.instance.plan(texts[i]).length,
        javascript: (i) => textbook(figures[i]).sequences,
      },
      times: { native: [], wasm: [], text: [], object: [], parse: [], embind: [], javascript: [] },
    };
  });
  // Quickly compiled code gives way to good code while it runs; what a page feels after its first moments is the latter.
  for (const { ways } of cases) for (const call of Object.values(ways)) for (let i = 0; i < WARM_UP; i++) time(call);
  const requests = cases.flatMap(({ texts }) => texts);
  for (let round = 0; round < ROUNDS; round++) {
    const native = timed(join(projectFolder, "build/release/kvcap_bench"), [
      String(MILLISECONDS),
      String(BATCH),
      ...requests,
    ]);
    cases.forEach(({ ways, times }, i) => {
      times.native.push(native[i]);
      for (const [way, call] of Object.entries(ways)) times[way].push(time(call));
    });
  }
  const rounded = (times, pick) =>
    Object.fromEntries(Object.entries(times).map(([way, all]) => [way, Math.round(pick(all))]));
  return cases.map(({ name, answer_bytes, times }) => ({
    name,
    answer_bytes,
    nanoseconds: rounded(times, median),
    fastest: rounded(times, (all) => Math.min(...all)),
  }));
}
