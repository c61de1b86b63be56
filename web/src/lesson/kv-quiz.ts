/**
 * <kv-quiz>: guess first, then see the way. Attributes: `seed`, `count`, `level` (1 to 3), `topics` (kinds of questions
 * separated by spaces), `question` (the one that is shown, from 1) and `lock` (the level is not to be chosen). Sends
 * `kv-answer` after each answer and `kv-summary` after the last; stores and sends nothing else.
 */
import type { QuizItem, QuizQuestion, QuizVerdict } from "../contract.js";
import { h, mark, say, sayRich } from "../nodes.js";
import { attributes, LessonElement } from "./element.js";
import css from "./kv-quiz.css";
import { button, field } from "./parts.js";
import { answerForm, givenList, type Questions, type Said, stepList, valuesOf, verdictNodes } from "./quiz-parts.js";

const LEVELS = ["1", "2", "3"];

/** An answer, or that the reader asked to be shown it. */
interface Outcome {
  item: QuizItem;
  said: Said | null;
}

export class KvQuiz extends LessonElement {
  static readonly observedAttributes = attributes("seed", "count", "level", "topics", "question", "lock");
  static override readonly css = css;

  #level!: HTMLSelectElement;
  #head!: HTMLElement;
  #progress!: HTMLElement;
  #card!: HTMLElement;
  #asked = "";
  #questions: QuizItem[] = [];
  #outcomes = new Map<number, Outcome>();
  #shown = "";

  protected build(): Node[] {
    this.#level = h("select", { autocomplete: "off" });
    for (const level of LEVELS) this.#level.append(h("option", { value: level }, this.word(`quiz.level.${level}`)));
    this.#level.addEventListener("change", () => {
      mark(this, "level", this.#level.value);
      this.#again(this.#seed);
    });
    this.#progress = h("p", { class: "progress" });
    this.#card = h("div", { class: "card" });
    this.#head = h("div", { class: "row head" }, this.#progress, field(this.word("quiz.level"), this.#level, "level"));
    this.#shown = "";
    return [this.#head, this.#card];
  }

  get #seed(): number {
    return this.whole("seed", 1);
  }

  get #at(): number {
    return Math.min(Math.max(this.whole("question", 1), 1), Math.max(this.#questions.length, 1)) - 1;
  }

  #quiz(): QuizQuestion {
    const out: Record<string, unknown> = {};
    for (const key of ["seed", "count", "level"]) {
      const text = this.getAttribute(key)?.trim();
      if (text) out[key] = /^\d{1,15}$/.test(text) ? Number(text) : text;
    }
    const topics = this.getAttribute("topics")?.trim();
    if (topics) out.topics = topics.split(/[\s,]+/);
    return out;
  }

  /** Starts over with the questions of a seed. */
  #again(seed: number): void {
    this.#outcomes.clear();
    this.#shown = "";
    mark(this, "question", null);
    mark(this, "seed", String(seed));
  }

  protected show(): void {
    // Without a seed from the page or a link every reader gets questions of their own, which the link then names.
    if (!this.hasAttribute("seed")) mark(this, "seed", String(1 + Math.floor(Math.random() * 1e6)));
    const quiz = this.#quiz();
    const asked = JSON.stringify(quiz);
    if (asked !== this.#asked) {
      const made = this.consult<Questions>("quiz", quiz);
      if (!made) return;
      if ("error" in made) {
        this.complain(this.word("error.other", { ...made.error }));
        this.#card.replaceChildren();
        return;
      }
      this.#asked = asked;
      this.#questions = made.questions;
      this.#outcomes.clear();
      this.#shown = "";
    }
    this.#level.value = String(quiz.level ?? 2);
    this.#head.lastElementChild?.toggleAttribute("hidden", this.hasAttribute("lock"));
    const at = this.#at;
    const done = this.#outcomes.size === this.#questions.length && this.#shown === "summary";
    const shown = done ? "summary" : `${at}:${this.#outcomes.has(at)}`;
    say(this.#progress, this.word("quiz.progress", { at: at + 1, count: this.#questions.length }));
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#showQuestion(at);
  }

  #showQuestion(at: number): void {
    const item = this.#questions[at];
    if (!item) return;
    const question = h("h3", { id: "question", tabindex: "-1" });
    sayRich(question, this.speech.stretches(this.#ask(item), valuesOf(this.speech, item)));
    const outcome = this.#outcomes.get(at);
    const below = outcome ? this.#after(at, outcome) : this.#before(at, item);
    this.#card.replaceChildren(question, givenList(this.speech, item), ...below);
  }

  #ask(item: QuizItem): string {
    return item.kind === "lever" ? `quiz.ask.lever.${item.lever}` : `quiz.ask.${item.kind}`;
  }

  #before(at: number, item: QuizItem): Node[] {
    const check = (answer: NonNullable<QuizQuestion["check"]>) =>
      this.consult<QuizVerdict>("quiz", { ...this.#quiz(), check: answer });
    const form = answerForm(this.speech, item, at, check, (said) => this.#settle(at, { item, said }));
    const giveUp = button(this.word("quiz.give-up"), () => this.#settle(at, { item, said: null }), "plain give-up");
    return [form, h("p", { class: "aside" }, giveUp)];
  }

  #settle(at: number, outcome: Outcome): void {
    this.#outcomes.set(at, outcome);
    const { item, said } = outcome;
    this.#send("kv-answer", {
      question: item,
      answer: said?.given ?? null,
      verdict: said?.verdict.verdict ?? "shown",
      diagnosis: said?.verdict.diagnoses[0] ?? null,
    });
    if (this.#outcomes.size === this.#questions.length) {
      const answers = [...this.#outcomes.values()];
      this.#send("kv-summary", {
        right: answers.filter(({ said }) => said?.verdict.verdict === "right").length,
        count: answers.length,
        diagnoses: this.#diagnoses(),
      });
    }
    this.#shown = `${at}:true`;
    this.#showQuestion(at);
    const told = this.#card.querySelectorAll(".verdict, .diagnosis");
    this.announce([...told].map((node) => node.textContent).join(this.speech.text("gap")));
    this.#card.querySelector<HTMLElement>(".next")?.focus({ preventScroll: true });
  }

  #send<Name extends "kv-answer" | "kv-summary">(name: Name, detail: HTMLElementEventMap[Name]["detail"]): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }

  #after(at: number, { item, said }: Outcome): Node[] {
    const last = this.#outcomes.size === this.#questions.length;
    const next = button(
      this.word(last ? "quiz.finish" : "quiz.next"),
      () => {
        if (last) this.#summarise();
        else this.#go(at);
      },
      "button first next",
    );
    return [
      h("div", { class: "told" }, ...verdictNodes(this.speech, item, said)),
      h("p", { class: "way" }, this.word(item.kind === "costlier" ? "quiz.way-both" : "quiz.way")),
      stepList(this.speech, item.derivation),
      h("div", { class: "buttons" }, next),
    ];
  }

  /** To the next question that has no answer yet. */
  #go(from: number): void {
    const count = this.#questions.length;
    for (let i = 1; i <= count; i++) {
      const at = (from + i) % count;
      if (this.#outcomes.has(at)) continue;
      mark(this, "question", String(at + 1));
      break;
    }
    queueMicrotask(() => {
      const input = this.#card.querySelector<HTMLElement>("#answer, .choice");
      input?.focus({ preventScroll: true });
      this.announce(this.#card.querySelector("h3")?.textContent ?? "");
    });
  }

  /** How often each known mistake was made. */
  #diagnoses(): Record<string, number> {
    const out: Record<string, number> = {};
    for (const { said } of this.#outcomes.values()) {
      const [code] = said?.verdict.diagnoses ?? [];
      if (code) out[code] = (out[code] ?? 0) + 1;
    }
    return out;
  }

  #summarise(): void {
    this.#shown = "summary";
    const answers = [...this.#outcomes.values()];
    const right = answers.filter(({ said }) => said?.verdict.verdict === "right").length;
    const mistakes = Object.entries(this.#diagnoses()).map(([code, n]) =>
      h("li", {}, this.word("quiz.summary-mistake", { what: this.word(`quiz.name.${code}`), n })),
    );
    const title = h("h3", { tabindex: "-1" }, this.word("quiz.summary", { right, count: answers.length }));
    const marks = answers.map(({ item, said }, i) => {
      const well = said?.verdict.verdict === "right";
      const name = this.word(`quiz.kind.${item.kind}`);
      const text = this.word(well ? "quiz.mark-right" : "quiz.mark-wrong", { n: i + 1, name });
      return h("li", { class: well ? "right" : "wrong" }, text);
    });
    this.#card.replaceChildren(
      title,
      h("ul", { class: "marks", role: "list" }, ...marks),
      ...(mistakes.length > 0 ? [h("p", {}, this.word("quiz.summary-mistakes")), h("ul", {}, ...mistakes)] : []),
      h(
        "div",
        { class: "buttons" },
        button(this.word("quiz.other"), () => this.#again(this.#seed + 1), "button first"),
        button(this.word("quiz.same"), () => this.#again(this.#seed)),
      ),
    );
    title.focus({ preventScroll: true });
    this.announce(title.textContent ?? "");
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "kv-quiz": KvQuiz;
  }
}
