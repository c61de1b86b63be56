/** The ES module: elements here, the kernel in a file of its own beside it. */
import "./kernel-fetched.js";
import "./more-module.js";

export * from "./elements.js";
