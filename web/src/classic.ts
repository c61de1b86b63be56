/** The self-contained classic script: kernel, elements, styles and English words in one file. */
import "./kernel-inline.js";
import "./elements.js";
