// From what V8 counted in a script back to the lines of its sources.

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The numbers of one segment of a source map: base 64, five bits a digit, the lowest first, the sign in the lowest bit. */
function numbers(segment) {
  const found = [];
  let value = 0;
  let shift = 0;
  for (const character of segment) {
    const digit = DIGITS.indexOf(character);
    value |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    found.push(value & 1 ? -(value >> 1) : value >> 1);
    value = 0;
    shift = 0;
  }
  return found;
}

/**
 * Where a script's text comes from, by the source map at its end: for each place that has a source, its offset in the
 * text, the source's name and the line there, from 1. Form: https://tc39.es/ecma426/. A script without one has none.
 */
export function placesOf(text) {
  const [, packed] = text.match(/\n\/\/# sourceMappingURL=data:application\/json;base64,([\w+/=]+)\s*$/) ?? [];
  if (!packed) return [];
  const { sources, mappings } = JSON.parse(Buffer.from(packed, "base64").toString());
  const found = [];
  // Where a script stands after words in one file, its map knows of its own lines alone.
  let start = Math.max(0, text.search(/^"use strict";\n\(\(\) => \{$/m));
  let [source, line] = [0, 0];
  for (const segments of mappings.split(";")) {
    let column = 0;
    for (const segment of segments.split(",")) {
      const [columns = 0, sourceStep, lineStep] = numbers(segment);
      column += columns;
      if (sourceStep === undefined) continue;
      source += sourceStep;
      line += lineStep;
      // A line's first place is its indentation, which is before what begins there.
      let offset = start + column;
      while (text[offset] === " ") offset++;
      found.push({ offset, source: sources[source], line: line + 1 });
    }
    start = text.indexOf("\n", start) + 1;
  }
  return found;
}

/**
 * Which characters of a script of that length were run, as V8 reports functions: a 1 for each. Ranges come from the outer
 * to the inner; a function that is not in the report is in one that was not run.
 */
export function ranIn(functions, length) {
  const ran = new Uint8Array(length);
  for (const { ranges } of functions)
    for (const { startOffset, endOffset, count } of ranges) ran.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  return ran;
}

/**
 * The lines of each source that hold code, with whether anything on the line was run in one of the scripts. `scripts` are
 * {places, ran}; `textOf` gives a source's text.
 */
export function linesOf(scripts, textOf) {
  const sources = new Map();
  for (const { places, ran } of scripts) {
    for (const { offset, source, line } of places) {
      if (!sources.has(source)) sources.set(source, { texts: textOf(source).split("\n"), lines: new Map() });
      const { texts, lines } = sources.get(source);
      if (/\w/.test(texts[line - 1])) lines.set(line, lines.get(line) === true || ran[offset] === 1);
    }
  }
  return sources;
}
