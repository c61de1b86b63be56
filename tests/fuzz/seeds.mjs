// Small files of models, byte by byte, that hostile ones are made from.

const whole = (value, bytes) => {
  const out = Buffer.alloc(bytes);
  if (bytes === 8) out.writeBigUInt64LE(BigInt(value));
  else out.writeUInt32LE(value);
  return out;
};
const text = (value) => Buffer.concat([whole(value.length, 8), Buffer.from(value)]);

/** A small GGUF head: an architecture with its sizes as 32-bit numbers, and one tensor. */
function ggufHead(architecture, sizes) {
  const keys = Object.entries(sizes).map(([key, value]) => {
    const name = text(`${architecture}.${key}`);
    if (!Array.isArray(value)) return Buffer.concat([name, whole(4, 4), whole(value, 4)]);
    return Buffer.concat([
      name,
      whole(9, 4),
      whole(4, 4),
      whole(value.length, 8),
      ...value.map((one) => whole(one, 4)),
    ]);
  });
  return Buffer.concat([
    Buffer.from("GGUF"),
    whole(3, 4),
    whole(1, 8),
    whole(keys.length + 1, 8),
    text("general.architecture"),
    whole(8, 4),
    text(architecture),
    ...keys,
    text("token_embd.weight"),
    whole(2, 4),
    whole(64, 8),
    whole(32, 8),
    whole(1, 4),
    whole(0, 8),
  ]);
}

export const gguf = [
  ggufHead("llama", {
    block_count: 2,
    "attention.head_count": 8,
    "attention.head_count_kv": 2,
    embedding_length: 64,
    context_length: 4096,
  }),
  ggufHead("gemma3", {
    block_count: 6,
    "attention.head_count": 8,
    "attention.head_count_kv": [1, 1, 1, 2, 2, 2],
    "attention.key_length": 128,
    "attention.value_length": 128,
    "attention.sliding_window": 512,
    embedding_length: 64,
  }),
  ggufHead("deepseek2", {
    block_count: 3,
    "attention.head_count": 16,
    "attention.kv_lora_rank": 512,
    "rope.dimension_count": 64,
    embedding_length: 64,
  }),
  ggufHead("mamba", {
    block_count: 4,
    "ssm.state_size": 16,
    "ssm.inner_size": 128,
    "ssm.conv_kernel": 4,
    embedding_length: 64,
  }),
];

export const safetensors = [
  Buffer.concat([
    text(
      JSON.stringify({
        __metadata__: { format: "pt" },
        a: { dtype: "BF16", shape: [4, 8], data_offsets: [0, 64] },
        b: { dtype: "F32", shape: [3], data_offsets: [64, 76] },
        s: { dtype: "BF16", shape: [], data_offsets: [76, 78] },
      }),
    ),
    Buffer.alloc(78),
  ]),
];
