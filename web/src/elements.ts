/** Defines the tags where there is a page to define them in; importing this anywhere else does nothing. */
import { define } from "./dom.js";
import { KvCapacity } from "./kv-capacity.js";

define("kv-capacity", KvCapacity);

export type * from "./contract.js";
export type { CapacityDetail, CapacityEvent } from "./kv-capacity.js";
export { loadFullKernel, loadKernel, VERSION } from "./kernel.js";
export { addLanguage } from "./words.js";
export { KvCapacity };
