/** Why the kernel refuses a request, in the reader's words. */
import type { Answer, Failure } from "./contract.js";
import { isKey } from "./request-text.js";
import type { Speech } from "./words.js";

/** The request's key that a refusal is about; of a config's own fields, one that is none. */
export const keyOf = (error: Failure["error"]): string => error.field.split(/[.[]/)[0] ?? "";

/** A value as a sentence quotes it. */
export const quoted = (value: unknown): string =>
  typeof value === "object" ? "{…}" : String(value ?? "").slice(0, 60);

/** Which of the keys that a page gave a refusal is blamed on: the one that it names, else the last. */
export function blamed(error: Failure["error"], given: string[]): string | undefined {
  const key = keyOf(error);
  // A config's own fields are blamed on what brought it.
  const config = key === "config" || (key !== "" && !isKey(key)) ? ["config", "model"] : [];
  return [key, ...config, ...given.toReversed()].find((one) => given.includes(one));
}

/** That something stands in for what a page gave, with the reason. */
export function insteadOf(speech: Speech, why: string, value: unknown, used: string | number | undefined): string {
  return speech.text("instead", { why, value: quoted(value), used: used ?? speech.text("default") });
}

/** What an answer goes by for a key of the request. */
export function usedFor(key: string, plan: Answer): string | number | undefined {
  const value = ({ ...plan.model, ...plan.deployment, ...plan } as Record<string, unknown>)[key];
  const { name, k } = Object(value);
  const one = name ?? k ?? value;
  return typeof one === "string" || typeof one === "number" ? one : undefined;
}
