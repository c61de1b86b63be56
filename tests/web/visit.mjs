// A browser at the built site, for the tests of one file.
import { Reader } from "./reader.mjs";
import { serve } from "./site.mjs";

/** Opens the site, with the pages that a test makes up, in a browser of its own. */
export async function visit(launch, pages) {
  const site = await serve(undefined, pages);
  let browser;
  const close = async () => {
    await browser?.close();
    await site.close();
  };
  try {
    browser = await launch();
    const page = await browser.page();
    await page.resize(1280, 1000);
    return { site, page, reader: new Reader(page), close };
  } catch (error) {
    await close();
    throw error;
  }
}
