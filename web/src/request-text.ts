/** A request as attributes and links write it: one text a key. */
import { requestText } from "./kernel.js";
import { numeral } from "./words.js";

const TEXTS = ["model", "weights", "kv", "gpu", "engine"] as const;
const COUNTS = [
  "gpus",
  "context",
  "parameters",
  "kv_heads",
  "weight_bytes",
  "tensor_parallel",
  "pipeline_parallel",
  "data_parallel",
] as const;
/** A request's keys, as attributes and as a link name them. */
export const KEYS = [...TEXTS, ...COUNTS, "options", "config"] as const;
export type Key = (typeof KEYS)[number];

export const isKey = (name: string): name is Key => (KEYS as readonly string[]).includes(name);

/** An attribute's or a link's text as a request takes it; what cannot be read stays text, which C++ refuses by field. */
export function fromText(key: Key, text: string): unknown {
  if (key === "options" || (text.startsWith("{") && (key === "kv" || key === "gpu" || key === "model"))) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return (COUNTS as readonly string[]).includes(key) ? (numeral(text.trim()) ?? text) : text.trim();
}

export function toText(value: unknown): string {
  return typeof value === "object" ? requestText(value) : String(value);
}
