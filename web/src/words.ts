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

const dictionaries = new Map<string, Dictionary>([["en", english]]);

/** Adds a language; keys that it lacks fall back to English. */
export function addLanguage(language: string, words: Dictionary): void {
  dictionaries.set(language, words);
}

/** Adds English words that come later than the rest. */
export function addEnglish(words: Dictionary): void {
  Object.assign(english, words);
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

/** A separator as a pattern. */
const literal = (text: string): string => `[${text.replace(/[\\\]^-]/g, "\\$&")}]`;

/** How precisely a byte figure is said: as a person would in a sentence, or to three digits. */
export type Precision = "spoken" | "three";

export class Speech {
  readonly #words: Dictionary;
  readonly #plural: Intl.PluralRules;
  readonly #formats = new Map<string, Intl.NumberFormat>();

  constructor(
    /** BCP 47 tag that numbers follow. */
    readonly language: string,
    words: Dictionary,
  ) {
    this.#words = words;
    this.#plural = new Intl.PluralRules(language);
  }

  /** The words' direction, which a page in another language may not share. */
  get direction(): "ltr" | "rtl" {
    return /^(ar|fa|he|ur)\b/.test(this.language) ? "rtl" : "ltr";
  }

  has(key: string): boolean {
    return (this.#words[key] ?? (english as Dictionary)[key]) !== undefined;
  }

  /** A message as plain text. */
  text(key: string, values: Values = {}): string {
    return this.#fill(this.#template(key).replace(/<\/?b>/g, ""), values);
  }

  /** A message with its stresses. */
  stretches(key: string, values: Values = {}): Stretch[] {
    return this.#template(key)
      .split(/<b>|<\/b>/)
      .map((text, i) => ({ text: this.#fill(text, values), strong: i % 2 === 1 }))
      .filter((stretch) => stretch.text !== "");
  }

  number(value: number, decimals = 0): string {
    return this.#format(`${decimals}`, { maximumFractionDigits: decimals }).format(value);
  }

  percent(share: number): string {
    return this.#format("%", { style: "percent", maximumFractionDigits: 1 }).format(share);
  }

  /** The digits of a byte figure, without its unit. */
  digits(reading: Reading, precision: Precision = "spoken"): string {
    const { value, unit } = reading;
    if (unit === "B") return this.number(value);
    if (unit === "KiB") return this.number(value, 1);
    if (precision === "three") return this.#format("three", { maximumSignificantDigits: 3 }).format(value);
    return this.number(value, value >= 9.995 ? 0 : 2);
  }

  unit(reading: Reading): string {
    return this.text(`unit.${reading.unit}`);
  }

  reading(reading: Reading, precision: Precision = "spoken"): string {
    return this.text("reading", { v: this.digits(reading, precision), unit: this.unit(reading) });
  }

  /**
   * What a person typed, as a request takes it: a number when it is one in this language's writing or in plain digits,
   * else the text as it stands, which C++ refuses. Whole numbers past 2^53 keep their digits.
   */
  parse(typed: string): number | bigint | string {
    const parts = this.#format("group", { useGrouping: true }).formatToParts(1234567.8);
    const part = (type: string) => parts.find((one) => one.type === type)?.value ?? "";
    const group = literal(part("group").trim() || "\u00a0");
    const decimal = literal(part("decimal") || ".");
    let plain = typed.normalize("NFKC").replace(/\s/g, "");
    // Separators count only where they stand as they should: "81,92" is not 8192, and "0,192" not 192.
    if (new RegExp(`^[+-]?(\\d{1,3}|[1-9]\\d{0,2}(${group}\\d{2,3})*${group}\\d{3})(${decimal}\\d+)?$`).test(plain)) {
      plain = plain.replace(new RegExp(group, "g"), "").replace(new RegExp(decimal), ".");
    }
    return numeral(plain) ?? typed;
  }

  #template(key: string): string {
    return this.#words[key] ?? (english as Dictionary)[key] ?? key;
  }

  #format(key: string, options: Intl.NumberFormatOptions): Intl.NumberFormat {
    let format = this.#formats.get(key);
    if (!format) {
      format = new Intl.NumberFormat(this.language, options);
      this.#formats.set(key, format);
    }
    return format;
  }

  #fill(template: string, values: Values, hash?: string): string {
    let out = "";
    let at = 0;
    while (at < template.length) {
      const open = template.indexOf("{", at);
      const end = open < 0 ? template.length : open;
      out += hash === undefined ? template.slice(at, end) : template.slice(at, end).replace("#", hash);
      if (open < 0) break;
      const close = closing(template, open);
      const [name = "", kind, ...rest] = template.slice(open + 1, close).split(",");
      const value = values[name.trim()] ?? "";
      if (kind?.trim() === "plural") out += this.#choose(rest.join(","), Number(value), values);
      else out += typeof value === "number" ? this.number(value, 6) : value;
      at = close + 1;
    }
    return out;
  }

  #choose(forms: string, count: number, values: Values): string {
    const category = this.#plural.select(count);
    const chosen = new Map<string, string>();
    for (let at = 0; ; ) {
      const open = forms.indexOf("{", at);
      if (open < 0) break;
      const close = closing(forms, open);
      chosen.set(forms.slice(at, open).trim(), forms.slice(open + 1, close));
      at = close + 1;
    }
    const form = chosen.get(`=${count}`) ?? chosen.get(category) ?? chosen.get("other") ?? "";
    return this.#fill(form, values, this.number(count, 6));
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
  let language = "en";
  try {
    const known = Intl.getCanonicalLocales(tag)[0] ?? "en";
    if (dictionaries.has(known.split("-")[0] ?? "")) language = known;
  } catch {
    // Not a language tag: English.
  }
  let speech = speeches.get(language);
  if (!speech) {
    speech = new Speech(language, dictionaries.get(language.split("-")[0] ?? "en") ?? english);
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
