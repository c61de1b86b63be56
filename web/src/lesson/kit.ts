/** What the first script shares with this one: kernel, words, styles, announcements. */
import type { Kit } from "../lesson.js";
import type { Dictionary, Part } from "../words.js";

const given = (globalThis as { [key: symbol]: unknown })[Symbol.for("kv-capacity.kit.1")] as Kit | undefined;
if (!given) throw new Error("kv-capacity-lesson: load kv-capacity.js first");

export const kit: Kit = given;

/** Which script's words the elements here speak. */
export let part: Part = "";

export function speak(which: Part, english: Dictionary): void {
  part = which;
  kit.addEnglish(english);
}
