/** The page that holds everything, as text; its own script, since it is a megabyte that few authors ask for. */
const PAGE = Symbol.for("kv-capacity.page.1");
const holder = globalThis as { [PAGE]?: string };

/** Where the builder's own script is, beside which the page's lies. */
const own = (document.currentScript as HTMLScriptElement | null)?.src ?? document.baseURI;

export async function loadPage(): Promise<string> {
  if (holder[PAGE] === undefined) {
    await new Promise((resolve, reject) => {
      const tag = document.createElement("script");
      tag.addEventListener("load", resolve);
      tag.addEventListener("error", reject);
      tag.src = new URL("kv-capacity-page.js", own).href;
      document.head.append(tag);
    });
  }
  const page = holder[PAGE];
  if (page === undefined) throw new Error("kv-capacity-page.js holds no page");
  return page;
}
