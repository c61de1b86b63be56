/**
 * <kv-interview>: the chain to say aloud, link by link, over a deployment that is drawn: weights, room, one token, the
 * question to ask back, one conversation, how many. Answers within a tenth count. Attribute: `seed`. Sends `kv-answer`
 * after each link and `kv-summary` after the last; stores and sends nothing else.
 */
import type { QuizItem, QuizQuestion, QuizVerdict } from "../contract.js";
import { h, mark, sayRich } from "../nodes.js";
import { attributes, LessonElement } from "./element.js";
import css from "./kv-quiz.css";
import { button } from "./parts.js";
import {
  answerForm,
  answerText,
  givenList,
  type Questions,
  type Said,
  stepList,
  valuesOf,
  verdictNodes,
} from "./quiz-parts.js";

export class KvInterview extends LessonElement {
  static readonly observedAttributes = attributes("seed");
  static override readonly css = css;

  #opening!: HTMLElement;
  #given!: HTMLElement;
  #chain!: HTMLOListElement;
  #links: QuizItem[] = [];
  #said: (Said | null)[] = [];
  #asked = "";

  protected build(): Node[] {
    this.#opening = h("p", { class: "opening" });
    this.#given = h("div");
    this.#chain = h("ol", { class: "chain" });
    this.#asked = "";
    return [this.#opening, this.#given, this.#chain];
  }

  #quiz(): QuizQuestion {
    return { interview: true, seed: this.whole("seed", 1) };
  }

  protected show(): void {
    if (!this.hasAttribute("seed")) mark(this, "seed", String(1 + Math.floor(Math.random() * 1e6)));
    const quiz = this.#quiz();
    const asked = JSON.stringify(quiz);
    if (asked === this.#asked) return;
    const made = this.consult<Questions>("quiz", quiz);
    if (!made) return;
    if ("error" in made) {
      this.complain(this.word("error.other", { ...made.error }));
      return;
    }
    this.#asked = asked;
    this.#links = made.questions;
    this.#said = [];
    // The link that asks back has everything but the context, as the interviewer gives it.
    const opening = made.questions.find(({ kind }) => kind === "ask_context");
    if (!opening) return;
    sayRich(this.#opening, this.speech.stretches("interview.opening", valuesOf(this.speech, opening)));
    this.#given.replaceChildren(givenList(this.speech, opening));
    this.#chain.replaceChildren();
    this.#next();
  }

  /** Opens the next link, or tells the whole once all are there. */
  #next(): void {
    const at = this.#said.length;
    const item = this.#links[at];
    if (!item) {
      this.#tell();
      return;
    }
    const context = this.speech.number(item.request.context ?? 0);
    const title = h("h3", { tabindex: "-1" });
    sayRich(title, this.speech.stretches(`interview.link.${item.kind}`, { context }));
    const check = (answer: NonNullable<QuizQuestion["check"]>) =>
      this.consult<QuizVerdict>("quiz", { ...this.#quiz(), check: answer });
    const link = h("li", {}, title);
    const done = (said: Said | null) => {
      this.#said.push(said);
      const told = verdictNodes(this.speech, item, said);
      const way = item.derivation.slice(-1);
      link.replaceChildren(title, ...told, ...(way.length > 0 ? [stepList(this.speech, way)] : []));
      this.#send("kv-answer", {
        question: item,
        answer: said?.given ?? null,
        verdict: said?.verdict.verdict ?? "shown",
        diagnosis: said?.verdict.diagnoses[0] ?? null,
      });
      this.#next();
      const last = this.#chain.lastElementChild;
      last?.querySelector<HTMLElement>("#answer, .choice, h3")?.focus({ preventScroll: true });
      this.announce(
        [...told, ...(last?.querySelectorAll("h3") ?? [])]
          .map((node) => node.textContent)
          .join(this.speech.text("gap")),
      );
    };
    const giveUp = button(this.word("quiz.give-up"), () => done(null), "plain give-up");
    link.append(answerForm(this.speech, item, at, check, done), h("p", { class: "aside" }, giveUp));
    this.#chain.append(link);
  }

  #send<Name extends "kv-answer" | "kv-summary">(name: Name, detail: HTMLElementEventMap[Name]["detail"]): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }

  /** The chain as one would say it. */
  #tell(): void {
    const right = this.#said.filter((said) => said?.verdict.verdict === "right").length;
    const values: Record<string, string | number> = { right, count: this.#links.length };
    for (const item of this.#links) values[item.kind] = answerText(this.speech, item, item);
    const [first] = this.#links;
    if (first) {
      values.model = first.given.find(({ name }) => name === "model")?.text ?? "";
      values.context = this.speech.number(first.request.context ?? 0);
      values.gpus = first.request.gpus ?? 1;
    }
    const title = h("h3", { tabindex: "-1" }, this.word("interview.done", values));
    const aloud = h("p", { class: "aloud" });
    sayRich(aloud, this.speech.stretches("interview.aloud", values));
    const another = button(
      this.word("interview.another"),
      () => mark(this, "seed", String(this.whole("seed", 1) + 1)),
      "button first",
    );
    this.#chain.append(h("li", { class: "end" }, title, aloud, h("div", { class: "buttons" }, another)));
    this.#send("kv-summary", { right, count: this.#links.length });
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "kv-interview": KvInterview;
  }
}
