/**
 * Models that a page's author adds: one object or a list, each `{"id", "name", "layers": […]}`, `{"id", "name",
 * "config": {…}}` or a whole config.json.
 */
import type { LayerRun, ModelObject } from "../contract.js";
import type { AuthorModel } from "../more.js";
import { report } from "../nodes.js";
import { KEYS } from "../request-text.js";

/** What a model as runs of layers may say. */
const MODEL_KEYS: Record<keyof ModelObject | "id" | "fields", true> = {
  id: true,
  name: true,
  parameters: true,
  max_context: true,
  native_weights: true,
  weight_bytes: true,
  weight_bytes_estimated: true,
  native_cache: true,
  family: true,
  source: true,
  active_parameters: true,
  query_heads: true,
  vocabulary: true,
  multimodal: true,
  layer_count: true,
  notes: true,
  fields: true,
  layers: true,
};
const RUN_KEYS: Record<keyof LayerRun, true> = {
  count: true,
  kind: true,
  kv_heads: true,
  key_width: true,
  value_width: true,
  latent_width: true,
  indexer_width: true,
  window: true,
  tokens_per_entry: true,
  source_tokens: true,
  state_values: true,
  state_format: true,
  conv_values: true,
  conv_format: true,
};

function reportUnknown(given: unknown, known: object, of: string): void {
  for (const key of Object.keys(Object(given))) {
    if (!Object.hasOwn(known, key)) report(`${of} has no key called ${key}`);
  }
}

/** Half characters, which no kernel takes, become what stands for them. */
const text = (value: unknown): string =>
  typeof value === "string" ? new TextDecoder().decode(new TextEncoder().encode(value)) : "";

function asAuthorModel(given: unknown, position: number): AuthorModel | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  const one = given as Record<string, unknown>;
  const name =
    text(one.name) || text(one._name_or_path) || text(one.id) || `${text(one.model_type)} ${position}`.trim();
  const id = text(one.id) || name.toLowerCase().replace(/[^a-z0-9.]+/g, "-");
  if (Array.isArray(one.layers)) {
    reportUnknown(one, MODEL_KEYS, "a model");
    for (const run of one.layers) reportUnknown(run, RUN_KEYS, "a run of layers");
    return { id, name, model: { ...(one as unknown as ModelObject), name } };
  }
  // No config has a request's keys.
  const key = KEYS.find((key) => key !== "config" && one.model_type === undefined && Object.hasOwn(one, key));
  if (key) report(`JSON in a tag is for models; ${key} is an attribute`);
  return { id, name, config: (one.config as object | string | undefined) ?? one };
}

/** What the `models` property was given; what is no model is left out with a warning for the author. */
function authorModels(given: unknown): AuthorModel[] {
  if (given === undefined || given === null) return [];
  return [given].flat().flatMap((one, i) => {
    const model = asAuthorModel(one, i + 1);
    if (!model) report(`a model is an object with runs of layers, or a config; this is neither: ${String(one)}`);
    return model ?? [];
  });
}

/** Those in child scripts of type application/json. */
function authorModelsIn(element: Element): AuthorModel[] {
  return [...element.querySelectorAll<HTMLScriptElement>(':scope > script[type="application/json"]')].flatMap(
    (script) => {
      try {
        return authorModels(JSON.parse(script.text));
      } catch (error) {
        report(`a child script is not JSON: ${error}`);
        return [];
      }
    },
  );
}

/** All models that the author of a page gave to an element. */
export function authored(element: Element, given: unknown): AuthorModel[] {
  return [...authorModelsIn(element), ...authorModels(given)];
}
