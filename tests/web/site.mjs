// Serves a folder, and pages that a test makes up, on a port of its own; remembers what was asked for.
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

/** The built site. */
export const dist = fileURLToPath(new URL("../../web/dist/", import.meta.url));

export const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".wasm": "application/wasm",
  ".json": "application/json; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Notes what goes wrong in a page, in every browser alike. First script of the page. */
const RECORDER = `window.problems = [];
addEventListener("error", (event) => problems.push(event.message || "could not load " + (event.target.src || event.target.href)), true);
addEventListener("unhandledrejection", (event) => problems.push("unhandled: " + event.reason));
addEventListener("securitypolicyviolation", (event) => problems.push(event.violatedDirective + " refused " + event.blockedURI));
for (const level of ["error", "warn"]) {
  const log = console[level];
  console[level] = (...words) => { problems.push(words.join(" ")); log.apply(console, words); };
}
window.shifts = [];
try {
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) shifts.push(entry.value);
  }).observe({ type: "layout-shift", buffered: true });
} catch {}
`;

/**
 * Starts the server. `pages` maps paths to {html, encoding, headers}, for places that the site's own pages are not, to
 * {file, headers}, one of the folder's, or to {body, headers}. `headers` go with every answer that has none of its own.
 * Every page gets the recorder as its first script.
 */
export async function serve(folder = process.env.KV_SITE ?? dist, pages = {}, headers = {}) {
  if (!existsSync(join(folder, "kv-capacity.js"))) throw new Error(`${folder} holds no build: npm run build makes it`);
  const asked = [];
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const path = normalize(pathname.endsWith("/") ? `${pathname}index.html` : pathname);
    asked.push(path);
    const finish = (status, own, body, encoding = "utf8") => {
      response.writeHead(status, { "cache-control": "no-store", ...headers, ...own });
      response.end(body, encoding);
    };
    const recorded = (html) => html.replace(/<meta charset/, '<script src="/recorder.js"></script><meta charset');
    if (path === "/recorder.js") return finish(200, { "content-type": TYPES[".js"] }, RECORDER);
    const page = pages[path];
    if (page?.html) {
      return finish(200, { "content-type": TYPES[".html"], ...page.headers }, recorded(page.html), page.encoding);
    }
    if (page?.body) return finish(200, page.headers, page.body);
    const file = join(folder, page?.file ?? path);
    if (!existsSync(file) || !statSync(file).isFile()) return finish(404, {}, "not here");
    const type = TYPES[extname(file)] ?? "application/octet-stream";
    const chunks = [];
    createReadStream(file)
      .on("data", (chunk) => chunks.push(chunk))
      .on("end", () => {
        const body = Buffer.concat(chunks);
        finish(
          200,
          { "content-type": type, ...page?.headers },
          extname(file) === ".html" ? recorded(body.toString()) : body,
        );
      });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}
