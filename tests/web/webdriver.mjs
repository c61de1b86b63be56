// A small W3C WebDriver client: what the tests need of WebKitGTK's driver, over fetch.
import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** MiniBrowser of the newest WebKitGTK that is installed. */
function miniBrowser() {
  const folders = ["/usr/lib", "/usr/libexec", `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu`];
  for (const folder of folders) {
    if (!existsSync(folder)) continue;
    const versions = readdirSync(folder).filter(
      (name) => name.startsWith("webkit2gtk-") || name.startsWith("webkitgtk-"),
    );
    for (const version of versions.sort().reverse()) {
      const path = join(folder, version, "MiniBrowser");
      if (existsSync(path)) return path;
    }
  }
  throw new Error("WebKitGTK's MiniBrowser was not found: npm run setup installs it (package webkit2gtk-driver)");
}

/** Starts the driver under a display of its own. */
export async function launchWebKit() {
  const port = await freePort();
  // A group of its own, so that the display and the browser end with it.
  const driver = spawn(
    "xvfb-run",
    [
      "--auto-servernum",
      "--server-args=-screen 0 1600x1400x24",
      "WebKitWebDriver",
      `--port=${port}`,
      "--host=127.0.0.1",
    ],
    { stdio: "ignore", detached: true },
  );
  const ended = new Promise((resolve) => driver.once("exit", resolve));
  const failed = new Promise((_, reject) => driver.once("error", reject));
  const base = `http://127.0.0.1:${port}`;

  async function send(method, path, body) {
    const response = await fetch(base + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`${path}: ${value.error}: ${value.message}`);
    return value;
  }

  async function whenReady() {
    for (let i = 0; i < 600; i++) {
      try {
        if ((await send("GET", "/status")).ready) return;
      } catch {
        // Not listening yet.
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error("WebKitWebDriver did not start within a minute");
  }

  await Promise.race([whenReady(), failed]);
  return {
    async session() {
      const { sessionId } = await send("POST", "/session", {
        capabilities: {
          alwaysMatch: {
            // Of a slow machine.
            timeouts: { script: 120_000, pageLoad: 120_000 },
            "webkitgtk:browserOptions": { binary: miniBrowser(), args: ["--automation"] },
          },
        },
      });
      return new Session((method, path, body) => send(method, `/session/${sessionId}${path}`, body));
    },
    async close() {
      try {
        process.kill(-driver.pid, "SIGTERM");
      } catch {
        // Gone already.
      }
      await ended;
    },
  };
}

class Session {
  constructor(send) {
    this.send = send;
  }

  goto(url) {
    return this.send("POST", "/url", { url });
  }

  /** Calls a function in the page; arguments and result are JSON. A promise is awaited. */
  async evaluate(fn, ...args) {
    const script = `const done = arguments[arguments.length - 1];
      Promise.resolve().then(() => (${fn})(...JSON.parse(arguments[0])))
        .then((value) => done({ value: JSON.stringify(value) }), (error) => done({ error: String(error && error.stack || error) }));`;
    const { value, error } = await this.send("POST", "/execute/async", { script, args: [JSON.stringify(args)] });
    if (error) throw new Error(error);
    return value === undefined || value === null ? undefined : JSON.parse(value);
  }

  /** An element that a function in the page returns, as a reference for other commands. */
  async element(fn, ...args) {
    const value = await this.send("POST", "/execute/sync", {
      script: `return (${fn})(...JSON.parse(arguments[0]))`,
      args: [JSON.stringify(args)],
    });
    return value[ELEMENT];
  }

  clickElement(id) {
    return this.send("POST", `/element/${id}/click`, {});
  }

  actions(actions) {
    return this.send("POST", "/actions", { actions });
  }

  async resize(width, height) {
    await this.send("POST", "/window/rect", { width, height });
    // The window's frame takes some of it.
    const [innerWidth, innerHeight] = await this.evaluate(() => [innerWidth, innerHeight]);
    await this.send("POST", "/window/rect", {
      width: width + (width - innerWidth),
      height: height + (height - innerHeight),
    });
  }

  async screenshot() {
    return Buffer.from(await this.send("GET", "/screenshot"), "base64");
  }

  close() {
    return this.send("DELETE", "");
  }
}
