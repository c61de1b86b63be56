/** What <kv-growth> and <kv-paging> share: a state that runs through steps, by hand or by itself. */
import { mark, say } from "../nodes.js";
import { LessonElement } from "./element.js";
import { button, still } from "./parts.js";

export abstract class SteppedElement extends LessonElement {
  #timer: ReturnType<typeof setInterval> | undefined;
  #play!: HTMLButtonElement;
  #forward!: HTMLButtonElement;

  /** Milliseconds from one picture to the next while it plays. */
  protected abstract readonly pace: number;
  protected abstract get last(): number;
  /** Steps from one picture to the next while it plays, and of the button that goes on by hand. */
  protected abstract strides(): { playing: number; byHand: number };
  /** The sentence that says the state. */
  protected abstract get told(): HTMLElement;

  /** The step that the state is at, of 0 to `last`. */
  protected get step(): number {
    const { last: max } = this;
    const step = this.whole("step", 0);
    if (step <= max) return step;
    this.complainOf("step", this.word("most", { max }), step, max);
    return max;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.pause();
  }

  /** The buttons "play" and "forward". */
  protected stepButtons(): HTMLButtonElement[] {
    this.#play = button(this.word("growth.play"), () => (this.#timer ? this.pause() : this.play()), "button first");
    this.#forward = button("", () => {
      this.pause();
      this.go(this.step >= this.last ? 0 : this.step + this.strides().byHand);
      this.tell();
    });
    return [this.#play, this.#forward];
  }

  /** Plays from where it is, or from the start once the end is reached. */
  play(): void {
    if (this.#timer || still()) return;
    if (this.step >= this.last) this.go(0);
    say(this.#play, this.word("growth.pause"));
    this.#timer = setInterval(() => {
      this.go(Math.min(this.step + this.strides().playing, this.last));
      if (this.step >= this.last) this.pause();
    }, this.pace);
  }

  pause(): void {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    say(this.#play, this.word("growth.play"));
    this.tell();
  }

  protected go(step: number): void {
    mark(this, "step", String(step));
  }

  protected tell(): void {
    this.tellOf(this.told);
  }

  /** Shows the buttons as they stand; `forward` is the word for going on. */
  protected showStepButtons(forward: string): void {
    this.#play.hidden = still();
    say(this.#forward, this.step >= this.last ? this.word("growth.again") : forward);
  }
}
