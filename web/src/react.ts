/** The tags in React's JSX, by `import type {} from "kv-capacity/react"`. Declarations only: there is nothing to run. */
import type { DetailedHTMLProps, HTMLAttributes } from "react";
import type { Request } from "./contract.js";

// Brings what is known of the tags and of their events.
export type * from "./elements.js";

/** Attributes and properties that take a request's keys, beside what every tag of HTML takes. */
type Tag<Name extends keyof HTMLElementTagNameMap, Own extends string = never> = Omit<
  DetailedHTMLProps<HTMLAttributes<HTMLElementTagNameMap[Name]>, HTMLElementTagNameMap[Name]>,
  keyof Request | Own
> &
  Handlers & { [key in Own]?: string | number | boolean | undefined };

/** React calls `on` and an event's name for elements that are not its own. */
type Handlers = {
  [Name in keyof HTMLElementEventMap as Name extends `kv-${string}` ? `on${Name}` : never]?: (
    event: HTMLElementEventMap[Name],
  ) => void;
};

/** The calculator's properties take objects; the lesson's elements take texts. */
type Calculator = { [key in keyof Request]?: Request[key] | undefined } & { models?: unknown };
type Texts = { [key in keyof Request]?: string | number | undefined } & { for?: string | undefined };

interface Tags {
  "kv-capacity": Tag<"kv-capacity", "lock" | "link" | "hub"> & Calculator;
  "kv-capacity-table": Tag<"kv-capacity-table", "deployments" | "contexts" | "auto">;
  "kv-growth": Tag<"kv-growth", "step" | "prompt" | "answer"> & Texts;
  "kv-formula": Tag<"kv-formula", "layers" | "head_size" | "rows"> & Texts;
  "kv-curve": Tag<"kv-curve", "keep"> & Texts;
  "kv-levers": Tag<"kv-levers"> & Texts;
  "kv-attention": Tag<"kv-attention", "show" | "groups"> & Texts;
  "kv-memory": Tag<"kv-memory"> & Texts;
  "kv-paging": Tag<
    "kv-paging",
    "step" | "lengths" | "longest" | "prefix" | "page" | "memory" | "requests" | "every" | "seed"
  > &
    Texts;
  "kv-quiz": Tag<"kv-quiz", "seed" | "count" | "level" | "topics" | "question" | "lock"> & Texts;
  "kv-interview": Tag<"kv-interview", "seed"> & Texts;
}

declare module "react" {
  namespace JSX {
    interface IntrinsicElements extends Tags {}
  }
}
