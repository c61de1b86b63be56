/** What <kv-quiz> and <kv-interview> share: questions as a reader sees them, and the field for an answer. */
import type { Failure, LayerRun, QuizItem, QuizQuestion, QuizVerdict, Reading, Step } from "../contract.js";
import { h, mark, say } from "../nodes.js";
import { stepItem } from "../steps.js";
import type { Speech, Values } from "../words.js";
import { kit } from "./kit.js";
import { button } from "./parts.js";

export interface Questions {
  questions: QuizItem[];
}

/** What a reader said to a question; `given` is the text as it was typed. */
export interface Said {
  given: string;
  verdict: QuizVerdict;
}

/** What `kv-answer` and `kv-summary` carry. */
export type AnswerEvent = CustomEvent<{
  question: QuizItem;
  /** As it was typed; null where the answer was asked for. */
  answer: string | null;
  verdict: QuizVerdict["verdict"] | "shown";
  /** The code of a known mistake that gives this answer. */
  diagnosis: string | null;
}>;
export type SummaryEvent = CustomEvent<{ right: number; count: number; diagnoses?: Record<string, number> }>;

const UNITS = ["B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB"];

/** A typed answer as number and unit, in the reader's language. */
function readAnswer(speech: Speech, typed: string): { value: number | bigint | string; unit: string } {
  const [, head = typed, tail = ""] = typed.match(/^(.*\p{Nd})(\P{Nd}*)$/su) ?? [];
  const word = tail.normalize("NFKC").trim();
  const id = UNITS.find((unit) => speech.text(`unit.${unit}`).toLowerCase() === word.toLowerCase());
  // "GB" in the reader's language; letter case is the kernel's business where the words are the same.
  const unit = id && id.toLowerCase() !== word.toLowerCase() ? id : word;
  return { value: speech.parse(head.trim()), unit };
}

function amounts(speech: Speech, readings: Reading[]): string {
  const texts = readings.map((reading) => speech.reading(reading, "three"));
  return [...new Set(texts)].join(speech.text("quiz.or"));
}

/** The right answer, or a mistaken one, as text. */
export function answerText(speech: Speech, item: QuizItem, from: QuizItem | QuizItem["mistakes"][number]): string {
  if (item.unit === "choice") return choiceText(speech, item, from.choice ?? "");
  if (item.unit === "bytes") return amounts(speech, from.readings);
  return speech.text(`of.${item.unit}`, { v: speech.number(from.value ?? 0), n: from.value ?? 0 });
}

export function choiceText(speech: Speech, item: QuizItem, choice: string): string {
  if (item.kind === "ask_context") return speech.text(`interview.ask.${choice}`);
  const other = choice === item.choices[1];
  return item.given.find(({ name }) => name === (other ? "other_model" : "model"))?.text ?? choice;
}

/** The values that a question's sentence and a diagnosis may name. */
export function valuesOf(speech: Speech, item: QuizItem): Values {
  const values: Values = { users: item.users };
  for (const { name, value, text, reading } of item.given) {
    const exact = value === undefined ? (text ?? "") : speech.number(value, 6);
    values[name] =
      name === "kv" || name === "weights" ? speech.text("format", { bits: value ?? 0, id: text ?? "" }) : exact;
    if (reading) values[`${name}_size`] = speech.reading(reading);
  }
  const [run] = item.runs;
  values.width = run?.key_width ?? run?.latent_width ?? 0;
  values.layers ??= item.runs.reduce((sum, { count }) => sum + count, 0);
  return values;
}

function runText(speech: Speech, run: LayerRun): string {
  const values = { n: run.count, heads: run.kv_heads ?? 0, width: run.key_width ?? run.latent_width ?? 0 };
  return speech.text(`quiz.run.${run.kind}`, { ...values, window: run.window ?? 0 });
}

/** The given numbers as a list of names and values. */
export function givenList(speech: Speech, item: QuizItem): HTMLElement {
  const rows: [string, string][] = [];
  // Layers of several kinds, or without heads, do not fit into a list of numbers.
  const shapes = (runs: LayerRun[]) => {
    if (runs.length < 2 && runs[0]?.kind !== "latent") return;
    rows.push([speech.text("quiz.given.shape"), runs.map((run) => runText(speech, run)).join("; ")]);
  };
  for (const { name, value, text, reading } of item.given) {
    const plain = name.replace(/^other_/, "");
    let shown = value === undefined ? (text ?? "") : speech.number(value, 6);
    if (name === "kv" || name === "weights") shown = speech.text("format", { bits: value ?? 0, id: text ?? "" });
    if (name.endsWith("parameters") && value)
      shown = speech.text("quiz.billions", { n: Math.round(value / 1e7) / 100 });
    // Many a name has the size in it.
    if (reading && !/\dGB|\d GB/.test(shown))
      shown = speech.text("quiz.gpu", { name: shown, size: speech.reading(reading) });
    if (name === "reserve" && value !== undefined) shown = speech.percent(value);
    rows.push([speech.text(`quiz.given.${plain}`), shown]);
    const noShape = item.kind === "room" || item.kind === "weights";
    if (name === "model" && !noShape) shapes(item.runs);
    if (name === "other_model") shapes(item.other_runs);
  }
  const looks = new Map([[speech.text("quiz.given.model"), "model"]]);
  // What holds for both models does not stand in a row with the second one.
  if (item.kind === "costlier") looks.set(speech.text("quiz.given.kv"), "common");
  return h(
    "dl",
    { class: "given" },
    ...rows.map(([name, shown]) =>
      h("div", looks.has(name) ? { class: looks.get(name) ?? "" } : {}, h("dt", {}, name), h("dd", {}, shown)),
    ),
  );
}

/** The way to the answer, with the numbers in place. */
export function stepList(speech: Speech, steps: Step[]): HTMLElement {
  const more = (step: Step) =>
    step.name === "fewest_gpus" ? speech.text("comma") + speech.text("quiz.rounded-up") : "";
  return h("ol", { class: "steps", role: "list" }, ...steps.map((step) => stepItem(speech, step, more(step))));
}

/** Marks an answer: a verdict, or why there is none. */
export type Mark = (check: NonNullable<QuizQuestion["check"]>) => QuizVerdict | Failure | null;

/**
 * A form for the answer to one question. `index` is the question's place; `answered` is told once there is a verdict.
 */
export function answerForm(
  speech: Speech,
  item: QuizItem,
  index: number,
  check: Mark,
  answered: (said: Said) => void,
): HTMLElement {
  const problem = h("p", { class: "problem", id: "answer-problem" });
  const complain = (key: string) => {
    say(problem, speech.text(key));
    kit.announce(speech.text(key));
  };
  const settle = (given: string, verdict: QuizVerdict | Failure | null, input?: HTMLInputElement) => {
    if (!verdict) return;
    if (!("error" in verdict)) {
      answered({ given, verdict });
      return;
    }
    const { field, code } = verdict.error;
    const key =
      field === "check.unit" ? `quiz.unit-unknown.${item.unit === "bytes" ? "bytes" : "count"}` : "quiz.unread";
    complain(code === "out_of_range" && !given.includes("-") ? "quiz.too-large" : key);
    if (input) {
      mark(input, "aria-invalid", "true");
      input.focus();
    }
  };
  if (item.unit === "choice") {
    const choices = item.choices.map((choice) => {
      const name = choiceText(speech, item, choice);
      return button(name, () => settle(name, check({ question: index, choice })), "button choice");
    });
    return h("div", { class: "answer" }, h("div", { class: "buttons" }, ...choices), problem);
  }
  const input = h("input", {
    type: "text",
    id: "answer",
    class: "exact",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-describedby": "answer-hint answer-problem",
  });
  const form = h(
    "form",
    { class: "answer", novalidate: "" },
    h("label", { for: "answer" }, speech.text("quiz.answer")),
    h(
      "div",
      { class: "line" },
      input,
      h("button", { type: "submit", class: "button first" }, speech.text("quiz.check")),
    ),
    h("p", { class: "hint", id: "answer-hint" }, speech.text(`quiz.hint.${item.unit}`)),
    problem,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = input.value.trim();
    if (given === "") {
      complain("quiz.empty");
      input.focus();
      return;
    }
    settle(given, check({ question: index, ...readAnswer(speech, given) }), input);
  });
  return form;
}

/** What is said to an answer: right, or wrong and how it may have come about. */
export function verdictNodes(speech: Speech, item: QuizItem, said: Said | null): HTMLElement[] {
  const answer = answerText(speech, item, item);
  if (!said) return [h("p", { class: "verdict" }, speech.text("quiz.shown", { answer }))];
  const right = said.verdict.verdict === "right";
  const title = h(
    "p",
    { class: right ? "verdict right" : "verdict wrong" },
    h("strong", {}, speech.text(right ? "quiz.right" : "quiz.wrong")),
    ` ${speech.text(right ? "quiz.right-is" : "quiz.wrong-is", { answer, given: said.given })}`,
  );
  const values = { ...valuesOf(speech, item), given: said.given, answer };
  const [code] = said.verdict.diagnoses;
  return code ? [title, h("p", { class: "diagnosis" }, speech.text(`quiz.mistake.${code}`, values))] : [title];
}

declare global {
  interface HTMLElementEventMap {
    "kv-answer": AnswerEvent;
    "kv-summary": SummaryEvent;
  }
}
