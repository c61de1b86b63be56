// The custom elements' manifest against the sources: attributes, members, events, parts and custom properties, read where
// each is written in the sources in its own few ways.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ELEMENTS, manifest } from "../web/manifest.mjs";

/** Called by the platform, or by what an element is made of, and by nobody else. */
const INTERNAL = /^(constructor|sight|.*Callback)$/;

const strings = (text) => [...text.matchAll(/"([^"]+)"/g)].map(([, one]) => one);
const all = (text, pattern) => [...text.matchAll(pattern)].map(([, one]) => one);

/** What differs between two lists of names, one a line. */
function differences(what, said, found) {
  const [a, b] = [new Set(said), new Set(found)];
  return [
    ...[...b].filter((name) => !a.has(name)).map((name) => `${what} ${name} is not in web/manifest.mjs`),
    ...[...a].filter((name) => !b.has(name)).map((name) => `${what} ${name} of web/manifest.mjs is not in the sources`),
  ];
}

/** What the manifest says wrongly or not at all, one a line. */
export function misdescribed(project) {
  const source = join(project, "web/src");
  const read = (name) => readFileSync(join(source, name), "utf8");
  const listed = (text, name) => strings(text.match(new RegExp(`const ${name} = \\[([^\\]]*)\\]`))?.[1] ?? "");
  const requests = read("request-text.ts");
  const keys = [...listed(requests, "TEXTS"), ...listed(requests, "COUNTS"), ...listed(requests, "KEYS")];
  const lesson = readdirSync(join(source, "lesson")).filter((name) => name.endsWith(".ts"));
  const found =
    keys.length > 10 ? [] : ["the keys of a request were not found: tests/manifest.mjs looks in another form"];

  /** A class's source and those of the classes that it extends. */
  const ancestry = (text) => {
    const [, base] = text.match(/^export (?:abstract )?class \w+ extends (\w+)/m) ?? [];
    const file = lesson.find((name) => new RegExp(`class ${base} `).test(read(`lesson/${name}`)));
    return file ? [text, ...ancestry(read(`lesson/${file}`))] : [text];
  };
  const sheets = [".", "lesson", "more"].flatMap((folder) =>
    readdirSync(join(source, folder))
      .filter((name) => name.endsWith(".css"))
      .map((name) => read(`${folder}/${name}`)),
  );
  const used = sheets.flatMap((css) => all(css, /var\((--kv-[\w-]+)/g));

  /** What the calculator's further parts ask it for. */
  const further = readdirSync(join(source, "more")).flatMap((name) =>
    all(read(`more/${name}`), /\belement\.(?:has|get)Attribute\("([\w-]+)"\)/g),
  );
  const described = new Map(
    manifest("").modules.flatMap(({ declarations }) => declarations.map((one) => [one.tagName, one])),
  );
  const events = [];
  for (const { tag, source: file } of ELEMENTS) {
    const element = described.get(tag);
    const texts = ancestry(read(file));
    const [own] = texts;
    const names = (list) => list.map(({ name }) => name);
    const compare = (what, said, present) => found.push(...differences(`<${tag}>: the ${what}`, said, present));

    const [, form, list] = own.match(/observedAttributes[^=]*= (attributes\(|\[)([^;]*?)[)\]];/) ?? [];
    if (!form) found.push(`<${tag}>: no attributes were found: tests/manifest.mjs looks for them in another form`);
    const observed = [
      ...strings(list ?? ""),
      ...(form === "attributes(" ? [...keys, "for"] : list?.includes("...KEYS") ? keys : []),
      "lang",
    ];
    const asked = texts.flatMap((text) => all(text, /this\.(?:has|get)Attribute\("([\w-]+)"\)/g));
    if (tag === "kv-capacity") asked.push(...further);
    compare("attribute", names(element.attributes), [...observed, ...asked]);

    const member = /^ {2}(?:declare |async |readonly |(?:get|set) )*([a-zA-Z]\w*)(?:[?!]?:|\(| =)/gm;
    const members = texts.flatMap((text) => {
      const from = text.search(/^export (?:abstract )?class /m);
      return all(text.slice(from, text.indexOf("\n}\n", from)), member);
    });
    const computed = own.includes("for (const key of KEYS) {\n      Object.defineProperty") ? keys : [];
    compare(
      "member",
      names(element.members),
      [...members, ...computed].filter((name) => !INTERNAL.test(name)),
    );

    const parts = texts.flatMap((text) =>
      all(text, /\bpart: ["`]([^"`$]+)["`$]/g).map((one) => one.trim().split(" ")[0]),
    );
    compare("part", names(element.cssParts), parts);
    compare("custom property", names(element.cssProperties), used);
    compare(
      "slot",
      element.slots.map(({ name }) => name || "(default)"),
      all(texts.join(""), /h\("(slot)"/g).map(() => "(default)"),
    );
    events.push(...names(element.events));

    const sent = all(own, /(?:new (?:Custom)?Event|this\.emit|this\.#send)\(\s*(?:settled \? )?("kv-[^,)]*)/g).flatMap(
      strings,
    );
    compare("event", names(element.events), sent);
  }
  const tags = [...lesson.map((name) => `lesson/${name}`), "kv-capacity.ts"].flatMap((name) =>
    all(read(name), /^ {4}"(kv-[\w-]+)": Kv\w+;/gm),
  );
  found.push(...differences("the tag", described.keys(), tags));
  const typed = [...lesson.map((name) => `lesson/${name}`), "kv-capacity.ts"].flatMap((name) =>
    all(read(name), /^ {4}"(kv-[\w-]+)": \w*Event;/gm),
  );
  found.push(...differences("the event", events, typed));
  return found.join("\n");
}
