// How the time of many plans, and of large ones, grows: a curve, a grid, and requests of ever larger figures.
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import { projectFolder } from "../../cpp/toolchain/setup.mjs";
import { Failure } from "../../cpp/toolchain/terminal.mjs";
import { bareKernel } from "./kernel.mjs";
import { excess, growthExponent, median, ROUNDS } from "./statistics.mjs";

const POINTS = 500;

/** Parts of the grid, each timed by itself. */
const STRIPES = 10;

/** Milliseconds that some work takes. */
function spent(work) {
  const start = performance.now();
  work();
  return performance.now() - start;
}

function answered(answer) {
  if (answer.error) throw new Failure(`A plan of the benchmark was refused: ${JSON.stringify(answer.error)}`);
  return answer;
}

/** What <kv-curve> asks for: lines over contexts, objects at both ends. */
function curve(kernel) {
  const models = ["llama-2-7b", "llama-3.1-8b", "gpt-oss-120b", "deepseek-v3"];
  const lines = models.map((model) =>
    Array.from({ length: POINTS }, (_, i) => ({ model, gpu: "80gb", gpus: 16, context: 256 * (i + 1) })),
  );
  const times = Array.from({ length: ROUNDS + 2 }, () =>
    spent(() => {
      for (const line of lines) for (const request of line) answered(kernel.plan(request));
    }),
  );
  return { points: POINTS, lines: models.length, milliseconds: median(times.slice(2)) };
}

/** A million plans: models, cache formats, GPUs and contexts, each with each, from bytes to bytes. */
function grid(plan) {
  const models = ["llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b", "gpt-oss-120b", "deepseek-v3"];
  const formats = ["bf16", "fp8"];
  const encoder = new TextEncoder();
  let plans = 0;
  const stripes = Array.from({ length: STRIPES }, (_, stripe) =>
    spent(() => {
      for (const model of models) {
        for (const kv of formats) {
          for (let gpus = 1; gpus <= 100; gpus++) {
            for (let step = 1; step <= 100; step++) {
              const context = 1024 * step + stripe;
              plan(encoder.encode(JSON.stringify({ model, kv, gpu: "80gb", gpus, context })));
              plans++;
            }
          }
        }
      }
    }),
  );
  return {
    plans,
    seconds: stripes.reduce((sum, one) => sum + one, 0) / 1000,
    nanoseconds_per_plan: Math.round((median(stripes) * 1e6 * STRIPES) / plans),
  };
}

/** Runs of so many shapes, one after another, so that none can be joined with the next. */
const layers = (count, shapes) =>
  Array.from({ length: count }, (_, run) => {
    const i = run % shapes;
    return {
      count: 1,
      kind: i % 2 ? "full" : "window",
      kv_heads: 1 + (i % 64),
      key_width: 64 + i,
      value_width: 64,
      ...(i % 2 ? {} : { window: 1024 + i }),
    };
  });

const model = (runs, shapes = runs) => ({
  name: "made up",
  parameters: 8e9,
  max_context: 2 ** 31,
  layers: layers(runs, shapes),
});
const powers = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));

/** Holds what is asked of it. Where one sequence is too long, the longest that is not is searched for, which takes longer. */
const ROOMY = { memory_bytes: 1e14 };

/** What grows, in which steps, and the exponent that it should not exceed. */
const series = [
  {
    name: "runs of layers",
    sizes: powers(1, 4),
    most: 1,
    request: (runs) => ({ model: model(runs), gpu: ROOMY }),
  },
  {
    name: "runs of layers that are too many: the remedy",
    sizes: powers(1, 4),
    most: 1,
    request: (runs) => ({ model: model(runs), gpu: { memory_bytes: 2e10 }, context: 10 ** 6 }),
  },
  ...["sglang", "llama.cpp", "tensorrt-llm"].map((engine) => ({
    name: `runs of layers, ${engine}`,
    sizes: powers(1, 4),
    most: 1,
    request: (runs) => ({ model: model(runs), gpu: ROOMY, engine }),
  })),
  // It refuses models of more shapes than 64.
  {
    name: "runs of layers of 64 shapes, vllm",
    sizes: powers(2, 4),
    most: 1,
    request: (runs) => ({ model: model(runs, 64), gpu: ROOMY, engine: "vllm" }),
  },
  {
    name: "shapes of layers, vllm",
    sizes: [1, 4, 16, 64],
    most: 1,
    request: (shapes) => ({ model: model(shapes), gpu: ROOMY, engine: "vllm" }),
  },
  ...["textbook", "vllm", "sglang", "llama.cpp", "tensorrt-llm"].flatMap((engine) => [
    {
      name: `context, ${engine}`,
      sizes: powers(3, 9),
      most: 0,
      request: (context) => ({ model: "gpt-oss-120b", gpu: ROOMY, gpus: 8, context, engine }),
    },
    {
      name: `context that is too long, ${engine}: the remedy`,
      sizes: powers(8, 9),
      most: 0,
      request: (context) => ({ model: "gpt-oss-120b", gpu: "h100-sxm-80gb", gpus: 8, context, engine }),
    },
  ]),
  { name: "GPUs", sizes: powers(0, 5), most: 0, request: (gpus) => ({ model: "llama-3.1-70b", gpu: "80gb", gpus }) },
  ...["vllm", "sglang", "llama.cpp", "tensorrt-llm"].map((engine) => ({
    name: `GPUs as copies, ${engine}`,
    sizes: powers(0, 5),
    most: 0,
    request: (copies) => ({ model: "llama-3.1-8b", gpu: "h100-sxm-80gb", data_parallel: copies, engine }),
  })),
  {
    name: "GPUs that are too few: the remedy",
    sizes: powers(0, 4),
    most: 0,
    request: (gpus) => ({
      model: { ...model(2), parameters: 4e15 },
      gpu: "80gb",
      gpus,
    }),
  },
];

/** Nanoseconds of one plan of each size, text to text in the full kernel. */
function growth(kernel) {
  return series.map(({ name, sizes, most, request }) => {
    const texts = sizes.map((size) => JSON.stringify(request(size)));
    const times = texts.map(() => []);
    for (let round = 0; round < ROUNDS; round++) {
      texts.forEach((text, i) => {
        let calls = 0;
        const start = performance.now();
        do {
          const answer = kernel.planText(text);
          if (answer.startsWith('{"error"')) throw new Failure(`${name} ${sizes[i]}: ${answer}`);
          calls++;
        } while (performance.now() - start < 10);
        times[i].push(((performance.now() - start) * 1e6) / calls);
      });
    }
    const points = sizes.map((size, i) => [size, Math.round(median(times[i]))]);
    // What is small is mostly the answer's frame; how it grows shows in the upper half.
    const exponent = growthExponent(most === 0 ? points : points.slice(-2));
    return { name, most, points, exponent, excess: excess(exponent, most) };
  });
}

export async function measureGrowth() {
  const load = (file) => import(pathToFileURL(join(projectFolder, "web/dist", file)).href);
  const kernel = await (await load("kv-capacity.mjs")).loadKernel();
  const full = await (await load("kernel.mjs")).loadKernel();
  return { curve: curve(kernel), grid: grid(await bareKernel()), growth: growth(full) };
}
