// The custom elements' manifest (custom-elements.json, schema 1.0.0), which editors and documentation tools read. What is
// said here is held against the sources by `npm run check`.

/** A request's keys, which are attributes of every element that asks the kernel. */
const REQUEST = {
  model: ["string", "catalogue id, such as `llama-3.1-8b`, or Hugging Face id", "llama-3.1-8b"],
  weights: ["string", "format of the weights; the model's own when nobody says"],
  kv: ["string", 'format of the cache, or `{"k": …, "v": …}`', "bf16"],
  gpu: ["string", 'GPU id, or `{"memory_bytes": n}`', "80gb"],
  engine: ['"textbook" | "vllm" | "sglang" | "llama.cpp" | "tensorrt-llm"', "whose rules apply", "textbook"],
  gpus: ["number", "how many GPUs", "1"],
  context: ["number", "tokens of one conversation", "8192"],
  parameters: ["number", "parameters of the model, where its config cannot give them"],
  kv_heads: ["number", "KV heads of every layer that has some, in place of the model's own"],
  weight_bytes: ["number", "exact bytes of the weights"],
  tensor_parallel: ["number", "GPUs over which each layer is split"],
  pipeline_parallel: ["number", "stages over which the layers are split", "1"],
  data_parallel: ["number", "copies of the model", "1"],
  options: ["object", "the engine's settings under its own flag names, as JSON"],
  config: ["object", "instead of a model: its `config.json`"],
};

const LANG = { lang: ["string", "language of the words and numbers; else the nearest one around the element"] };
const FOR = { for: ["string", "`id` of a `<kv-capacity>` that the element follows"] };
const LESSON = { ...REQUEST, ...FOR, ...LANG };

/** Members of the lesson's elements. */
const SHARED = {
  request: { type: "Request", readonly: true, text: "the request as it stands" },
  state: { type: "string", text: "the state as a link carries it" },
  link: { type: "string", readonly: true, text: "the page's address with the state of the element and its calculator" },
  ready: { type: "Promise<void>", readonly: true, text: "kept once the first state is shown" },
};
const STEPPED = {
  play: { method: true, text: "plays from where it is, or from the start once the end is reached" },
  pause: { method: true, text: "stops where it is" },
};

const CHANGES = {
  "kv-input": ["CapacityEvent", "while a reader drags or types"],
  "kv-change": ["CapacityEvent", "once a reader has changed something"],
};
const ANSWERS = {
  "kv-answer": ["AnswerEvent", "after each answer"],
  "kv-summary": ["SummaryEvent", "after the last answer"],
};

const PARTS = {
  label: "a control's name",
  control: "a selector or a box for a number",
  slider: "a slider",
  search: "the button that searches models",
  problem: "why a request is refused, or why the element cannot start",
  figures: "the four figures",
  figure: "one of them",
  value: "its number",
  bar: "the memory as a bar",
  segment: "a stretch of the bar; with `weights`, `cache`, `left` or `reserve`",
  legend: "the list beside the bar",
  sentence: "the answer as a sentence",
  arithmetic: "the steps of the arithmetic",
  notes: "what else a reader should know",
};

/** Every element adopts the same sheets, so the properties are the same for all. */
const PROPERTIES = {
  "--kv-accent": "colour of the cache and of the controls",
  "--kv-weights": "colour of the weights",
  "--kv-cut": "colour of the cuts between conversations",
  "--kv-warning": "colour of what is refused or does not fit",
  "--kv-line": "colour of lines",
  "--kv-edge": "borders of controls",
  "--kv-muted": "colour of quiet text",
  "--kv-field": "background of fields",
  "--kv-radius": "radius of corners",
  "--kv-gap": "space between groups",
  "--kv-bar-size": "height of the bar",
  "--kv-figure-size": "size of the four figures",
};

/** Files of elements under web/src; `module` is the script that defines the tag. */
export const ELEMENTS = [
  {
    tag: "kv-capacity",
    name: "KvCapacity",
    source: "kv-capacity.ts",
    module: "kv-capacity.mjs",
    text: "How many conversations fit on these GPUs: controls, four figures, a memory bar and a sentence.",
    attributes: {
      ...REQUEST,
      lock: ["string", "keys that a reader may not change, separated by spaces, or `all`"],
      ...LANG,
      link: ["boolean", "keep the state in the page's fragment, and start from it"],
      hub: ["string", "address that configs are fetched from on a click, or `off`"],
    },
    members: {
      ...Object.fromEntries(
        Object.keys(REQUEST).map((key) => [key, { type: `Request["${key}"]`, attribute: key, text: REQUEST[key][1] }]),
      ),
      lock: { type: "string | null", attribute: "lock", text: "what a reader may not change" },
      models: { type: "unknown", text: "models of the page's author: one or a list, as runs of layers or a config" },
      request: { type: "Request", text: "the request as it stands" },
      state: { type: "string", text: "the state as a link carries it" },
      plan: { type: "Answer | null", readonly: true, text: "the last answer" },
      error: { type: 'Failure["error"] | null', readonly: true, text: "why the request is refused" },
      ready: {
        type: "Promise<void>",
        readonly: true,
        text: "kept once the first answer is shown whole and every control has its choices",
      },
    },
    events: { ...CHANGES, "kv-shown": ["Event", "after every answer, whoever asked; does not bubble"] },
    parts: PARTS,
  },
  {
    tag: "kv-capacity-table",
    name: "KvCapacityTable",
    source: "lesson/kv-capacity-table.ts",
    module: "kv-capacity-lesson.mjs",
    text: "Conversations by context length for chosen deployments, filled on request.",
    attributes: {
      deployments: ["string", "deployments separated by semicolons, each a list of `key=value`"],
      contexts: ["string", "context lengths separated by spaces"],
      auto: ["boolean", "fill at once, without a button"],
      ...LANG,
    },
    members: {
      deployments: { type: "string", attribute: "deployments", text: "the deployments" },
      contexts: { type: "string", attribute: "contexts", text: "the context lengths" },
      auto: { type: "boolean", attribute: "auto", text: "whether it is filled at once" },
      state: { type: "string", text: "the state as a link carries it" },
      run: { method: true, text: "fills the table" },
      ready: { type: "Promise<void>", readonly: true, text: "kept once the button works" },
    },
    parts: {
      button: "the button",
      table: "the table",
      caption: "its caption",
      sentence: "what stands below it",
      problem: "why it cannot be filled",
    },
  },
  {
    tag: "kv-growth",
    name: "KvGrowth",
    source: "lesson/kv-growth.ts",
    module: "kv-capacity-lesson.mjs",
    text: "A prompt read at once, then a column of cache for each token.",
    attributes: {
      step: ["number", "0: nothing read, 1: the prompt read, then one a token written", "0"],
      prompt: ["string", "tokens of the prompt, separated by spaces"],
      answer: ["string", "tokens of the answer, separated by spaces"],
      ...LESSON,
    },
    members: { ...SHARED, ...STEPPED },
  },
  {
    tag: "kv-formula",
    name: "KvFormula",
    source: "lesson/kv-formula.ts",
    module: "kv-capacity-lesson.mjs",
    text: "Bytes per token as a product whose every factor is a control.",
    attributes: {
      layers: ["number", "layers that keep a cache"],
      head_size: ["number", "values of one head"],
      rows: ["number", "2: keys and values, 1: one serves as both"],
      ...LESSON,
    },
    members: SHARED,
    events: { "kv-factor": ["FactorEvent", "a reader points at a factor, or at none"] },
    parts: { factor: "a factor of the product" },
  },
  {
    tag: "kv-curve",
    name: "KvCurve",
    source: "lesson/kv-curve.ts",
    module: "kv-capacity-lesson.mjs",
    text: "Conversations against context length, both logarithmic, with kept lines.",
    attributes: { keep: ["string", "kept deployments separated by spaces, each as a link has it"], ...LESSON },
    members: {
      ...SHARED,
      picture: {
        method: true,
        text: "the picture as a file",
        parameters: { type: '"svg" | "png"' },
        type: "Promise<Blob>",
      },
    },
    events: CHANGES,
  },
  {
    tag: "kv-levers",
    name: "KvLevers",
    source: "lesson/kv-levers.ts",
    module: "kv-capacity-lesson.mjs",
    text: "What five ways to make room would add; each a button, with undo.",
    attributes: LESSON,
    members: SHARED,
    events: { "kv-change": CHANGES["kv-change"] },
  },
  {
    tag: "kv-attention",
    name: "KvAttention",
    source: "lesson/kv-attention.ts",
    module: "kv-capacity-lesson.mjs",
    text: "The same model with MHA, GQA, MQA, MLA and windows.",
    attributes: {
      show: ["string", "which of `mha`, `gqa`, `mqa`, `mla` and `window`, separated by spaces"],
      groups: ["number", "KV heads of the grouped variant"],
      ...LESSON,
    },
    members: SHARED,
  },
  {
    tag: "kv-memory",
    name: "KvMemory",
    source: "lesson/kv-memory.ts",
    module: "kv-capacity-lesson.mjs",
    text: "What fills the memory: the textbook's count above an engine's.",
    attributes: LESSON,
    members: SHARED,
  },
  {
    tag: "kv-paging",
    name: "KvPaging",
    source: "lesson/kv-paging.ts",
    module: "kv-capacity-play.mjs",
    text: "A block for the longest answer against pages, step by step.",
    attributes: {
      step: ["number", "step of the simulation", "0"],
      lengths: ["string", "`sharegpt`, `alpaca`, or the means of prompt and answer", "sharegpt"],
      longest: ["number", "longest answer, in tokens"],
      prefix: ["number", "tokens common to all prompts"],
      page: ["number", "tokens of a page"],
      memory: ["number", "tokens that the memory holds"],
      requests: ["number", "how many requests arrive"],
      every: ["number", "mean steps between arrivals"],
      seed: ["number", "what is drawn"],
      ...LESSON,
    },
    members: { ...SHARED, ...STEPPED },
  },
  {
    tag: "kv-quiz",
    name: "KvQuiz",
    source: "lesson/kv-quiz.ts",
    module: "kv-capacity-play.mjs",
    text: "Questions from the catalogue; a wrong answer is diagnosed.",
    attributes: {
      seed: ["number", "what is drawn"],
      count: ["number", "how many questions"],
      level: ["number", "1 to 3"],
      topics: ["string", "kinds of questions, separated by spaces"],
      question: ["number", "the question that is shown, from 1"],
      lock: ["string", "takes the choice of a level away"],
      ...LESSON,
    },
    members: SHARED,
    events: ANSWERS,
  },
  {
    tag: "kv-interview",
    name: "KvInterview",
    source: "lesson/kv-interview.ts",
    module: "kv-capacity-play.mjs",
    text: "The chain to say aloud, practised over a drawn deployment.",
    attributes: { seed: ["number", "what is drawn"], ...LESSON },
    members: SHARED,
    events: ANSWERS,
  },
];

const named = (map, of) => Object.entries(map).map(([name, value]) => ({ name, ...of(value) }));

function declaration({ tag, name, text, attributes, members, events = {}, parts = {} }) {
  return {
    kind: "class",
    customElement: true,
    tagName: tag,
    name,
    description: text,
    superclass: { name: "HTMLElement" },
    attributes: Object.entries(attributes).map(([key, [type, description, fallback]]) => ({
      name: key,
      description,
      type: { text: type },
      ...(fallback === undefined ? {} : { default: fallback }),
      ...(members[key]?.attribute ? { fieldName: key } : {}),
    })),
    members: Object.entries(members).map(
      ([key, { method, type, text: description, parameters, attribute, readonly }]) =>
        method
          ? {
              kind: "method",
              name: key,
              description,
              parameters: named(parameters ?? {}, (of) => ({ type: { text: of } })),
              return: { type: { text: type ?? "void" } },
            }
          : {
              kind: "field",
              name: key,
              description,
              type: { text: type },
              ...(readonly ? { readonly } : {}),
              ...(attribute ? { attribute } : {}),
            },
    ),
    events: named(events, ([type, description]) => ({ description, type: { text: type } })),
    slots: [{ name: "", description: "what is shown without script, and until the first answer" }],
    cssParts: named(parts, (description) => ({ description })),
    cssProperties: named(PROPERTIES, (description) => ({ description })),
  };
}

/** The manifest; `folder` is where the package has the scripts. */
export function manifest(folder) {
  const paths = [...new Set(ELEMENTS.map(({ module }) => module))];
  return {
    schemaVersion: "1.0.0",
    modules: paths.map((path) => {
      const elements = ELEMENTS.filter(({ module }) => module === path);
      return {
        kind: "javascript-module",
        path: `${folder}/${path}`,
        declarations: elements.map(declaration),
        exports: elements.map(({ tag, name }) => ({
          kind: "custom-element-definition",
          name: tag,
          declaration: { name },
        })),
      };
    }),
  };
}
