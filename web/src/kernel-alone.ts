/**
 * The full kernel alone, without elements: for Node and the like, for workers, and for pages that draw their own. It
 * touches no document. In a page that has the elements too it is the same instance as theirs.
 */
import create from "kernel:full";
import core from "kernel:core.sha256";
import full from "kernel:full.sha256";
import { bytesOf, proven } from "./bytes.js";
import type {
  Answer,
  Catalogue,
  Failure,
  Imported,
  LogReading,
  PagingQuestion,
  PagingState,
  QuizItem,
  QuizQuestion,
  QuizVerdict,
  Request,
  Wish,
  WishAnswer,
  Kernel,
} from "./contract.js";
import { compile, internal, loadFullKernel, provideKernels, requestText, wrap } from "./kernel.js";

export type * from "./contract.js";
export { KernelError, type KernelTrouble } from "./trouble.js";
export { VERSION } from "./version.js";

/** The kernels' files and their SHA-256 as hex digits. A kernel of another build is refused. */
export const WASM_SHA256 = {
  "kv-capacity.wasm": core,
  "kv-capacity-more.wasm": full,
} as const;

/** The start of a file of a model. */
export interface ModelFile {
  kind: "config" | "gguf" | "safetensors" | "index";
  /** Text, or as many bytes of the file's start as there are; the answer may ask for more. */
  content: string | Uint8Array;
  /** Of the whole file; as long as `content` when nobody says. */
  file_bytes?: number;
  /** The config.json beside it, for files that do not say how the model's layers are made. */
  config?: string;
}

/** Every question that there is. Whatever is wrong with one is told in its answer; none of these throws. */
export interface CapacityKernel {
  readonly version: string;
  /** How many conversations fit. */
  plan(request: Request): Answer | Failure;
  /** The same over JSON text. */
  planText(request: string): string;
  /** Models, GPUs, formats and engines. */
  catalogue(): Catalogue;
  importModel(file: ModelFile): Imported | Failure;
  /** What an engine printed at start-up. */
  readLog(log: string | Uint8Array): LogReading | Failure;
  /** Servers that hand out the same memory in different ways. */
  paging(question?: PagingQuestion): PagingState | Failure;
  /** Questions, or with `check` the verdict on an answer to one of them. */
  quiz(question: QuizQuestion & { check: NonNullable<QuizQuestion["check"]> }): QuizVerdict | Failure;
  quiz(question?: QuizQuestion): { questions: QuizItem[] } | Failure;
  /** What it would take that so many conversations fit. */
  wish(wish: Wish): WishAnswer | Failure;
}

/** A compiled module, where the place has such a thing. */
type WasmModule = typeof globalThis extends { WebAssembly: { Module: { prototype: infer M } } } ? M : never;

export interface KernelOptions {
  /** The kernel's bytes or its compiled module, for places that hand out files in their own way. */
  wasm?: ArrayBuffer | ArrayBufferView<ArrayBuffer> | WasmModule;
}

const FILE = "kv-capacity-more.wasm";

provideKernels({
  full: async () =>
    create({ wasm: await compile(await bytesOf(new URL("./kv-capacity-more.wasm", import.meta.url), full)) }),
  // @ts-expect-error: built beside the file that this ends up in.
  plain: () => import("./kv-capacity-nowasm.js"),
});

function facade(kernel: Kernel): CapacityKernel {
  const { instance } = kernel;
  const answer = (ask: () => string | undefined) => {
    try {
      return JSON.parse(ask() ?? "null");
    } catch (error) {
      return internal(error);
    }
  };
  return {
    version: kernel.version,
    plan: (request) => kernel.plan(request),
    planText: (request) => kernel.planText(request),
    catalogue: () => kernel.catalogue(),
    importModel: ({ kind, content, file_bytes, config = "" }) =>
      answer(() => {
        const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
        return instance.importModel?.(kind, bytes, file_bytes ?? bytes.length, config);
      }),
    // As bytes, since the binding encodes a text more slowly.
    readLog: (log) => answer(() => instance.readLog?.(typeof log === "string" ? new TextEncoder().encode(log) : log)),
    paging: (question = {}) => answer(() => instance.paging?.(requestText(question))),
    quiz: (question = {}) => answer(() => instance.quiz?.(requestText(question))),
    wish: (wish) => answer(() => instance.wish?.(requestText(wish))),
  };
}

async function given(wasm: NonNullable<KernelOptions["wasm"]>): Promise<Kernel> {
  const bytes = wasm instanceof ArrayBuffer || ArrayBuffer.isView(wasm);
  const module = bytes ? await compile(await proven(wasm as BufferSource, full, FILE)) : (wasm as WebAssembly.Module);
  return wrap(await create({ wasm: module }));
}

/** The kernel, once started for all who ask; with `wasm` one of the caller's own. Rejects with a KernelError. */
export async function loadKernel({ wasm }: KernelOptions = {}): Promise<CapacityKernel> {
  return facade(await (wasm ? given(wasm) : loadFullKernel()));
}
