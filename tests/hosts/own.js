/** A model that no catalogue has: 16 layers of 4 KV heads, so 16 KiB a token in bf16. */
export const own = {
  name: "Course model",
  parameters: 1_000_000_000,
  max_context: 32768,
  native_weights: "bf16",
  layers: [{ count: 16, kind: "full", kv_heads: 4, key_width: 64, value_width: 64 }],
};
