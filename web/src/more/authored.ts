/**
 * Models that a page's author adds: one object or a list, each `{"id", "name", "layers": […]}`, `{"id", "name",
 * "config": {…}}` or a whole config.json.
 */
import type { ModelObject } from "../contract.js";
import type { AuthorModel } from "../more.js";

const text = (value: unknown): string => (typeof value === "string" ? value : "");

function asAuthorModel(given: unknown, position: number): AuthorModel | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  const one = given as Record<string, unknown>;
  const name =
    text(one.name) || text(one._name_or_path) || text(one.id) || `${text(one.model_type)} ${position}`.trim();
  const id = text(one.id) || name.toLowerCase().replace(/[^a-z0-9.]+/g, "-");
  if (Array.isArray(one.layers)) return { id, name, model: { ...(one as unknown as ModelObject), name } };
  return { id, name, config: (one.config as object | string | undefined) ?? one };
}

/** What the `models` property was given; what is no model is left out with a warning for the author. */
function authorModels(given: unknown): AuthorModel[] {
  if (given === undefined || given === null) return [];
  return [given].flat().flatMap((one, i) => {
    const model = asAuthorModel(one, i + 1);
    if (!model)
      console.warn("kv-capacity: a model is an object with runs of layers, or a config; this is neither:", one);
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
        console.warn(`kv-capacity: a child script is not JSON: ${error}`);
        return [];
      }
    },
  );
}

/** All models that the author of a page gave to an element. */
export function authored(element: Element, given: unknown): AuthorModel[] {
  return [...authorModelsIn(element), ...authorModels(given)];
}
