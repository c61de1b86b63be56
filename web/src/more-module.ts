/** Further scripts as modules beside the first, which bundlers split off. */
import { provideLesson } from "./lesson.js";
import { provideMore } from "./more.js";

// @ts-expect-error: built beside the file that this ends up in.
provideMore(() => import("./kv-capacity-more.mjs"));
provideLesson((part) =>
  part === "play"
    ? // @ts-expect-error: likewise.
      import("./kv-capacity-play.mjs")
    : // @ts-expect-error: likewise.
      import("./kv-capacity-lesson.mjs"),
);
