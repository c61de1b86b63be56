/** A config of a small model such as a person pastes, written for the tests. */
export const CONFIG = {
  model_type: "llama",
  architectures: ["LlamaForCausalLM"],
  hidden_size: 2048,
  num_hidden_layers: 16,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  head_dim: 64,
  vocab_size: 128256,
  intermediate_size: 8192,
  max_position_embeddings: 131072,
  torch_dtype: "bfloat16",
};
