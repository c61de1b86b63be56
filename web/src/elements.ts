/** Defines the tags where there is a page to define them in; importing this anywhere else does nothing. */
import { define } from "./dom.js";
import { KvCapacity } from "./kv-capacity.js";

define("kv-capacity", KvCapacity);

export type * from "./contract.js";
export type { CapacityDetail, CapacityEvent } from "./kv-capacity.js";
export { loadFullKernel, loadKernel, VERSION } from "./kernel.js";
export { addLanguage } from "./words.js";
// The classes of the tags that come later, and through them what a page's scripts know of those tags.
export type { KvAttention } from "./lesson/kv-attention.js";
export type { KvCapacityTable } from "./lesson/kv-capacity-table.js";
export type { KvCurve } from "./lesson/kv-curve.js";
export type { FactorEvent, KvFormula } from "./lesson/kv-formula.js";
export type { KvGrowth } from "./lesson/kv-growth.js";
export type { KvInterview } from "./lesson/kv-interview.js";
export type { KvLevers } from "./lesson/kv-levers.js";
export type { KvMemory } from "./lesson/kv-memory.js";
export type { KvPaging } from "./lesson/kv-paging.js";
export type { KvQuiz } from "./lesson/kv-quiz.js";
export type { AnswerEvent, SummaryEvent } from "./lesson/quiz-parts.js";
export { KvCapacity };
