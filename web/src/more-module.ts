/** Further scripts as modules beside the first, which bundlers split off. */
import { provideLesson } from "./lesson.js";
import { provideMore } from "./more.js";
import { addWords, provideWords } from "./words.js";
import files from "words:files";

provideWords(async (name) => {
  const file = await files[name]?.();
  if (file) addWords(name, file.default);
});
// @ts-expect-error: built beside the file that this ends up in.
provideMore(() => import("./kv-capacity-more.mjs"));
provideLesson((part) =>
  part === "play"
    ? // @ts-expect-error: likewise.
      import("./kv-capacity-play.mjs")
    : // @ts-expect-error: likewise.
      import("./kv-capacity-lesson.mjs"),
);
