// Turns models.tsv and gpus.tsv into the text that is compiled into the core: *_data.inc in
// the folder named on the command line. Checks every row first; the first fault ends it with one sentence.
//
// They are kept as text because that costs a third less in the compressed kernel than arrays of pointers and integers do,
// and column after column, one cell a line, because that costs a quarter less than rows; cpp/src/table.hpp reads it once,
// at first use. What only engines and the quiz look at stands in files of its own, which the core kernel leaves out. So
// does it leave out the rows that have no place in a course: its tables are those with "first" in their names.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

class Fault extends Error {}

/** Rows of a table as objects by column, with the line each stands on. */
function table(file, columns) {
  const text = readFileSync(join(here, file), "utf8");
  const lines = text.split("\n");
  if (lines.pop() !== "") throw new Fault(`${file}: the last line has no line end.`);
  const head = lines.shift()?.split("\t") ?? [];
  if (head.join() !== columns.join()) throw new Fault(`${file} line 1: the columns must be ${columns.join(", ")}.`);
  return lines.map((line, index) => {
    const where = `${file} line ${index + 2}`;
    const cells = line.split("\t");
    if (cells.length !== columns.length) {
      throw new Fault(`${where}: has ${cells.length} fields, ${columns.length} are needed.`);
    }
    for (const [at, cell] of cells.entries()) {
      if (/[^\x20-\x7e]|^ | $|["\\]/.test(cell)) {
        throw new Fault(`${where}: ${columns[at]} has a character that is not plain ASCII, or a space at an end.`);
      }
    }
    return { where, ...Object.fromEntries(columns.map((column, at) => [column, cells[at]])) };
  });
}

function need(row, condition, text) {
  if (!condition) throw new Fault(`${row.where}: ${text}.`);
}

function needWhole(row, column, max) {
  const cell = row[column];
  need(row, /^(0|[1-9]\d*)$/.test(cell), `${column} must be a whole number, not "${cell}"`);
  need(row, BigInt(cell) <= BigInt(max), `${column} must be at most ${max}`);
}

/** Each value of a column at most once, whatever its letter case. */
function needUnique(rows, column, read = (row) => row[column].toLowerCase()) {
  const seen = new Map();
  for (const row of rows) {
    const key = read(row);
    need(row, !seen.has(key), `${column} "${row[column]}" also stands on ${seen.get(key)}`);
    seen.set(key, row.where);
  }
}

// ids of cpp/src/format.cpp that a checkpoint or a state is stored in
const weightFormats = [
  "fp32",
  "bf16",
  "fp16",
  "fp8",
  "fp8_block",
  "int8",
  "int4_g128",
  "int4_g64",
  "int4_g32",
  "mxfp4",
  "nvfp4",
];
const stateFormats = ["fp32", "bf16", "fp16"];
const maxExact = Number.MAX_SAFE_INTEGER;

const whole = "[1-9]\\d*";
const heads = `${whole}x${whole}(/(0|${whole}))?(\\+${whole})?`;
const latent = `${whole}(:${whole})?(\\+${whole})?( ${whole}x${whole}(/${whole})?)?`;
const values = `(0|${whole}:(${stateFormats.join("|")}))`;
const runKinds = [
  `full ${heads}`,
  `(window|chunked) ${whole} ${heads}`,
  `latent ${latent}`,
  `compressed ${whole} (latent ${latent}|${heads})`,
  `cross (0|${whole}) ${heads}`,
  `recurrent ${values} ${values}`,
  "shared",
  "none",
];
const runPattern = new RegExp(`^${whole} (${runKinds.join("|")})$`);

/** As `same_variant` of cpp/src/catalogue.cpp compares names, so that no name could mean two rows. */
function variantKey(hubId) {
  const words = hubId.toLowerCase().replace(/^.*\//, "").split("-");
  return words.filter((word) => !["meta", "instruct", "it", "chat", "hf", "base", "pt"].includes(word)).join("-");
}

function models() {
  const rows = table("models.tsv", [
    "id",
    "hub_id",
    "name",
    "family",
    "layers",
    "parameters",
    "active_parameters",
    "native_weight_bytes",
    "max_context",
    "layer_count",
    "query_heads",
    "hidden_size",
    "vocabulary",
    "multimodal",
    "native_weights",
    "course",
    "source",
    "date",
  ]);
  const families = [];
  for (const row of rows) {
    need(row, /^[a-z0-9]+([.-][a-z0-9]+)*$/.test(row.id), `id "${row.id}" must be lower case with dots and dashes`);
    need(row, /^[\w.-]+\/[\w.-]+$/.test(row.hub_id), `hub_id "${row.hub_id}" must be owner/name`);
    need(row, row.name !== "" && row.family !== "", "name and family must be stated");
    for (const run of row.layers.split("; ")) {
      need(row, runPattern.test(run), `layers has "${run}", which is not a run of layers in the short notation`);
    }
    for (const column of ["parameters", "active_parameters", "native_weight_bytes"]) needWhole(row, column, maxExact);
    needWhole(row, "max_context", 2 ** 31);
    needWhole(row, "layer_count", 2 ** 16);
    needWhole(row, "query_heads", 2 ** 16);
    needWhole(row, "hidden_size", 2 ** 24);
    needWhole(row, "vocabulary", 2 ** 24);
    needWhole(row, "multimodal", 1);
    need(row, row.layer_count !== "0", "layer_count must be stated");
    need(row, weightFormats.includes(row.native_weights), `native_weights "${row.native_weights}" is not a format`);
    need(row, /^([1-9]\d*)?$/.test(row.course), "course must be a position or empty");
    need(row, row.source !== "", "the source must be stated");
    need(row, /^20\d\d-\d\d$/.test(row.date), "the date must be a year and a month, as 2026-10");
    need(row, families.at(-1) === row.family || !families.includes(row.family), `family "${row.family}" is split`);
    if (families.at(-1) !== row.family) families.push(row.family);
  }
  needUnique(rows, "id");
  needUnique(rows, "name");
  needUnique(rows, "hub_id", (row) => variantKey(row.hub_id));
  const plain = rows.map((row) => {
    const [owner, hubName] = row.hub_id.split("/");
    const layers = row.layers.split("; ").reduce((sum, run) => sum + Number.parseInt(run), 0);
    need(row, row.id.length + row.hub_id.length <= 128, "the two ids must have at most 128 characters together");
    return [
      row.family,
      owner,
      row.max_context,
      row.query_heads,
      row.native_weights,
      row.layers,
      row.name,
      row.id === idOf(row.name) ? "" : row.id,
      shortHubName(hubName, row.name),
      Number(row.layer_count) === layers ? "" : row.layer_count,
      orEmpty(row.parameters),
      orEmpty(row.active_parameters),
      orEmpty(row.native_weight_bytes),
    ];
  });
  const profile = rows.map((row) => [
    orEmpty(row.vocabulary),
    orEmpty(row.multimodal),
    orEmpty(row.hidden_size),
    row.course && "1",
  ]);
  return {
    "catalogue_data.inc": literal(plain, 6),
    "catalogue_first_data.inc": literal(ofCourse(rows, plain), 6),
    "catalogue_profile_data.inc": literal(profile, 0),
  };
}

function gpus() {
  const rows = table("gpus.tsv", [
    "id",
    "vendor",
    "name",
    "kind",
    "sold_gb",
    "driver_mib",
    "runtime_mib",
    "runtime_mib_max",
    "year",
    "course",
    "source",
  ]);
  for (const row of rows) {
    need(row, /^[a-z0-9]+(-[a-z0-9]+)*$/.test(row.id), `id "${row.id}" must be lower case with dashes`);
    need(row, row.name !== "" && row.kind !== "", "name and kind must be stated");
    for (const column of ["sold_gb", "driver_mib", "runtime_mib", "runtime_mib_max"]) needWhole(row, column, 2 ** 24);
    needWhole(row, "year", 2100);
    need(row, /^1?$/.test(row.course), "course must be 1 or empty");
    need(row, row.sold_gb !== "0", "sold_gb must be stated");
    const [low, high] = [Number(row.runtime_mib), Number(row.runtime_mib_max)];
    need(row, low <= high && (low === 0) === (high === 0), "runtime_mib must be at most runtime_mib_max");
    // A slip of a digit or a unit shows as a size that the name on the box cannot have.
    for (const mib of [Number(row.driver_mib), low, high]) {
      const share = (mib * 2 ** 20) / (Number(row.sold_gb) * 1e9);
      need(row, mib === 0 || (share > 0.65 && share < 1.09), `${mib} MiB cannot be a GPU sold as ${row.sold_gb} GB`);
    }
    need(row, row.source !== "", "the source must be stated");
  }
  needUnique(rows, "id");
  needUnique(rows, "name");
  const plain = rows.map((row) => {
    need(row, row.id.length <= 64, "id must have at most 64 characters");
    return [row.vendor || "-", row.kind, row.id === idOf(row.name) ? "" : row.id, row.name, row.sold_gb];
  });
  const sizes = rows.map((row) => [row.driver_mib, row.runtime_mib, row.runtime_mib_max, row.year].map(orEmpty));
  return {
    "gpus_data.inc": literal(plain, 2),
    "gpus_first_data.inc": literal(ofCourse(rows, plain), 2),
    "gpu_sizes_data.inc": literal(sizes, 0),
  };
}

/** Those of the `cells` whose rows have a place in a course. */
const ofCourse = (rows, cells) => cells.filter((_, at) => rows[at].course !== "");

const orEmpty = (cell) => (cell === "0" ? "" : cell);
const dashed = (name) => name.replaceAll(" ", "-");
const idOf = (name) => dashed(name).toLowerCase();

/** "=" stands for the name that the row has, "~" for the same in small letters. */
function shortHubName(hubName, name) {
  if (hubName.startsWith(dashed(name))) return `=${hubName.slice(name.length)}`;
  if (hubName.startsWith(idOf(name))) return `~${hubName.slice(name.length)}`;
  return hubName;
}

/** Column after column as a C++ string literal; in the first `repeating` columns a cell that repeats is left empty. */
function literal(rows, repeating) {
  const lines = rows[0].flatMap((_, column) =>
    rows.map((row, at) => (column < repeating && at > 0 && row[column] === rows[at - 1][column] ? "" : row[column])),
  );
  return `${lines.map((line) => `"${line}\\n"`).join("\n")}\n`;
}

try {
  const folder = process.argv[2];
  if (folder === undefined) throw new Fault("Usage: node generate.mjs <folder for the .inc files>");
  const outputs = { ...models(), ...gpus() };
  mkdirSync(folder, { recursive: true });
  for (const [file, text] of Object.entries(outputs)) writeFileSync(join(folder, file), text);
} catch (error) {
  if (!(error instanceof Fault)) throw error;
  console.error(error.message);
  process.exit(1);
}
