// npm run fuzz: libFuzzer on every door of the kernel, under the address and undefined-behaviour sanitizers.
//
//   node tests/fuzz.mjs [--seconds N] [door …]     60 seconds each unless told; npm test gives them 5
//
// Each starts from what the project's tests have of its kind, from files of earlier findings (tests/fuzz/found/<door>/)
// and from what earlier runs on this machine found to be new (build/fuzz/corpus/<door>/).
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { projectFolder, setup } from "../cpp/toolchain/setup.mjs";
import { Failure, runMain, say } from "../cpp/toolchain/terminal.mjs";
import { buildPreset } from "../web/build.mjs";

const folder = join(projectFolder, "build/fuzz");
const data = join(projectFolder, "tests/data");
const found = join(projectFolder, "tests/fuzz/found");

const filesIn = (name) => readdirSync(join(data, name)).map((file) => readFileSync(join(data, name, file)));

/** A file's start as fuzz.cpp takes it: two bytes say how much longer the file is. */
const started = (bytes) => Buffer.concat([Buffer.from([0, 0]), Buffer.from(bytes)]);

const whole = (value, bytes) => {
  const out = Buffer.alloc(bytes);
  if (bytes === 8) out.writeBigUInt64LE(BigInt(value));
  else out.writeUInt32LE(value);
  return out;
};
const text = (value) => Buffer.concat([whole(value.length, 8), Buffer.from(value)]);

/** A small GGUF head: an architecture with its sizes as 32-bit numbers, and one tensor. */
function gguf(architecture, sizes) {
  const keys = Object.entries(sizes).map(([key, value]) =>
    Array.isArray(value)
      ? Buffer.concat([
          text(`${architecture}.${key}`),
          whole(9, 4),
          whole(4, 4),
          whole(value.length, 8),
          ...value.map((one) => whole(one, 4)),
        ])
      : Buffer.concat([text(`${architecture}.${key}`), whole(4, 4), whole(value, 4)]),
  );
  return Buffer.concat([
    Buffer.from("GGUF"),
    whole(3, 4),
    whole(1, 8),
    whole(keys.length + 1, 8),
    text("general.architecture"),
    whole(8, 4),
    text(architecture),
    ...keys,
    text("token_embd.weight"),
    whole(2, 4),
    whole(64, 8),
    whole(32, 8),
    whole(1, 4),
    whole(0, 8),
  ]);
}

const safetensors = (header) => Buffer.concat([text(JSON.stringify(header)), Buffer.alloc(78)]);

const seeds = {
  config: () => filesIn("configs").map(started),
  index: () => [
    started('{"metadata":{"total_size":16060522496,"total_parameters":8030261248},"weight_map":{"a":"1","b":"2"}}'),
    started('{"metadata":{"total_size":"12"},"weight_map":{}}'),
  ],
  gguf: () =>
    [
      gguf("llama", {
        block_count: 2,
        "attention.head_count": 8,
        "attention.head_count_kv": 2,
        embedding_length: 64,
        context_length: 4096,
      }),
      gguf("gemma3", {
        block_count: 6,
        "attention.head_count": 8,
        "attention.head_count_kv": [1, 1, 1, 2, 2, 2],
        "attention.key_length": 128,
        "attention.value_length": 128,
        "attention.sliding_window": 512,
        embedding_length: 64,
      }),
      gguf("deepseek2", {
        block_count: 3,
        "attention.head_count": 16,
        "attention.kv_lora_rank": 512,
        "rope.dimension_count": 64,
        embedding_length: 64,
      }),
      gguf("mamba", {
        block_count: 4,
        "ssm.state_size": 16,
        "ssm.inner_size": 128,
        "ssm.conv_kernel": 4,
        embedding_length: 64,
      }),
    ].map(started),
  safetensors: () => [
    started(
      safetensors({
        __metadata__: { format: "pt" },
        a: { dtype: "BF16", shape: [4, 8], data_offsets: [0, 64] },
        b: { dtype: "F32", shape: [3], data_offsets: [64, 76] },
        s: { dtype: "BF16", shape: [], data_offsets: [76, 78] },
      }),
    ),
  ],
  log: () => filesIn("logs"),
  request: () =>
    [
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
    ].map((one) => Buffer.from(JSON.stringify(one))),
  built: () => [Buffer.from([0, 0, 6, 39]), Buffer.from([0, 1, 6, 40, 4, 20, 5, 26, 13, 41])],
  wish: () => [
    Buffer.from('{"model":"llama-3.1-8b","sequences":100,"context":8192,"gpu":"h100-sxm-80gb"}'),
    Buffer.from('{"model":"deepseek-v3","sequences":8,"context_k":32,"engine":"sglang"}'),
  ],
  paging: () => [
    Buffer.from('{"lengths":"sharegpt","page":16,"memory":4096,"longest":1024,"requests":20,"seed":1}'),
    Buffer.from('{"lengths":[161,338],"page":1,"memory":9999,"longest":64,"every":3,"prefix":10}'),
  ],
  quiz: () => [
    Buffer.from('{"seed":1,"count":3,"level":1}'),
    Buffer.from('{"seed":7,"topics":["room","lever"],"check":{"question":0,"value":12}}'),
  ],
};

/** Runs one door's program; resolves to whether it ended well, with what it printed last. */
function drive(door, seconds) {
  const own = (kind) => {
    const path = join(folder, kind, door);
    mkdirSync(path, { recursive: true });
    return path;
  };
  const given = own("seeds");
  for (const name of readdirSync(given)) rmSync(join(given, name));
  for (const [i, bytes] of seeds[door]().entries()) writeFileSync(join(given, String(i)), bytes);
  const folders = [own("corpus"), given, join(found, door)].filter((path) => existsSync(path));
  const args = [
    `-max_total_time=${seconds}`,
    "-timeout=20",
    "-rss_limit_mb=2048",
    `-max_len=${door === "log" ? 65536 : 16384}`,
    "-print_final_stats=1",
    `-artifact_prefix=${own("findings")}/`,
    ...folders,
  ];
  return new Promise((resolve) => {
    const child = spawn(join(folder, `fuzz_${door}`), args, { stdio: ["ignore", "ignore", "pipe"] });
    let output = "";
    child.stderr.on("data", (chunk) => {
      output = (output + chunk).slice(-20_000);
    });
    child.on("close", (status) => resolve({ well: status === 0, output }));
  });
}

await runMain(async () => {
  const { values, positionals } = parseArgs({ options: { seconds: { type: "string" } }, allowPositionals: true });
  const seconds = Number(values.seconds ?? 60);
  if (!(seconds > 0)) throw new Failure(`--seconds takes a number of seconds, not "${values.seconds}".`);
  const doors = positionals.length > 0 ? positionals : Object.keys(seeds);
  const unknown = doors.find((door) => !(door in seeds));
  if (unknown) throw new Failure(`There is no door "${unknown}". There are: ${Object.keys(seeds).join(", ")}`);
  await setup("check");
  buildPreset("fuzz");
  let failed = 0;
  const waiting = [...doors];
  const worker = async () => {
    for (let door = waiting.shift(); door; door = waiting.shift()) {
      const { well, output } = await drive(door, seconds);
      const runs = output.match(/stat::number_of_executed_units: (\d+)/)?.[1] ?? "?";
      say(`${well ? "ok" : "FAILED"}  ${door}: ${runs} runs`);
      if (!well) console.log(output.replace(/^/gm, "    "));
      failed += well ? 0 : 1;
    }
  };
  await Promise.all([worker(), worker()]);
  console.log(`${doors.length - failed} passed, ${failed} failed`);
  return failed ? 1 : 0;
});
