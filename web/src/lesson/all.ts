/** The third script: the lesson's elements but those to play with, their styles and their English words. */
import words from "../../locales/en-lesson.json";
import { speak } from "./kit.js";
import { KvAttention } from "./kv-attention.js";
import { KvCapacityTable } from "./kv-capacity-table.js";
import { KvCurve } from "./kv-curve.js";
import { KvFormula } from "./kv-formula.js";
import { KvGrowth } from "./kv-growth.js";
import { KvLevers } from "./kv-levers.js";
import { KvMemory } from "./kv-memory.js";

speak("-lesson", words);

const elements = {
  "kv-attention": KvAttention,
  "kv-capacity-table": KvCapacityTable,
  "kv-curve": KvCurve,
  "kv-formula": KvFormula,
  "kv-growth": KvGrowth,
  "kv-levers": KvLevers,
  "kv-memory": KvMemory,
};
for (const [name, element] of Object.entries(elements)) {
  if (!customElements.get(name)) customElements.define(name, element);
}
