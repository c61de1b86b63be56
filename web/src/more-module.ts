/** The second script as a module beside the first, which bundlers split off. */
import { provideMore } from "./more.js";

// @ts-expect-error: built beside the file that this ends up in.
provideMore(() => import("./kv-capacity-more.mjs"));
