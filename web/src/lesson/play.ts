/** The fourth script: paging, quiz and interview, their styles and their English words. It stands without the third. */
import words from "../../locales/en-play.json";
import { speak } from "./kit.js";
import { KvInterview } from "./kv-interview.js";
import { KvPaging } from "./kv-paging.js";
import { KvQuiz } from "./kv-quiz.js";

speak("-play", words);

const elements = {
  "kv-interview": KvInterview,
  "kv-paging": KvPaging,
  "kv-quiz": KvQuiz,
};
for (const [name, element] of Object.entries(elements)) {
  if (!customElements.get(name)) customElements.define(name, element);
}
