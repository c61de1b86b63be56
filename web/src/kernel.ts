/**
 * The kernel's loader: one instance per page, shared by every element and by every copy of the script. JSON text goes in
 * and comes out; all checking is C++'s.
 */
import type { Answer, Catalogue, Failure, Kernel, Request, WasmInstance } from "./contract.js";
import { KernelError } from "./trouble.js";
import { VERSION } from "./version.js";

export { KernelError, type KernelTrouble } from "./trouble.js";
export { VERSION } from "./version.js";

/** An Emscripten factory. It may throw at once, reject, or resolve. */
export type WasmFactory = (options?: object) => Promise<WasmInstance> | WasmInstance;

/** Where the two kernels come from: each flavour of the script brings its own. */
export interface KernelSource {
  /** Textbook and catalogue. */
  core?: () => Promise<WasmInstance> | WasmInstance;
  /** The same, the engines' rules, and the reading of configs and logs: loaded when somebody asks for them. */
  full?: () => Promise<WasmInstance> | WasmInstance;
  /** Loads the script that announces the full kernel as JavaScript, for where WebAssembly is refused. */
  plain?: () => Promise<unknown>;
}

/** How long the kernel may take to arrive and compile, in milliseconds. */
const PATIENCE = 20_000;

interface Shared {
  core?: Promise<Kernel>;
  full?: Promise<Kernel>;
  plain?: Promise<WasmInstance> | undefined;
}

/** One per page, whichever copy of the script came first; the number is the contract's major version. */
const SHARED = Symbol.for("kv-capacity.kernel.1");
/** The factory of the full kernel as JavaScript, which its script leaves here. */
const PLAIN = Symbol.for("kv-capacity.nowasm.1");
const holder = globalThis as { [SHARED]?: Shared; [PLAIN]?: () => Promise<WasmInstance> };
holder[SHARED] ??= {};
const shared = holder[SHARED];

/**
 * Compiles a kernel. WebKit compiles what a policy forbids and refuses only to instantiate it, of which the small runtime
 * never tells; so the smallest module is tried first.
 */
export async function compile(bytes: BufferSource): Promise<WebAssembly.Module> {
  await WebAssembly.instantiate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
  return WebAssembly.compile(bytes);
}

let source: KernelSource | undefined;

/** Names the kernels of this copy of the script. */
export function provideKernels(kernels: KernelSource): void {
  source = kernels;
}

/**
 * A request as JSON text in which nothing is lost or coerced: NaN, infinities, functions and symbols become text, which
 * C++ refuses by field; BigInts keep every digit.
 */
export function requestText(request: unknown): string {
  const text = JSON.stringify(request, (_key, value: unknown) => {
    const plain = value instanceof Number ? value.valueOf() : value;
    switch (typeof plain) {
      case "number":
        return Number.isFinite(plain) ? plain : String(plain);
      case "bigint":
        return `\u0000${plain}`;
      case "function":
      case "symbol":
        return String(plain);
      default:
        return plain;
    }
  });
  return (text ?? "null").replace(/"\\u0000(-?\d+)"/g, "$1");
}

export function internal(error: unknown): Failure {
  return { error: { code: "internal", field: "", message: String(error) } };
}

/** A kernel around a module that has started. */
export function wrap(instance: WasmInstance): Kernel {
  let catalogue: Catalogue | undefined;
  const planText = (text: string): string => {
    try {
      return instance.plan(text);
    } catch (error) {
      return JSON.stringify(internal(error));
    }
  };
  return {
    version: VERSION,
    instance,
    planText,
    plan(request: Request): Answer | Failure {
      let text: string;
      try {
        text = requestText(request);
      } catch (error) {
        return { error: { code: "malformed", field: "", message: `the request cannot be written as JSON: ${error}` } };
      }
      try {
        return JSON.parse(planText(text)) as Answer | Failure;
      } catch (error) {
        return internal(error);
      }
    },
    catalogue(): Catalogue {
      catalogue ??= JSON.parse(instance.catalogue()) as Catalogue;
      return catalogue;
    },
  };
}

function troubleOf(error: unknown): KernelError {
  if (error instanceof KernelError) return error;
  const detail = String((error as Error)?.message ?? error).slice(0, 200);
  if (typeof WebAssembly === "undefined") return new KernelError("no_wasm", detail);
  if (/unsafe-eval|content.security.policy|\bCSP\b/i.test(detail)) return new KernelError("csp", detail);
  if (/fetch|network|load|http|mime|magic/i.test(detail)) return new KernelError("network", detail);
  return new KernelError("failed", detail);
}

/** The script with the kernel as JavaScript leaves its factory. */
export function announcePlain(create: () => Promise<WasmInstance>): void {
  holder[PLAIN] = create;
}

/** The full kernel as JavaScript: the same C++, and the same answers. */
async function plain(): Promise<WasmInstance> {
  if (!holder[PLAIN]) await source?.plain?.();
  return (holder[PLAIN] as () => Promise<WasmInstance>)();
}

async function make(which: "core" | "full"): Promise<WasmInstance> {
  try {
    if (!source?.[which]) throw new KernelError("failed", "no kernel");
    return await source[which]();
  } catch (error) {
    const refusal = troubleOf(error);
    if (!/csp|no_wasm/.test(refusal.trouble)) throw refusal;
    shared.plain ??= plain();
    return shared.plain.catch(() => {
      shared.plain = undefined;
      throw refusal;
    });
  }
}

/** Refusals come as throws at once, as rejections, or never: each ends as a rejection with a KernelError. */
async function start(which: "core" | "full"): Promise<Kernel> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new KernelError("timeout", `no answer within ${PATIENCE} ms`)), PATIENCE);
  });
  try {
    return wrap(await Promise.race([make(which), late]));
  } finally {
    clearTimeout(timer);
  }
}

function once(which: "core" | "full"): Promise<Kernel> {
  const known = shared[which];
  if (known) return known;
  const kernel = start(which);
  shared[which] = kernel;
  kernel.then(
    ({ instance }) => {
      // From then on the full kernel is the page's only one.
      if (instance.wish) shared.core = shared.full = kernel;
    },
    () => {
      // A refusal is not kept: an element that comes later may try again.
      if (shared[which] === kernel) delete shared[which];
    },
  );
  return kernel;
}

/** The page's kernel. */
export const loadKernel = (): Promise<Kernel> => once("core");

/** The kernel that knows the engines and reads configs and logs too. */
export const loadFullKernel = (): Promise<Kernel> => once("full");

/** Whether an answer is a refusal. */
export function refused(answer: Answer | Failure): answer is Failure {
  return "error" in answer;
}

/**
 * Whether the core kernel leaves the answer to the full one: engines, own models, counts past its 64 bits, and the words
 * of whatever is refused, for which its own message is empty.
 */
export function needsFull(answer: Answer | Failure): boolean {
  return refused(answer) && answer.error.message === "";
}
