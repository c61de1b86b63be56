/** The second script as a module: the full kernel is a file of its own beside it. */
import create from "kernel:full";
import sha256 from "kernel:full.sha256";
import { bytesOf } from "../bytes.js";
import { compile } from "../kernel.js";
import { announceMore } from "../more.js";
import words from "../../locales/en-more.json";
import { attach } from "./attach.js";
import { authored } from "./authored.js";

announceMore({
  kernel: async () =>
    create({ wasm: await compile(await bytesOf(new URL("./kv-capacity-more.wasm", import.meta.url), sha256)) }),
  attach,
  authored,
  words,
});
