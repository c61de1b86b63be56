/** The second script, self-contained: full kernel, further parts, their styles and English words. */
import create from "kernel:full";
import bytes from "kernel:full.wasm";
import { compile } from "../kernel.js";
import { announceMore } from "../more.js";
import words from "../../locales/en-more.json";
import { attach } from "./attach.js";
import { authored } from "./authored.js";

announceMore({ kernel: async () => create({ wasm: await compile(bytes()) }), attach, authored, words });
