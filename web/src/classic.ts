/** The self-contained classic script: kernel, elements, styles and English words in one file. */
import "./kernel-inline.js";
import "./more-script.js";
import "./elements.js";
