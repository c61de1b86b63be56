/** Further scripts by tags of their own, from the folder of the first: works from a file and across origins. */
import { KernelError } from "./kernel.js";
import { provideLesson } from "./lesson.js";
import { provideMore } from "./more.js";
import { provideWords } from "./words.js";

const own = globalThis.document?.currentScript as HTMLScriptElement | null | undefined;
const from = own?.src;
const nonce = own?.nonce;

interface Policy {
  createScriptURL(url: string): string;
}

let policy: Policy | undefined;

/** A page may demand that scripts' addresses pass a policy. */
function trusted(url: string): string {
  const { trustedTypes } = globalThis as { trustedTypes?: { createPolicy(name: string, rules: object): Policy } };
  policy ??= trustedTypes?.createPolicy("kv-capacity", { createScriptURL: (text: string) => text });
  return policy?.createScriptURL(url) ?? url;
}

/** What loads a script from beside this one. A page that is one file holds them all at its end. */
export const beside = (name: string) => (): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const missing = (detail: string) => reject(new KernelError("network", detail));
    if (!from) {
      if (document.readyState !== "loading") return missing("unknown address");
      return document.addEventListener("DOMContentLoaded", resolve);
    }
    const url = new URL(name, from);
    // Whatever marks a version of the one marks the other.
    url.search = new URL(from).search;
    const tag = document.createElement("script");
    if (nonce) tag.nonce = nonce;
    tag.addEventListener("load", resolve);
    tag.addEventListener("error", () => missing(`${url} did not load`));
    tag.src = trusted(url.href);
    document.head.append(tag);
  });

provideWords((name) => beside(`locales/${name}.js`)());
provideMore(beside("kv-capacity-more.js"));
provideLesson((part) => beside(`kv-capacity-${part}.js`)());
