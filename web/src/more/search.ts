/**
 * A search over the models: a text field with a list, after the pattern of a combobox (WAI-ARIA Authoring Practices,
 * "Editable combobox with list autocomplete"). What is chosen goes into the selector, which holds the state.
 */
import type { Host } from "../more.js";
import { h, mark, say } from "../nodes.js";

interface Choice {
  value: string;
  name: string;
  family: string;
  words: string;
}

let last = 0;

export function modelSearch(host: Host): { open(): void } {
  const { speech, modelSelect: select } = host;
  const id = `search-${++last}`;
  const input = h("input", {
    type: "text",
    role: "combobox",
    "aria-expanded": "true",
    "aria-autocomplete": "list",
    "aria-controls": id,
    "aria-label": speech.text("search.label"),
    placeholder: speech.text("search.hint"),
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
  });
  const list = h("div", { role: "listbox", id, "aria-label": speech.text("search.list") });
  const none = h("p", { class: "about" });
  const box = h("div", { class: "finder", hidden: "" }, input, list, none);
  (select.parentElement as HTMLElement).append(box);

  let choices: Choice[] = [];
  let options: HTMLElement[] = [];
  let active = -1;

  const fold = (text: string) =>
    text
      .normalize("NFKD")
      .toLowerCase()
      .replace(/[^a-z0-9.]+/g, " ");

  function gather(): void {
    const known = new Map(host.catalogue.models.map((one) => [one.id, one]));
    const all = [...select.options].filter((option) => !option.dataset.own);
    choices = all.map((option) => {
      const group = option.parentElement;
      const family = group instanceof HTMLOptGroupElement ? group.label : "";
      const hub = known.get(option.value)?.hub_id ?? "";
      return {
        value: option.value,
        name: option.text,
        family,
        words: fold(`${option.text} ${family} ${option.value} ${hub}`),
      };
    });
  }

  /** Every word typed must be found; those that a course uses stand first, as in the selector. */
  function filter(): void {
    const terms = fold(input.value).split(" ").filter(Boolean);
    const squeezed = terms.join("");
    const found = choices.filter(
      ({ words }) =>
        terms.every((term) => words.includes(term)) ||
        (squeezed.length > 2 && words.replaceAll(" ", "").includes(squeezed)),
    );
    const groups = new Map<string, HTMLElement>();
    const nodes: HTMLElement[] = [];
    options = [];
    for (const one of found) {
      const option = h(
        "div",
        { role: "option", id: `${id}-${options.length}`, "data-value": one.value, "aria-selected": "false" },
        one.name,
      );
      options.push(option);
      let group = groups.get(one.family);
      if (!group && one.family !== "") {
        const name = `${id}-family-${groups.size}`;
        group = h(
          "div",
          { role: "group", "aria-labelledby": name },
          h("div", { class: "family", id: name }, one.family),
        );
        groups.set(one.family, group);
        nodes.push(group);
      }
      if (group) group.append(option);
      else nodes.push(option);
    }
    list.replaceChildren(...nodes);
    say(none, found.length === 0 ? speech.text("search.none") : "");
    if (found.length === 0) host.announce(none.textContent ?? "");
    const chosen = options.findIndex((option) => option.dataset.value === select.value);
    activate(terms.length === 0 && chosen >= 0 ? chosen : found.length > 0 ? 0 : -1);
  }

  function activate(index: number): void {
    options[active]?.setAttribute("aria-selected", "false");
    active = index;
    const option = options[index];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    mark(input, "aria-activedescendant", option?.id ?? null);
  }

  function choose(index: number): void {
    const value = options[index]?.dataset.value;
    if (value === undefined) return;
    close(true);
    if (value === select.value) return;
    select.value = value;
    select.dispatchEvent(new Event("change"));
  }

  function close(back: boolean): void {
    if (box.hidden) return;
    box.hidden = true;
    input.value = "";
    if (back) select.focus();
  }

  input.addEventListener("input", filter);
  input.addEventListener("keydown", (event) => {
    const end = options.length - 1;
    const to: Record<string, number> = {
      ArrowDown: active >= end ? 0 : active + 1,
      ArrowUp: active <= 0 ? end : active - 1,
      PageDown: Math.min(active + 8, end),
      PageUp: Math.max(active - 8, 0),
    };
    // Home and End belong to the text, as in every field.
    const next = to[event.key];
    if (next !== undefined) activate(next);
    else if (event.key === "Enter") choose(active);
    else if (event.key === "Escape") close(true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  input.addEventListener("blur", () => close(false));
  // The field keeps the focus; a finger may still scroll the list.
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = (event.target as Element).closest("[role=option]");
    if (option) choose(options.indexOf(option as HTMLElement));
  });

  return {
    open() {
      if (select.disabled) return;
      gather();
      box.hidden = false;
      filter();
      input.focus();
    },
  };
}
