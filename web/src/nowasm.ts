/** The full kernel as JavaScript, for pages and browsers that refuse WebAssembly. Nothing loads it anywhere else. */
import create from "kernel:javascript";
import { announcePlain } from "./kernel.js";

announcePlain(create);
