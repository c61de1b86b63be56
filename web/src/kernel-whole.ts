/** The full kernel inside the script from the start, for the command line. */
import create from "kernel:full";
import bytes from "kernel:full.wasm";
import { compile, provideKernels } from "./kernel.js";

provideKernels({ core: async () => create({ wasm: await compile(bytes()) }) });
