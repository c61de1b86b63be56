/** What can be embedded by itself: the tags of the elements. */
export const TAGS = [
  "kv-capacity",
  "kv-capacity-table",
  "kv-growth",
  "kv-formula",
  "kv-curve",
  "kv-levers",
  "kv-attention",
  "kv-memory",
  "kv-paging",
  "kv-quiz",
  "kv-interview",
];

/** The keys of a frame's fragment that are its page's own, and say nothing of which element it shows. */
export const DRESS_KEYS = ["lang", "theme", "accent", "lock"];
