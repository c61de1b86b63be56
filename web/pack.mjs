// Bytes as printable ASCII, for a kernel inside a script. ASCII survives a page in Latin-1, and after brotli this form
// costs 3 % over the bare bytes where base64 costs 28 %, because it keeps the bytes aligned.
//
// 90 values to a plane. A byte of the first plane is one character from the space on; one of the next two has "}" or "~"
// before it. One bit of each byte is turned around, which brings more of WebAssembly's commonest bytes into the first plane
// and what is alike side by side: 270 bytes less after brotli. The three characters that would need an escape in a script or in HTML are replaced by "z", "{" and "|".

const SIZE = 90;
const FIRST = 32;
const TURNED = 32;
/** `"`, `<` and `\`, from the space on. */
const ESCAPED = [2, 28, 60];
const REPLACEMENT = "z".charCodeAt(0);
const PLANES = ["", "}", "~"];

/** @param {Uint8Array} bytes */
export function pack(bytes) {
  const character = (value) => {
    const escaped = ESCAPED.indexOf(value);
    return String.fromCharCode(escaped < 0 ? value + FIRST : REPLACEMENT + escaped);
  };
  return Array.from(bytes, (byte) => byte ^ TURNED)
    .map((value) => PLANES[Math.trunc(value / SIZE)] + character(value % SIZE))
    .join("");
}

/**
 * The reverse of `pack`; it goes into the script, so it is written to be short.
 * @param {string} text
 */
export function unpack(text) {
  const bytes = new TextEncoder().encode(text);
  let size = 0;
  let plane = 0;
  for (let index = 0; index < bytes.length; index++) {
    const code = bytes[index];
    if (code > 124) plane = (code - 124) * 90;
    else {
      bytes[size++] = (plane + (code < 122 ? code - 32 : ESCAPED[code - 122])) ^ 32;
      plane = 0;
    }
  }
  return bytes.subarray(0, size);
}
