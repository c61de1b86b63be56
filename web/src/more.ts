/**
 * The second script, loaded when somebody asks for what it holds: the full kernel, and the parts of the calculator for
 * one's own models, engines and start-up logs.
 */
import type { Answer, Catalogue, Failure, Kernel, ModelObject, Request, WasmInstance } from "./contract.js";
import { KernelError } from "./kernel.js";
import type { Speech } from "./words.js";

/** What a calculator lets its further parts see and do. */
export interface Host {
  readonly element: HTMLElement;
  readonly root: ShadowRoot;
  readonly speech: Speech;
  readonly kernel: Kernel;
  readonly catalogue: Catalogue;
  readonly request: Request;
  /** What the page gave for a key; undefined where it gave nothing, or a reader changed it. */
  given(key: string): unknown;
  /** By key: what is used instead of that where it is refused, and why it is. Empties when the page gives anything. */
  readonly standIns: Map<string, { value: unknown; errors: Failure["error"][] }>;
  readonly plan: Answer | null;
  readonly error: Failure["error"] | null;
  /** The closed parts under the sentence and at the end, to be filled. */
  readonly panels: Record<"wish" | "own" | "engine" | "log" | "share", HTMLElement>;
  /** Below the sentence, for what an engine's answer has beyond the textbook's. */
  readonly reserved: HTMLElement;
  readonly modelSelect: HTMLSelectElement;
  /** As if a reader had set these; `undefined` takes a key back. */
  change(changes: Partial<Record<keyof Request, unknown>>): void;
  locked(key: string): boolean;
  open(panel: "own" | "engine" | "log"): void;
  addStyles(css: string): void;
  addEnglish(words: Partial<Record<string, string>>): void;
  announce(text: string): void;
}

/** The further parts of one calculator. */
export interface Attached {
  /** Each shows a part of the host's present answer. */
  parts: (() => void)[];
  /** Lets a default stand in for what the page gave, where that is refused; false where there is nothing to blame. */
  standIn(error: Failure["error"]): boolean;
  /** Why something is refused, in the reader's words; `value` is what was set. */
  why(error: Failure["error"], value: unknown): string;
  search(): void;
}

/** A model of a page's author. */
export interface AuthorModel {
  id: string;
  name: string;
  model?: ModelObject;
  config?: object | string;
}

export interface More {
  kernel(): Promise<WasmInstance> | WasmInstance;
  attach(host: Host): Attached;
  /** Models in an element's child scripts and in its property `models`. */
  authored(element: Element, models: unknown): AuthorModel[];
  /** English words for what the full kernel says beyond the core's. */
  words: Partial<Record<string, string>>;
}

const MORE = Symbol.for("kv-capacity.more.2");
const page = globalThis as { [MORE]?: Promise<More> };

let load: (() => Promise<unknown>) | undefined;

/** Says how this copy of the script finds the second one. */
export function provideMore(how: () => Promise<unknown>): void {
  load = how;
}

/** The second script announces itself. */
export function announceMore(more: More): void {
  page[MORE] = Promise.resolve(more);
}

let loading: Promise<More> | undefined;

/** The second script's content; rejects with a KernelError. A refusal is not kept. */
export function loadMore(): Promise<More> {
  if (page[MORE]) return page[MORE];
  loading ??= (async () => {
    try {
      await load?.();
    } catch (error) {
      throw error instanceof KernelError ? error : new KernelError("network", String(error));
    }
    const more = page[MORE];
    if (!more) throw new KernelError("network", "no second script");
    return more;
  })().finally(() => {
    loading = undefined;
  });
  return loading;
}
