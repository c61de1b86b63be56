// What the features of the full kernel cost in it, by the linker's list of what comes from which source. The kernel of that
// list is linked without inlining across sources, so shares are near to those of the kernel that ships, not equal.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../../cpp/toolchain/setup.mjs";
import { Failure } from "../../cpp/toolchain/terminal.mjs";

/** Features and the sources that are theirs alone, by the start of a file's name; the first that fits has a file. */
const FEATURES = {
  vLLM: ["engine_vllm"],
  SGLang: ["engine_sglang"],
  "llama.cpp and ik_llama.cpp": ["engine_llama_cpp"],
  "TensorRT-LLM": ["engine_tensorrt_llm"],
  "what engines share": ["engine"],
  "config.json": ["import_config", "import_families", "import_fields", "import_layers", "import_quantisation"],
  GGUF: ["import_gguf"],
  safetensors: ["import_safetensors"],
  "what imports share": ["import"],
  "start-up logs": ["log"],
  paging: ["paging"],
  quiz: ["quiz"],
  wishes: ["wish"],
  bindings: ["kernel_full"],
  "catalogue's tables": ["catalogue", "gpus"],
  "formats, models, plans and answers": [""],
};

/** Bytes of code and of data by feature, from the text of the linker's list. */
export function readMap(text) {
  const found = new Map(Object.keys(FEATURES).map((name) => [name, { code: 0, data: 0 }]));
  const rest = { code: 0, data: 0 };
  // Address (of data alone), offset, bytes, and what it is: an archive's member or an object file, and the symbol or section.
  for (const [, address, bytes, path, symbol] of text.matchAll(
    /^ *(-|[0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) {9}(\S+):\((.*)\)$/gm,
  )) {
    const [, source] = path.match(/kernel_full_apart\.dir\/.*?([^/]+)\.cpp\.o$/) ?? [];
    const feature =
      source && Object.keys(FEATURES).find((name) => FEATURES[name].some((one) => source.startsWith(one)));
    const to = feature ? found.get(feature) : rest;
    to[address === "-" && !symbol.startsWith(".rodata") ? "code" : "data"] += Number.parseInt(bytes, 16);
  }
  return [...found, ["texts that sources share, standard library, allocator", rest]].map(([part, sizes]) => ({
    part,
    ...sizes,
  }));
}

/** Each feature's bytes of code and data, and their share of the whole. */
export function weighKernel() {
  const parts = readMap(readFileSync(join(projectFolder, "build/wasm/kernel_full.map"), "utf8"));
  const empty = parts.find(({ code, data }) => code + data === 0);
  if (empty) throw new Failure(`Nothing of the full kernel comes from the sources of "${empty.part}".`);
  const all = parts.reduce((sum, { code, data }) => sum + code + data, 0);
  return parts.map((one) => ({ ...one, share: (one.code + one.data) / all }));
}
