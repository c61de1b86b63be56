// The textbook's formula by hand, in plain JavaScript: what a page would do without the kernel. It checks nothing,
// knows no names and gives the figures alone.

/** Rows of one layer that a conversation of `context` tokens keeps. */
function rowsKept(run, context) {
  switch (run.kind) {
    case "full":
    case "latent":
      return context;
    case "window":
    case "chunked":
      return Math.min(context, run.window);
    case "compressed":
      return Math.ceil(context / run.tokens_per_entry);
    case "cross":
      return run.source_tokens;
    default:
      return 0;
  }
}

/** Bytes that one more token adds to one layer. */
function bytesPerToken(run, row, context) {
  switch (run.kind) {
    case "full":
    case "latent":
      return row;
    case "window":
    case "chunked":
      return context < run.window ? row : 0;
    case "compressed":
      return Math.ceil(row / run.tokens_per_entry);
    default:
      return 0;
  }
}

/**
 * @param {object} question runs of layers as the kernel's answers write them; bytes of a value in the cache, of the
 *   weights, of one GPU; the GPUs; the share kept free in thousandths; the context in tokens
 */
export function textbook({ layers, value_bytes, weight_bytes, gpu_bytes, gpus, reserve_thousandths, context }) {
  let sequence = 0;
  let token = 0;
  for (const run of layers) {
    const values = run.latent_width ? run.latent_width : (run.kv_heads ?? 0) * (run.key_width + run.value_width);
    const row = (values || 0) * value_bytes;
    sequence += run.count * row * rowsKept(run, context);
    token += run.count * bytesPerToken(run, row, context);
  }
  const total = gpu_bytes * gpus;
  const pool = Math.max(0, total - Math.ceil((total * reserve_thousandths) / 1000) - weight_bytes);
  return {
    kv_bytes_per_token: token,
    kv_fixed_bytes: Math.max(0, sequence - token * context),
    kv_bytes_per_sequence: sequence,
    kv_memory_bytes: pool,
    sequences: Math.floor(pool / sequence),
  };
}
