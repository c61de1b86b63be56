/** Further scripts as modules beside the first, which bundlers split off. */
import { provideLesson } from "./lesson.js";
import { provideMore } from "./more.js";

// @ts-expect-error: built beside the file that this ends up in.
provideMore(() => import("./kv-capacity-more.mjs"));
// @ts-expect-error: likewise.
provideLesson(() => import("./kv-capacity-lesson.mjs"));
