// npm run fuzz: libFuzzer on every door of the kernel, under the address and undefined-behaviour sanitizers.
//
//   node tests/fuzz.mjs [--seconds N] [--seed N] [door …]     60 seconds each unless told; npm test gives them 5
//
// Each starts from what the project's tests have of its kind, from files of earlier findings (tests/fuzz/found/<door>/)
// and from what earlier runs on this machine found to be new (build/fuzz/corpus/<door>/). With a seed the machine's past
// is left out, so that two runs try the same. What is found lies in build/fuzz/findings/<door>/: mend it, and put the file
// into tests/fuzz/found/<door>/. The doors of JavaScript, what a link says and bytes for the kernels as pages call them,
// are tried by tests/fuzz/javascript.mjs, from here and from tests/web/fuzz.test.mjs.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { projectFolder, setup } from "../cpp/toolchain/setup.mjs";
import { Failure, runMain, say } from "../cpp/toolchain/terminal.mjs";
import { buildPreset } from "../web/build.mjs";
import { buildOnce, wholeOption } from "./command.mjs";
import { gguf, safetensors } from "./fuzz/seeds.mjs";

const folder = join(projectFolder, "build/fuzz");
const data = join(projectFolder, "tests/data");
const found = join(projectFolder, "tests/fuzz/found");

const filesIn = (name) => readdirSync(join(data, name)).map((file) => readFileSync(join(data, name, file)));

/** A file's start as fuzz.cpp takes it: two bytes say how much longer the file is. */
const started = (bytes) => Buffer.concat([Buffer.from([0, 0]), Buffer.from(bytes)]);

const requests = [
  { model: "llama-3.1-8b", kv: { k: "q8_0", v: "q4_0" }, gpus: 2, context: 8192, engine: "vllm" },
  { model: "deepseek-v3", kv: "fp8_ds_mla", gpu: "h200-141gb", gpus: 8, engine: "sglang" },
  {
    model: {
      name: "x",
      parameters: 1000,
      layers: [
        { count: 2, kind: "full", kv_heads: 3, key_width: 5, value_width: 7 },
        { count: 1, kind: "recurrent", state_values: 9, state_format: "fp32" },
      ],
    },
    engine: "llama.cpp",
    options: { n_parallel: 4 },
  },
  { config: { model_type: "llama", num_hidden_layers: 2, hidden_size: 64, num_attention_heads: 4 } },
];

const seeds = {
  config: () => filesIn("configs").map(started),
  index: () =>
    [
      '{"metadata":{"total_size":16060522496,"total_parameters":8030261248},"weight_map":{"a":"1","b":"2"}}',
      '{"metadata":{"total_size":"12"},"weight_map":{}}',
    ].map(started),
  safetensors: () => safetensors.map(started),
  gguf: () => gguf.map(started),
  // Byte by byte what fuzz.cpp makes a head of: size, size, architecture, keys, tensors, twist, then key, form, number.
  gguf_built: () => [[0, 0, 0, 4, 0, 0, 0, 0, 6, 1, 0, 6, 2, 0, 4, 3, 0, 17]].map((one) => Buffer.from(one)),
  log: () => filesIn("logs"),
  request: () => requests.map((one) => Buffer.from(JSON.stringify(one))),
  request_built: () =>
    [
      [0, 0, 6, 39],
      [0, 1, 6, 40, 4, 20, 5, 26, 13, 41],
    ].map((one) => Buffer.from(one)),
  wish: () =>
    [
      '{"request":{"model":"llama-3.1-8b","context":8192,"gpu":"h100-sxm-80gb"},"sequences":100}',
      '{"request":{"model":"deepseek-v3","context":32768,"engine":"sglang"},"sequences":8}',
    ].map((one) => Buffer.from(one)),
  paging: () =>
    [
      '{"lengths":"sharegpt","page":16,"memory":4096,"longest":1024,"requests":20,"seed":1}',
      '{"lengths":[161,338],"page":1,"memory":9999,"longest":64,"every":3,"prefix":10}',
    ].map((one) => Buffer.from(one)),
  quiz: () =>
    ['{"seed":1,"count":3,"level":1}', '{"seed":7,"topics":["room","lever"],"check":{"question":0,"value":12}}'].map(
      (one) => Buffer.from(one),
    ),
};

/** The texts in quotes that a door's seeds have, as libFuzzer's dictionary. */
function dictionary(all) {
  const words = new Set();
  for (const bytes of all) {
    for (const [word] of bytes.toString("latin1").matchAll(/"[\w.-]{2,40}"/g)) words.add(word);
  }
  return [...words].map((word) => `"${word.replaceAll('"', '\\"')}"\n`).join("");
}

/** Runs a program; resolves to whether it ended well, with what it printed last. */
function run(program, args, variables = {}) {
  return new Promise((resolve) => {
    const env = { ...process.env, ...variables };
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"], env });
    let output = "";
    child.stderr.on("data", (chunk) => {
      output = (output + chunk).slice(-20_000);
    });
    child.on("error", (error) => resolve({ well: false, output: String(error) }));
    child.on("close", (status) => resolve({ well: status === 0, output }));
  });
}

/** Runs the program at one door; resolves to whether it ended well, with what it printed last. */
function drive(door, seconds, seed) {
  const own = (kind) => {
    const path = join(folder, kind, door);
    mkdirSync(path, { recursive: true });
    return path;
  };
  const given = own("seeds");
  for (const name of readdirSync(given)) rmSync(join(given, name));
  const all = seeds[door]();
  for (const [i, bytes] of all.entries()) writeFileSync(join(given, String(i)), bytes);
  const words = join(folder, "seeds", `${door}.dict`);
  const texts = dictionary(all);
  writeFileSync(words, texts);
  let fresh = own("corpus");
  if (seed !== undefined) {
    fresh = own("seeded");
    for (const name of readdirSync(fresh)) rmSync(join(fresh, name));
  }
  const args = [
    `-max_total_time=${seconds}`,
    ...(seed === undefined ? [] : [`-seed=${seed}`]),
    // A crowded machine is slow at times, and no input takes a second by itself.
    "-timeout=60",
    "-rss_limit_mb=2048",
    `-max_len=${door === "log" ? 65536 : 16384}`,
    "-print_final_stats=1",
    ...(texts ? [`-dict=${words}`] : []),
    `-artifact_prefix=${own("findings")}/`,
    ...[fresh, given, join(found, door)].filter((path) => existsSync(path)),
  ];
  return run(join(folder, "kvcap_fuzz"), args, { KV_FUZZ_DOOR: door });
}

/** Doors of JavaScript, from the built site. */
const scripted = ["bindings", "links"];

const driveScript = (door, seconds, seed = Date.now() % 1e9) =>
  run(process.execPath, [join(projectFolder, "tests/fuzz/javascript.mjs"), door, String(seconds), String(seed)]);

await runMain(async () => {
  const { values, positionals } = parseArgs({
    options: { seconds: { type: "string", default: "60" }, seed: { type: "string" } },
    allowPositionals: true,
  });
  const seconds = wholeOption("seconds", values.seconds, 1);
  const seed = values.seed === undefined ? undefined : wholeOption("seed", values.seed, 1);
  const known = [...Object.keys(seeds), ...scripted];
  const doors = positionals.length > 0 ? positionals : known;
  const unknown = doors.find((door) => !known.includes(door));
  if (unknown) throw new Failure(`There is no door "${unknown}". There are: ${known.join(", ")}`);
  await setup("check");
  buildPreset("fuzz");
  await buildOnce();
  let failed = 0;
  const waiting = [...doors];
  const worker = async () => {
    for (let door = waiting.shift(); door; door = waiting.shift()) {
      const { well, output } = scripted.includes(door)
        ? await driveScript(door, seconds, seed)
        : await drive(door, seconds, seed);
      // A program that ends well without having run anything has found nothing out.
      const runs = Number(output.match(/stat::number_of_executed_units: (\d+)/)?.[1] ?? 0);
      const fine = well && runs > 0;
      say(`${fine ? "ok" : "FAILED"}  ${door}: ${runs} runs`);
      // Without the news of its progress.
      if (!fine) console.log(output.replace(/^(#\d|\tNEW_FUNC|INFO:).*\n/gm, "").replace(/^/gm, "    "));
      failed += fine ? 0 : 1;
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), 4) }, worker));
  console.log(`${doors.length - failed} passed, ${failed} failed`);
  return failed ? 1 : 0;
});
