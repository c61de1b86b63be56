/** What the first script shares with this one: kernel, words, styles, announcements. */
import type { Kit } from "../lesson.js";

const given = (globalThis as { [key: symbol]: unknown })[Symbol.for("kv-capacity.kit.1")] as Kit | undefined;
if (!given) throw new Error("kv-capacity-lesson: load kv-capacity.js first");

export const kit: Kit = given;
