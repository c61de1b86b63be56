// npm start: builds the site and serves it on this machine alone.
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, sep } from "node:path";
import { projectFolder, setup } from "../cpp/toolchain/setup.mjs";
import { Failure, runMain, say } from "../cpp/toolchain/terminal.mjs";

const types = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/** The file in `folder` that a URL's path names, or undefined; never one outside the folder. */
function fileFor(folder, url) {
  let path;
  try {
    path = decodeURIComponent(new URL(url, "http://localhost").pathname);
  } catch {
    return undefined;
  }
  const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
  if (!file.startsWith(folder + sep) || file.includes("\0")) return undefined;
  return statSync(file, { throwIfNoEntry: false })?.isFile() ? file : undefined;
}

/** A server of the files in `folder`. */
export function staticServer(folder) {
  return createServer((request, response) => {
    const file = fileFor(folder, request.url);
    if (request.method !== "GET" && request.method !== "HEAD") response.writeHead(405, { allow: "GET, HEAD" }).end();
    else if (!file) response.writeHead(404, { "content-type": types[".html"] }).end("Not found");
    else {
      response.writeHead(200, {
        "content-type": types[extname(file)] ?? "application/octet-stream",
        "cache-control": "no-cache",
      });
      if (request.method === "HEAD") response.end();
      else createReadStream(file).pipe(response);
    }
  });
}

/** Listens on `port`, or on the next one that is free. Returns the one it got. */
async function listen(server, port) {
  for (let candidate = port; candidate < port + 100 && candidate < 65536; candidate++) {
    const error = await new Promise((resolve) => {
      server.once("error", resolve);
      server.listen(candidate, "localhost", () => resolve(undefined));
    });
    if (!error) return server.address().port;
    if (error.code !== "EADDRINUSE") {
      throw new Failure(`Port ${candidate} cannot be used (${error.code}). Name another: PORT=8080 npm start`);
    }
  }
  throw new Failure(`No port from ${port} on is free. Name another: PORT=8080 npm start`);
}

await runMain(async () => {
  const port = Number(process.env.PORT ?? 8000);
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new Failure(`PORT=${process.env.PORT} is no port. Give a number from 0 to 65535.`);
  }
  await setup();
  const { build } = await import("./build.mjs");
  say("Building the site …");
  await build();
  const server = staticServer(join(projectFolder, "web/dist"));
  const got = await listen(server, port);
  console.log(`KV Capacity is at http://localhost:${got}/ (Ctrl-C ends it)`);
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => {
      server.close();
      server.closeAllConnections();
    });
  }
});
