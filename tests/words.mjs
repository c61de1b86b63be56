// Every code that the core can put into an answer has words in English. The codes are read from the sources: each kind
// stands in its own few ways of being written there.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const PARTS = ["", "-more", "-lesson", "-play"];

const readWords = (project, name) => JSON.parse(readFileSync(join(project, "web/locales", `${name}.json`), "utf8"));

/**
 * What a message takes: its placeholders with their kinds, its plural forms, how often it stresses something. Throws on
 * what the elements could not read.
 */
export function shapeOf(message) {
  const shape = { names: new Set(), stresses: 0, plurals: [] };
  /** Reads text up to the brace that closes it, or to the end, and returns where that is. */
  const read = (at, depth, counted) => {
    let i = at;
    for (; i < message.length; i++) {
      if (message[i] === "}") {
        if (depth === 0) throw new Error("a } closes nothing");
        return i;
      }
      if (message.startsWith("<", i)) {
        const [tag] = message.slice(i).match(/^<\/?b>/) ?? [];
        if (!tag) throw new Error("a < that is neither <b> nor </b>");
        if (depth > 0) throw new Error(`${tag} inside braces`);
        if ((tag === "<b>") !== (shape.stresses % 2 === 0)) throw new Error(`${tag} out of order`);
        shape.stresses++;
      }
      if (message[i] === "#" && !counted) throw new Error("a # outside of a plural");
      if (message[i] === "{") i = placeholder(i + 1, depth + 1);
    }
    if (depth > 0) throw new Error("a { is not closed");
    return i;
  };
  const placeholder = (from, depth) => {
    const [head, name, comma] = message.slice(from).match(/^\s*([A-Za-z_]\w*)\s*(,?)/) ?? [];
    if (!name) throw new Error(`{${message.slice(from, from + 12)}: no name`);
    let at = from + head.length;
    shape.names.add(name);
    if (!comma) {
      if (message[at] !== "}") throw new Error(`{${name} is not closed`);
      return at;
    }
    const [kind] = message.slice(at).match(/^\s*plural\s*,/) ?? [];
    if (!kind) throw new Error(`{${name}: only plural is known`);
    at += kind.length;
    const forms = [];
    for (;;) {
      const [start, form] = message.slice(at).match(/^\s*(=\d+|zero|one|two|few|many|other)\s*\{/) ?? [];
      if (!start) break;
      if (forms.includes(form)) throw new Error(`{${name}: ${form} twice`);
      forms.push(form);
      at = read(at + start.length, depth + 1, true) + 1;
    }
    at += message.slice(at).match(/^\s*/)[0].length;
    if (message[at] !== "}") throw new Error(`{${name}: ${message.slice(at, at + 12)} is no plural form`);
    shape.plurals.push({ name, forms });
    return at;
  };
  read(0, 0, false);
  if (shape.stresses % 2) throw new Error("a <b> is not closed");
  return shape;
}

/** What is wrong with a language's words against English: one line each. */
export function strayWords(language, english, words) {
  const found = [];
  const categories = new Intl.PluralRules(language).resolvedOptions().pluralCategories;
  for (const part of PARTS) {
    const file = `${language}${part}.json`;
    const [own, model] = [words[part], english[part]];
    if (!own) {
      found.push(`${file} is missing`);
      continue;
    }
    for (const key of Object.keys(model)) if (!(key in own)) found.push(`${file} lacks ${key}`);
    for (const [key, message] of Object.entries(own)) {
      if (!(key in model)) {
        found.push(`${file} has ${key}, which English has not`);
        continue;
      }
      try {
        const [shape, wanted] = [shapeOf(message), shapeOf(model[key])];
        for (const name of wanted.names) if (!shape.names.has(name)) found.push(`${file}: ${key} leaves out {${name}}`);
        for (const name of shape.names)
          if (!wanted.names.has(name)) found.push(`${file}: ${key} has {${name}} of its own`);
        if (shape.stresses === 0 && wanted.stresses > 0) found.push(`${file}: ${key} stresses nothing`);
        for (const { name, forms } of shape.plurals) {
          const lacking = categories.filter((one) => !forms.includes(one));
          const idle = forms.filter((one) => !one.startsWith("=") && !categories.includes(one));
          if (lacking.length > 0) found.push(`${file}: ${key}, {${name}} lacks ${lacking.join(", ")}`);
          if (idle.length > 0)
            found.push(`${file}: ${key}, {${name}} has ${idle.join(", ")}, which ${language} does not use`);
        }
      } catch ({ message: why }) {
        found.push(`${file}: ${key}: ${why}`);
      }
    }
    for (const key of Object.keys(model)) {
      const twin = PARTS.find((other) => other !== part && key in (words[other] ?? {}));
      if (twin !== undefined && key in own && words[twin][key] !== own[key])
        found.push(`${file} and ${language}${twin}.json differ in ${key}`);
    }
  }
  return found;
}

/** What is wrong with the words of each language; the list of languages that the first script knows is held to it. */
export function languages(project) {
  const present = readdirSync(join(project, "web/locales"))
    .map((name) => name.match(/^([a-z]+)\.json$/)?.[1])
    .filter((one) => one && one !== "en")
    .sort();
  const known = readFileSync(join(project, "web/src/words.ts"), "utf8")
    .match(/LANGUAGES = "([^"]*)"/)?.[1]
    .split(" ");
  const files = new Set(readdirSync(join(project, "web/locales")));
  const wordsOf = (language) =>
    Object.fromEntries(
      PARTS.filter((part) => files.has(`${language}${part}.json`)).map((part) => [
        part,
        readWords(project, `${language}${part}`),
      ]),
    );
  const english = wordsOf("en");
  const found = ["en", ...present].flatMap((language) => strayWords(language, english, wordsOf(language)));
  if (known?.join() !== present.join()) found.push(`web/src/words.ts knows ${known}, and web/locales holds ${present}`);
  return found.join("\n");
}

/** Kinds of code: the keys that word one, and how it is written in the files of the core. */
const kinds = [
  {
    name: "note",
    keys: (code) => [`note.${code}`],
    files: /^(answer|textbook|engine_\w+|import_\w+)\.cpp$/,
    patterns: [
      /notes\.push_back\(\s*\{\s*"(\w+)"/g,
      /note_codes\.emplace_back\("(\w+)"\)/g,
      /\bnote\("(\w+)"\)/g,
      /\bwrite\("(\w+)", \{/g,
    ],
  },
  {
    name: "gap",
    keys: (code) => [`gap.${code}`],
    files: /^engine_\w+\.cpp$/,
    patterns: [/add_gap\(out, (?:\w+ \? "(\w+)" : )?"(\w+)"/g, /MemoryPart \w+\{\.code = "(?!compute_buffer)(\w+)"\}/g],
  },
  {
    name: "part",
    keys: (code) => [`part.${code}`, `seg.${code}`],
    files: /^(textbook|engine_\w+)\.cpp$/,
    patterns: [
      /parts\.push_back\(\{"(\w+)"/g,
      /part_of\(in\.options, "\w+", "(\w+)"/g,
      /MemoryPart part\{\.code = "(\w+)"/g,
    ],
  },
  {
    name: "segment",
    keys: (code) => [`seg.${code}`],
    files: /^(textbook|engine_\w+)\.cpp$/,
    patterns: [
      /parts\.push_back\(\{"(\w+)"/g,
      /part_of\(in\.options, "\w+", "(\w+)"/g,
      /MemoryPart part\{\.code = "(\w+)"/g,
    ],
  },
  {
    name: "part as a term",
    keys: (code) => [`of.${code}`],
    files: /^engine_vllm\.cpp$/,
    patterns: [/parts\.push_back\(\{"(\w+)"/g, /part_of\(in\.options, "\w+", "(\w+)"/g],
  },
  {
    name: "step",
    keys: (code) => [`step.${code}`],
    files: /^(derive|textbook|engine_\w+)\.cpp$/,
    patterns: [/(?:derivation|\bto|\bout)\.add\(\s*"(\w+)"/g, /Label name = fixed \? "(\w+)" : "(\w+)"/g],
  },
  {
    name: "term",
    keys: (code) => [`of.${code}`],
    files: /^(derive|textbook|engine_\w+)\.cpp$/,
    patterns: [
      /\bterm\("[^"]*", [^;]*?, "(\w+)"\)/g,
      /\.put\("[^"]*", [^;]*?, "(\w+)"\)/g,
      /\{"[×÷+−]", [^;{}]*?, "(\w+)"\}/g,
      /\.add\(\s*"\w+", [^;"]*, "(\w+)"/g,
      /fixed \? "(bytes\w+)" : "(bytes\w+)"/g,
      /plain \? "(\w+)" : "(\w+)"/g,
    ],
    // Plain factors, of which the step's own words say what they are.
    bare: /^(k_and_v|head_dimension|key_width|copies|context_parallel|groups)$/,
  },
  {
    name: "cache",
    keys: (code) => [`cache.${code}`],
    files: /^engine_(llama_cpp|sglang)\.cpp$/,
    patterns: [/cache\.name = (?:[^;"]*\? )?"(\w+)"(?: : "(\w+)")?/g, /pool_of\("(\w+)"/g, /consider\("(\w+)"/g],
  },
  {
    name: "finding",
    keys: (code) => [`log.finding.${code}`, `log.contradiction.${code}`],
    files: /^log_\w+\.cpp$/,
    patterns: [
      /NoteWriter(?: note)?\((?:out|\*refusals), [^;"]*"(\w+)"(?: : "(\w+)")?\)/g,
      /\bcount\("(\w+)"/g,
      /\{"(\w+)", (?:kv_memory|available)\}/g,
      /^ +\{"(\w+)", figures\.\w+\},$/gm,
      /^ +\{"(\w+)", log::truth_of/gm,
    ],
  },
  {
    name: "field of a log",
    keys: (code) => [`log.field.${code}`],
    files: /^log_\w+\.hpp$/,
    patterns: [/X\(\w+, "(\w+)"/g],
  },
  {
    name: "missing or compared field of a log",
    keys: (code) => [`log.field.${code}`],
    files: /^log_\w+\.cpp$/,
    patterns: [
      /^ +\{"(\w+)", [^{}\n]*(?:question\.\w+|reader\.\w+\(\)|figures\.has\(\w+\)|version\.empty\(\))[^{}\n]*\},$/gm,
      /write_comparison\(out, "(\w+)"/g,
      /attempt\("(\w+)"/g,
    ],
    bare: /^nothing_found$/,
  },
  {
    name: "step of the quiz",
    keys: (code) => [`step.${code}`],
    files: /^quiz_mistakes\.cpp$/,
    patterns: [/out\.add\("(\w+)"/g],
  },
  {
    name: "term of the quiz",
    keys: (code) => [`of.${code}`],
    files: /^quiz_mistakes\.cpp$/,
    patterns: [/\.put\("[^"]*", [^;]*?, "(\w+)"\)/g, /out\.add\("\w+", [^;"]*, "(\w+)"/g],
  },
  ...["name", "mistake"].map((kind) => ({
    name: `mistake of the quiz (${kind})`,
    keys: (code) => [`quiz.${kind}.${code}`],
    files: /^quiz(_mistakes)?\.cpp$/,
    patterns: [/^ {4}\{"(\w+)", \w+\},$/gm, /\badd\("(\w+)", [^"]*\);$/gm, /diagnoses\.push_back\("(\w+)"\)/g],
    bare: /^bits$/,
  })),
  {
    name: "kind of question",
    keys: (code) => [`quiz.ask.${code}`, `interview.link.${code}`],
    files: /^quiz_mistakes\.cpp$/,
    // A lever has a sentence for each of its kinds.
    bare: /^lever$/,
    patterns: [/"(\w+)"(?=[^;]*"ask_context"\};)/g, /"(ask_context)"/g],
  },
  {
    name: "number that a question gives",
    keys: (code) => [`quiz.given.${code}`],
    files: /^quiz\.cpp$/,
    patterns: [
      /\b(?:number|format|open|named)\("(\w+)"/g,
      /^ +(?:\} kShape\[\] = \{)?\{"(\w+)", (?:run|entry|model)\b/gm,
    ],
  },
  {
    name: "stretch of a log's bar",
    keys: (code) => [`log.seg.${code}`, `seg.${code}`],
    files: /^log_\w+\.cpp$/,
    patterns: [/^ +add\("(\w+)", (?!")/gm],
  },
];

/** What has no words, one a line. */
export function wordless(project) {
  const folder = join(project, "cpp/src");
  const read = (name) => JSON.parse(readFileSync(join(project, "web/locales", name), "utf8"));
  // What the first kernel says needs words that are there from the start.
  const first = read("en.json");
  const play = read("en-play.json");
  const lesson = { ...play, ...read("en-lesson.json") };
  const twofold = Object.keys(play).filter((key) => play[key] !== lesson[key]);
  const more = read("en-more.json");
  const words = { ...first, ...more, ...lesson };
  const found = [];
  for (const { name, keys, files, patterns, bare } of kinds) {
    let any = false;
    for (const file of readdirSync(folder).filter((one) => files.test(one))) {
      const text = readFileSync(join(folder, file), "utf8");
      const known = /^(answer|derive|textbook)\.cpp$/.test(file) ? first : words;
      const codes = patterns.flatMap((pattern) => [...text.matchAll(pattern)].flatMap(([, ...groups]) => groups));
      for (const code of new Set(codes.filter(Boolean))) {
        any = true;
        if (bare?.test(code) || keys(code).some((key) => key in known)) continue;
        found.push(`the ${name} "${code}" of ${file} has no words: ${keys(code)[0]} in web/locales`);
      }
    }
    // A kind of which nothing is found is written in another way than it was.
    if (!any) found.push(`no ${name} was found in the sources: tests/words.mjs looks for it in another form`);
  }
  for (const [file, option] of offeredOptions(folder)) {
    if (Object.keys(words).some((key) => key.startsWith("option.") && key.endsWith(`.${option}`))) continue;
    found.push(`the option "${option}" of ${file} has no sentence: option.${option} in web/locales`);
  }
  for (const key of twofold) found.push(`en-play.json and en-lesson.json differ in ${key}`);
  // Words that come later take the place of those that are there.
  for (const key of Object.keys(more))
    if (key in first || key in lesson) found.push(`en-more.json says ${key}, which another file says already`);
  found.push(
    ...wordlessElements(join(project, "web/src/lesson"), words, lesson, first, "en-lesson.json or en-play.json"),
  );
  const builder = read("en-builder.json");
  const known = { ...words, ...builder };
  found.push(...wordlessElements(join(project, "web/src/builder"), known, builder, words, "en-builder.json"));
  return found.join("\n");
}

/**
 * Keys that the elements of a folder ask for and that are nowhere, and words of their own that they never ask for. A key
 * that is put together from parts is held against what starts like it. `files` names where their own words are.
 */
function wordlessElements(folder, words, own, earlier, files) {
  const found = [];
  // The steps of a derivation are worded where the calculator can reach them too.
  const sources = [...readdirSync(folder).filter((name) => name.endsWith(".ts")), "../steps.ts"];
  const exact = new Set();
  const starts = new Set();
  for (const file of sources) {
    const text = readFileSync(join(folder, file), "utf8");
    for (const [, key] of text.matchAll(/\b(?:word|rich|stretches|text)\(\s*"([^"]+)"/g)) {
      exact.add(key);
      if (!(key in words)) found.push(`${file} asks for words that are not there: ${key}`);
    }
    for (const [, start] of text.matchAll(/`([\w-]+\.(?:[\w-]+\.)?)\$\{/g)) {
      starts.add(start);
      if (/^[\w-]+\.$/.test(start) && !Object.keys(words).some((key) => key.startsWith(start)))
        found.push(`${file} asks for words of which none starts with ${start}`);
    }
    for (const [, key] of text.matchAll(/"([\w-]+(?:\.[\w-]+)+)"/g)) exact.add(key);
  }
  for (const key of Object.keys(own)) {
    if (key in earlier) found.push(`${files} says ${key}, which an earlier file says already`);
    if (!exact.has(key) && ![...starts].some((start) => key.startsWith(start)))
      found.push(`${files}: no element asks for ${key}`);
  }
  return found;
}

/** The options of each engine that its table offers to readers. */
function offeredOptions(folder) {
  const found = [];
  for (const file of readdirSync(folder).filter((one) => /^(textbook|engine_\w+)\.cpp$/.test(one))) {
    const text = readFileSync(join(folder, file), "utf8");
    for (const [, spec] of text.matchAll(/OptionSpec\{([^{}]*)\}/g)) {
      const name = spec.match(/\.name = "(\w+)"/)?.[1];
      if (name && !spec.includes(".offered = false")) found.push([file, name]);
    }
    for (const [, rest] of text.matchAll(/^ {4}(?:count|truth)_option\(([^;]*?)\),$/gm)) {
      // The last of its yes and no says whether it is offered.
      if (rest.match(/\b(true|false)\b/g)?.at(-1) === "true") found.push([file, rest.match(/"(\w+)"/)[1]]);
    }
  }
  return found;
}
