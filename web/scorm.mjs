// Writes a package that learning platforms import, in the form of SCORM 1.2: the calculator and the quiz, which reports
// completion and a score. The site's build writes web/dist/kv-capacity-scorm.zip; `npm run scorm` writes another:
//
//   npm run scorm -- --calculator "model=llama-3.1-70b&gpus=4" --quiz "count=5&level=1" --lang de \
//                    --title "Sizing the KV cache" --mastery 60 --out lesson.zip
//
// `--calculator` and `--quiz` are states as links carry them. With `--mastery` (per cent) a lesson is passed or failed;
// without, it is completed with the last answer.
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { projectFolder } from "../cpp/toolchain/setup.mjs";
import { Failure, runMain, say } from "../cpp/toolchain/terminal.mjs";

const dist = join(projectFolder, "web/dist");

const escaped = (text) =>
  text.replace(
    /[&<>"\n\r\t]/g,
    (one) => `&${{ "&": "amp", "<": "lt", ">": "gt", '"': "quot" }[one] ?? `#${one.charCodeAt(0)}`};`,
  );

/** What the launch page loads, from the built site. */
function contents() {
  const scripts = readdirSync(dist).filter((name) => /^kv-capacity(-(?!builder|page)\w+)?\.js$/.test(name));
  const locales = readdirSync(join(dist, "locales")).flatMap((name) => (name.endsWith(".js") ? `locales/${name}` : []));
  return ["page.css", "scorm.js", ...scripts, ...locales].sort();
}

/** A value of a state as a request has it. */
function meant(text) {
  if (/^[{[]/.test(text)) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return /^\d{1,15}$/.test(text) ? Number(text) : text;
}

/** What the quiz lets an author set. */
const QUIZ_KEYS = ["seed", "count", "level", "topics", "lock"];

/** A state as attributes, once the kernel has accepted what they ask. */
async function attributes(option, state) {
  const given = [...new URLSearchParams(state)];
  if (given.length === 0) return "";
  const { KvCapacity, loadFullKernel } = await import(pathToFileURL(join(dist, "kv-capacity.mjs")).href);
  const known = option === "--quiz" ? QUIZ_KEYS : KvCapacity.observedAttributes;
  const strange = given.find(([key]) => !known.includes(key));
  if (strange) throw new Failure(`${option}: "${strange[0]}" is none of ${known.join(", ")}.`);
  const kernel = await loadFullKernel();
  const { lock: _, lang: __, topics, ...asked } = Object.fromEntries(given.map(([key, text]) => [key, meant(text)]));
  const list = topics === undefined ? {} : { topics: String(topics).split(/[\s,]+/) };
  const model = asked.config === undefined ? { model: "llama-3.1-8b" } : {};
  const answer =
    option === "--quiz"
      ? JSON.parse(kernel.instance.quiz(JSON.stringify({ ...asked, ...list })))
      : kernel.plan({ ...model, ...asked });
  if (answer.error) throw new Failure(`${option}: ${answer.error.field}: ${answer.error.message}`);
  return given.map(([key, text]) => ` ${key}="${escaped(text)}"`).join("");
}

function manifestOf({ title, mastery }, files) {
  const score = mastery === undefined ? "" : `\n        <adlcp:masteryscore>${mastery}</adlcp:masteryscore>`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<manifest identifier="kv-capacity" version="1.0"
    xmlns="http://www.imsproject.org/xsd/imscp_rootv1p1p2"
    xmlns:adlcp="http://www.adlnet.org/xsd/adlcp_rootv1p2">
  <metadata>
    <schema>ADL SCORM</schema>
    <schemaversion>1.2</schemaversion>
  </metadata>
  <organizations default="kv-capacity-lesson">
    <organization identifier="kv-capacity-lesson">
      <title>${escaped(title)}</title>
      <item identifier="kv-capacity-item" identifierref="kv-capacity-page" isvisible="true">
        <title>${escaped(title)}</title>${score}
      </item>
    </organization>
  </organizations>
  <resources>
    <resource identifier="kv-capacity-page" type="webcontent" adlcp:scormtype="sco" href="index.html">
${files.map((name) => `      <file href="${escaped(name)}"/>`).join("\n")}
    </resource>
  </resources>
</manifest>
`;
}

/**
 * The package as bytes, the same for the same build and options. `calculator` and `quiz` are states, `lang` a language
 * tag for both, `title` the lesson's, `mastery` a score from 0 to 100.
 */
export async function scormPackage({
  calculator = "",
  quiz = "",
  lang,
  title = "How many conversations fit?",
  mastery,
}) {
  if (mastery !== undefined && !/^(\d{1,2}|100)$/.test(mastery))
    throw new Failure(`--mastery ${mastery} is not a whole number from 0 to 100.`);
  if (lang !== undefined && !/^[a-z]{2,8}(-[a-z0-9]{1,8})*$/i.test(lang))
    throw new Failure(`--lang ${lang} is not a language tag, such as de or pt-BR.`);
  const { zipSync } = await import("fflate");
  const tongue = lang === undefined ? "" : ` lang="${lang}"`;
  const asked = await attributes("--calculator", calculator);
  const questions = await attributes("--quiz", quiz);
  const page = readFileSync(join(dist, "scorm.html"), "utf8")
    .replace("<kv-capacity>", () => `<kv-capacity${tongue}${asked}>`)
    .replace("<kv-quiz>", () => `<kv-quiz${tongue}${questions}>`)
    .replace(/(<title>|<h1>).*?(?=<\/)/g, (_all, tag) => tag + escaped(title));
  const files = contents();
  const bytes = (text) => new TextEncoder().encode(text);
  const entries = {
    // Some platforms look for the manifest first.
    "imsmanifest.xml": bytes(manifestOf({ title, mastery }, ["index.html", ...files])),
    "index.html": bytes(page),
    ...Object.fromEntries(files.map((name) => [name, new Uint8Array(readFileSync(join(dist, name)))])),
  };
  // The time is local to whoever unpacks it: the earliest that a zip can say.
  return zipSync(entries, { level: 9, mtime: new Date(1980, 0, 1) });
}

function optionsOf(args) {
  const known = ["calculator", "quiz", "lang", "title", "mastery", "out"];
  const out = {};
  for (let at = 0; at < args.length; at += 2) {
    const name = args[at].replace(/^--/, "");
    if (!args[at].startsWith("--") || !known.includes(name) || args[at + 1] === undefined)
      throw new Failure(`${args[at]}: give ${known.map((one) => `--${one} …`).join(", ")}.`);
    out[name] = args[at + 1];
  }
  return out;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await runMain(async () => {
    const { out = join(dist, "kv-capacity-scorm.zip"), ...options } = optionsOf(process.argv.slice(2));
    if (!existsSync(join(dist, "scorm.html"))) throw new Failure("Nothing is built: npm run build builds it.");
    writeFileSync(resolve(out), await scormPackage(options));
    say(`Wrote ${resolve(out)}`);
  });
}
