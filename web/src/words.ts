/**
 * Words and numbers in the reader's language. Messages are a small part of ICU's format: {name}, {name, plural, one {…}
 * other {…}} with =0 forms and # for the number, and <b>…</b> for what a sentence stresses.
 */
import english from "../locales/en.json";
import type { Reading } from "./contract.js";

export type Dictionary = Partial<Record<string, string>>;
export type Value = string | number;
export type Values = Record<string, Value>;
/** A stretch of text, stressed or not. */
export interface Stretch {
  text: string;
  strong: boolean;
}

/**
 * Words by the name of their file, such as "de" or "de-more": files of words put themselves here. The number is that of
 * this meeting point's form.
 */
const WORDS = Symbol.for("kv-capacity.words.1");
const page = globalThis as { [WORDS]?: Record<string, Dictionary> };
page[WORDS] ??= {};
const files = page[WORDS];
files.en ??= english;

/** The languages that have files of words, beside English, which the scripts bring along. */
const LANGUAGES = "ar de es fr hi ja pt zh";

/** Which script words belong to: the first, or one of those that come later. */
export type Part = "" | "-more" | "-lesson" | "-play";

let fetchWords: ((name: string) => Promise<unknown>) | undefined;

/** Says how this copy of the script finds a file of words. */
export function provideWords(how: (name: string) => Promise<unknown>): void {
  fetchWords = how;
}

/** Elements that speak, and how each of them does so anew. */
export const turns = new Map<Element, () => unknown>();

export function speakAnew(): void {
  for (const turn of turns.values()) turn();
}

/** A file of words has come, such as "de-more". */
export function addWords(name: string, words: Dictionary): void {
  files[name] = words;
}

/** Adds a language, or replaces its words for the first script; keys that it lacks fall back to English. */
export function addLanguage(language: string, words: Dictionary): void {
  addWords(language, words);
  speeches.clear();
  speakAnew();
}

/** Adds English words that come later than the rest. */
export function addEnglish(words: Dictionary): void {
  Object.assign(english, words);
}

/** A language tag, taken apart; English where it is none. */
function localeOf(tag: string): Intl.Locale {
  try {
    return new Intl.Locale(tag);
  } catch {
    return new Intl.Locale("en");
  }
}

const coming: Record<string, Promise<unknown> | undefined> = {};

/** A promise while words for a language tag are still to come. Words that do not come leave English, and one line. */
export function loadWords(tag: string, part: Part = ""): Promise<unknown> | undefined {
  const { language } = localeOf(tag);
  const names = [language, language + part].filter((name) => LANGUAGES.includes(language) && !files[name]);
  const missing = (error: unknown) => console.warn(`kv-capacity: ${error}`);
  return names[0] ? Promise.all(names.map((name) => (coming[name] ??= fetchWords?.(name).catch(missing)))) : undefined;
}

/** Where `{` at `from` closes. */
function closing(text: string, from: number): number {
  let depth = 0;
  for (let i = from; i < text.length; i++) {
    if (text[i] === "{") depth++;
    else if (text[i] === "}" && --depth === 0) return i;
  }
  return text.length;
}

/** A stretch of a message: text, or the name of a value, with its forms where these hang on a number. */
type Piece = string | { name: string; forms?: Map<string, string> | undefined };

/** Messages that were taken apart: a slider says the same ones over and over. */
const known = new Map<string, Piece[]>();

function piecesOf(template: string): Piece[] {
  let pieces = known.get(template);
  if (pieces) return pieces;
  pieces = [];
  known.set(template, pieces);
  for (let at = 0; at < template.length; ) {
    const open = template.indexOf("{", at);
    pieces.push(template.slice(at, open < 0 ? undefined : open));
    if (open < 0) break;
    at = closing(template, open) + 1;
    const [name = "", kind, ...rest] = template.slice(open + 1, at - 1).split(",");
    pieces.push({ name: name.trim(), forms: kind?.trim() === "plural" ? formsOf(rest.join(",")) : undefined });
  }
  return pieces;
}

/** What stands in braces, by what stands before it. */
function formsOf(text: string): Map<string, string> {
  const forms = new Map<string, string>();
  for (let at = 0; ; ) {
    const open = text.indexOf("{", at);
    if (open < 0) return forms;
    const close = closing(text, open);
    forms.set(text.slice(at, open).trim(), text.slice(open + 1, close));
    at = close + 1;
  }
}

/** How precisely a byte figure is said: as a person would in a sentence, or to three digits. */
export type Precision = "spoken" | "three";

/** What is written as halfway, such as 1.005, may be a little less in binary: here it is a little more. */
const halfUp = (value: number): number => value * (1 + 2e-16);

export class Speech {
  /** Not of the English whose numbers and plurals need no Intl. */
  readonly #plural: Intl.PluralRules | undefined;
  readonly #formats = new Map<string, Intl.NumberFormat>();

  constructor(
    /** BCP 47 tag that numbers follow. */
    readonly language: string,
  ) {
    if (!/^en(-US|-GB)?$/.test(language)) this.#plural = new Intl.PluralRules(language);
  }

  /** The words' direction, which a page in another language may not share. */
  get direction(): "ltr" | "rtl" {
    return /^(ar|fa|he|ur)\b/.test(this.language) ? "rtl" : "ltr";
  }

  has(key: string): boolean {
    return this.#find(key) !== undefined;
  }

  /** A message as plain text. */
  text(key: string, values?: Values): string {
    const template = this.#template(key);
    return values ? this.#fill(template.replace(/<\/?b>/g, ""), values) : template;
  }

  /** A message with its stresses. */
  stretches(key: string, values: Values = {}): Stretch[] {
    return this.#template(key)
      .split(/<b>|<\/b>/)
      .map((text, i) => ({ text: this.#fill(text, values), strong: i % 2 === 1 }))
      .filter((stretch) => stretch.text !== "");
  }

  number(value: number, decimals = 0): string {
    return (
      this.#plain(value, decimals) ?? this.#format(`${decimals}`, { maximumFractionDigits: decimals }).format(value)
    );
  }

  percent(share: number): string {
    const plain = this.#plain(share * 100, 1);
    return plain ? `${plain}%` : this.#format("%", { style: "percent", maximumFractionDigits: 1 }).format(share);
  }

  /** The digits of a byte figure, without its unit. */
  digits(reading: Reading, precision: Precision = "spoken"): string {
    const { value, unit } = reading;
    if (unit === "B") return this.number(value);
    if (unit === "KiB") return this.number(value, 1);
    if (precision === "three") return this.number(+halfUp(value).toPrecision(3), 9);
    return this.number(value, value >= 9.995 ? 0 : 2);
  }

  unit(reading: Reading): string {
    return this.text(`unit.${reading.unit}`);
  }

  reading(reading: Reading, precision: Precision = "spoken"): string {
    return this.text("reading", { v: this.digits(reading, precision), unit: this.unit(reading) });
  }

  /**
   * What a person typed, as a request takes it: a number when it is one in this language's writing, in whatever digits,
   * else the text as it stands, which C++ refuses. Whole numbers past 2^53 keep their digits.
   */
  parse(typed: string): number | bigint | string {
    const parts = this.#format("latn", { numberingSystem: "latn" }).formatToParts(12345678.9);
    const of = (type: string) => parts.filter((one) => one.type === type).map((one) => one.value);
    const group = of("group")[0]?.replace("\u2019", "'") ?? "";
    const [decimal = "."] = of("decimal");
    const kinds = new Set<number>();
    const plain = typed
      .trim()
      // Marks of direction come along when a number is copied; the Arabic separators are never anything else.
      .replace(/\p{Cf}/gu, "")
      .replace(/[\uff01-\uff5e]/g, (wide) => wide.normalize("NFKC"))
      .replaceAll("\u2019", "'")
      .replaceAll("\u066c", group)
      .replaceAll("\u066b", decimal)
      .replace(/\p{Nd}/gu, (digit) => {
        let before = 0;
        const code = digit.codePointAt(0) ?? 0;
        // The ten digits of a script follow one another; other digits stand before them in whole tens, if at all.
        while (/\p{Nd}/u.test(String.fromCodePoint(code - before - 1))) before++;
        kinds.add(code - (before % 10));
        return `${before % 10}`;
      });
    // Separators count only where they stand as they should: "81,92" is not 8192, and "0,192" not 192.
    const size = of("integer").at(-2)?.length ?? 3;
    const whole = `\\d+|[1-9]\\d{0,${size - 1}}(?=([${group}\\s]))(\\1\\d{${size}})*\\1\\d{3}`;
    const number = new RegExp(`^[+-]?(?:${whole})?([${decimal}]\\d*)?(e[+-]?\\d+)?$`, "i");
    const [all = "", separator = ""] = plain.match(number) ?? [];
    return (kinds.size < 2 ? numeral(all.replaceAll(separator, "").replace(decimal, ".")) : undefined) ?? typed;
  }

  #template(key: string): string {
    return this.#find(key) ?? key;
  }

  #find(key: string): string | undefined {
    const [language = ""] = this.language.split("-");
    for (const part of ["", "-more", "-lesson", "-play"] satisfies Part[]) {
      const found = files[language + part]?.[key];
      if (found !== undefined) return found;
    }
    return (english as Dictionary)[key];
  }

  /**
   * English numbers, as Intl writes them, with so many decimals at most. Undefined where Intl has to be asked, whose
   * first number takes a page longer than all else that it computes.
   */
  #plain(value: number, decimals: number): string | undefined {
    const text = `${value}`;
    // Of larger ones a little more would be seen.
    if (this.#plural || !/^\d{1,6}(\d{0,9}|\.\d+)$/.test(text)) return undefined;
    const [whole = "", part] = `${text.includes(".") ? +halfUp(value).toFixed(decimals) : value}`.split(".");
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? `.${part}` : "");
  }

  #format(key: string, options: Intl.NumberFormatOptions): Intl.NumberFormat {
    let format = this.#formats.get(key);
    if (!format) {
      format = new Intl.NumberFormat(this.language, options);
      this.#formats.set(key, format);
    }
    return format;
  }

  #fill(template: string, values: Values, hash = "#"): string {
    let out = "";
    for (const piece of piecesOf(template)) {
      if (typeof piece === "string") {
        out += piece.replace("#", hash);
        continue;
      }
      const { name, forms } = piece;
      const value = values[name] ?? "";
      if (forms) {
        const count = Number(value);
        const rule = this.#plural ? this.#plural.select(count) : count === 1 && "one";
        const form = forms.get(`=${count}`) ?? forms.get(rule || "other") ?? forms.get("other") ?? "";
        out += this.#fill(form, values, this.number(count, 6));
      } else out += typeof value === "number" ? this.number(value, 6) : value;
    }
    return out;
  }
}

/** Text that is a JSON-like number, as one; else undefined. */
export function numeral(text: string): number | bigint | undefined {
  if (/^[+-]?\d+$/.test(text)) {
    const value = Number(text);
    return Number.isSafeInteger(value) ? value : BigInt(text.replace("+", ""));
  }
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined;
}

const speeches = new Map<string, Speech>();

/** Words for a language tag; English where the language is not there. */
export function speechFor(tag: string): Speech {
  const locale = localeOf(tag);
  const language = files[locale.language] ? `${locale}` : "en";
  let speech = speeches.get(language);
  if (!speech) {
    speech = new Speech(language);
    speeches.set(language, speech);
  }
  return speech;
}

/** The language around a node: the nearest `lang`, through shadow roots, else the browser's. */
export function languageOf(node: Element): string {
  for (let at: Element | null = node; at; ) {
    const named: Element | null = at.closest("[lang]");
    if (named) return named.getAttribute("lang") || "en";
    const root: Node = at.getRootNode();
    at = "host" in root ? (root.host as Element) : null;
  }
  return navigator.language;
}
