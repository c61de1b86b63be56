// Own models, engines, start-up logs and the search, as a reader uses them, in three browsers.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { browsers } from "./browsers.mjs";
import { becomes, passes, reads, until, wait } from "./reader.mjs";
import { dist } from "./site.mjs";
import { visit } from "./visit.mjs";

const logs = fileURLToPath(new URL("../data/logs/", import.meta.url));

/** The command line's answer: the same kernel, asked without a page. */
function ask(request) {
  const { stdout } = spawnSync("node", [join(dist, "cli.mjs"), "plan"], {
    input: JSON.stringify(request),
    encoding: "utf8",
  });
  return JSON.parse(stdout);
}

// ---- files that the tests make up --------------------------------------------------------------------------------------

/** A model of 4 layers with 2 KV heads of 64 values, of which every second has a window of 16 tokens. */
const CONFIG = {
  model_type: "mistral",
  architectures: ["MistralForCausalLM"],
  hidden_size: 256,
  intermediate_size: 512,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 64,
  vocab_size: 1000,
  max_position_embeddings: 4096,
  sliding_window: null,
  torch_dtype: "bfloat16",
  bos_token_id: 1,
};
const PER_TOKEN = 2 * 4 * 2 * 64 * 2;

/** A GGUF file of a llama of 4 layers, with so many tokens in its vocabulary that its head passes 64 KiB. */
function gguf() {
  const parts = [];
  const bytes = (size, write) => {
    const buffer = Buffer.alloc(size);
    write(buffer);
    parts.push(buffer);
  };
  const u32 = (value) => bytes(4, (buffer) => buffer.writeUInt32LE(value));
  const u64 = (value) => bytes(8, (buffer) => buffer.writeBigUInt64LE(BigInt(value)));
  const text = (value) => {
    u64(Buffer.byteLength(value));
    parts.push(Buffer.from(value));
  };
  const key = (name, type) => {
    text(name);
    u32(type);
  };
  const whole = (name, value) => {
    key(name, 4);
    u32(value);
  };
  const words = (name, value) => {
    key(name, 8);
    text(value);
  };
  parts.push(Buffer.from("GGUF"));
  u32(3);
  u64(1);
  u64(9);
  words("general.architecture", "llama");
  words("general.name", "Made up");
  key("tokenizer.ggml.tokens", 9);
  u32(8);
  u64(20_000);
  for (let i = 0; i < 20_000; i++) text(`token ${i}`);
  whole("llama.block_count", 4);
  whole("llama.context_length", 4096);
  whole("llama.embedding_length", 256);
  whole("llama.attention.head_count", 4);
  whole("llama.attention.head_count_kv", 2);
  whole("llama.attention.key_length", 64);
  // One tensor: 1024 values of q8_0, 34 bytes for 32 of them.
  text("token_embd.weight");
  u32(1);
  u64(1024);
  u32(8);
  u64(0);
  const head = Buffer.concat(parts);
  const start = Math.ceil(head.length / 32) * 32;
  return Buffer.concat([head, Buffer.alloc(start - head.length + (1024 / 32) * 34)]);
}

/** A log of many lines with one start among them. */
function longLog(size) {
  const start = readFileSync(join(logs, "vllm-0.6.4-llama-3.1-8b.log"), "utf8");
  const noise = "2026-01-01 00:00:00 nginx: GET /health 200 0.001 s from 10.0.0.7 KV cache size not stated here\n";
  return noise.repeat(Math.ceil(size / 2 / noise.length)) + start + noise.repeat(Math.ceil(size / 2 / noise.length));
}

const AUTHORED = {
  "/authored.html": {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>authored</title>
      <script src="kv-capacity.js"></script></head><body>
      <kv-capacity model="tiny" link>
        <script type="application/json">[{"id": "tiny", "name": "Tiny", "parameters": 1000000,
          "layers": [{"count": 4, "kind": "full", "kv_heads": 2, "key_width": 64, "value_width": 64}]}]</script>
        <script type="application/json">${JSON.stringify({ name: "Whole config", config: CONFIG })}</script>
      </kv-capacity></body></html>`,
  },
  "/late.html": {
    // The tag stands there before what is in it.
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>late</title>
      <script src="kv-capacity.js"></script></head><body><kv-capacity model="whole-config">
        <p>An example.</p><script src="slow.js"></script>
        <script type="application/json">${JSON.stringify({ name: "Whole config", config: CONFIG })}</script>
      </kv-capacity></body></html>`,
  },
  "/hub-off.html": {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>off</title>
      <script src="kv-capacity.js"></script></head><body><kv-capacity hub="off"></kv-capacity></body></html>`,
  },
  "/rare.html": {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>rare</title>
      <script src="kv-capacity.js"></script></head>
      <body><kv-capacity model="rwkv-5-3b" gpu="tpu-v4-32gb">example</kv-capacity></body></html>`,
  },
  "/strict.html": {
    headers: {
      "content-security-policy":
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; connect-src 'none'; require-trusted-types-for 'script'",
    },
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>strict</title>
      <script src="kv-capacity.js"></script></head>
      <body><kv-capacity engine="vllm" gpu="h100-sxm-80gb">example</kv-capacity></body></html>`,
  },
  "/module.html": {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>module</title>
      <script type="module" src="kv-capacity.mjs"></script></head>
      <body><kv-capacity engine="vllm" gpu="h100-sxm-80gb"></kv-capacity>
      <kv-capacity-table auto contexts="8192" deployments="model=llama-3-8b engine=vllm gpu=h100-sxm-80gb">
      </kv-capacity-table></body></html>`,
  },
  // A folder to which only the first script was uploaded.
  "/alone/index.html": {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>alone</title>
      <script src="kv-capacity.js"></script></head><body><kv-capacity></kv-capacity></body></html>`,
  },
  "/alone/kv-capacity.js": { file: "kv-capacity.js" },
  "/locked.html": {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>locked</title>
      <script src="kv-capacity.js"></script></head>
      <body><kv-capacity lock="all" engine="vllm" gpu="h100-sxm-80gb"></kv-capacity></body></html>`,
  },
};

/** A hub that answers each owner in its own way. */
async function startHub() {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    const headers = { "access-control-allow-origin": "*", "cache-control": "no-store" };
    const owner = request.url.split("/")[1];
    const finish = (status, body, type = "application/json") => {
      response.writeHead(status, { ...headers, "content-type": type });
      response.end(body);
    };
    if (/^\d+$/.test(owner)) return finish(Number(owner), "no");
    if (owner === "silent") return undefined;
    if (owner === "stalls") {
      response.writeHead(200, { ...headers, "content-type": "application/json" });
      response.write('{"model_type": ');
      return undefined;
    }
    if (owner === "page") return finish(200, "<!DOCTYPE html><title>Sign in</title>", "text/html");
    if (owner === "broken") return finish(200, '{"model_type": "llama", ');
    if (owner === "huge") return finish(200, `{"model_type": "llama", "x": "${"x".repeat(5 << 20)}"}`);
    if (request.url.endsWith("/resolve/main/config.json")) return finish(200, JSON.stringify(CONFIG));
    if (owner === "indexed" && request.url.endsWith("/model.safetensors.index.json"))
      return finish(200, JSON.stringify({ metadata: { total_size: 1_234_568 }, weight_map: { a: "x.safetensors" } }));
    return finish(404, "not here");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    asked,
    origin: `http://127.0.0.1:${server.address().port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

for (const [name, launch] of Object.entries(browsers)) {
  describe(name, { timeout: 600_000 }, () => {
    let site;
    let hub;
    let page;
    let reader;
    let close;

    before(async () => {
      hub = await startHub();
      ({ site, page, reader, close } = await visit(launch, AUTHORED));
    });
    after(async () => {
      await close?.();
      await hub?.close();
    });

    const fresh = (path = "/embed.html") => reader.open(`${site.origin}${path}?${Math.random()}`);
    const within = (fn, ...args) => page.evaluate(fn, ...args);
    /** Text of something in the calculator, or "" where it is not there or not shown. */
    const text = (selector) =>
      within((selector) => {
        const node = document.querySelector("kv-capacity").shadowRoot.querySelector(selector);
        return node?.checkVisibility() ? node.textContent.replaceAll("\u00a0", " ") : "";
      }, selector);
    const open = async (panel) => {
      await reader.click(`.panel.${panel} > summary`);
      await until(`the part "${panel}"`, () =>
        within((panel) => {
          const inside = document.querySelector("kv-capacity").shadowRoot.querySelector(`.${panel} .inside`);
          return inside.parentElement.open && inside.childElementCount > 0;
        }, panel),
      );
    };
    const plan = (check) => reader.planned(check);
    const typeInto = (selector, value) =>
      within(
        (selector, value) => {
          const field = document.querySelector("kv-capacity").shadowRoot.querySelector(selector);
          field.focus();
          field.value = value;
          field.dispatchEvent(new Event("input", { bubbles: true }));
          field.dispatchEvent(new Event("change", { bubbles: true }));
        },
        selector,
        value,
      );
    /** Drops files onto a part: {name, base64} or {name, text}. */
    const drop = (panel, ...files) =>
      within(
        async (panel, files) => {
          const transfer = new DataTransfer();
          for (const { name, base64, text } of files) {
            const bytes =
              base64 === undefined ? text : Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
            transfer.items.add(new File([bytes], name));
          }
          const target = document.querySelector("kv-capacity").shadowRoot.querySelector(`.${panel} .inside`);
          for (const kind of ["dragover", "drop"]) {
            target.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: transfer }));
          }
        },
        panel,
        files,
      );
    /** Chooses a file by a part's button. */
    const pick = (panel, name, content) =>
      within(
        (panel, name, content) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([content], name));
          const input = document.querySelector("kv-capacity").shadowRoot.querySelector(`.${panel} input[type=file]`);
          input.files = transfer.files;
          input.dispatchEvent(new Event("change", { bubbles: true }));
          return input.files.length;
        },
        panel,
        name,
        content,
      );
    const fileProblem = () => text(".own .columns > div + div .problem");

    describe("what would it take", () => {
      const wish = async (typed) => {
        await within(() => {
          const input = document.querySelector("kv-capacity").shadowRoot.querySelector(".wish input");
          input.value = "";
          input.focus();
        });
        await page.type(typed);
        await page.press("Enter");
      };
      const told = (pattern) => until(String(pattern), async () => pattern.test(await text(".wish .sentence")));

      it("answers a wish in three ways, and goes the one that is chosen", async () => {
        await fresh();
        await open("wish");
        await wish("100 users at 8k");
        await told(
          /^100 conversations of 8,192 tokens do not fit: as it is, 52 do\. .*4,267 tokens\. .*2 GPUs .* fp8 104 would fit/,
        );
        for (const other of ["100 people, 8192 tokens", "8k for 100", "100"]) {
          await wish("1 at 1");
          await told(/^1 conversation of 1 token fits as it is/);
          await wish(other);
          await told(/^100 conversations of 8,192 tokens do not fit/);
        }
        const choose = async (index, settled) => {
          await reader.click(`.wish .buttons button:nth-child(${index})`);
          return until("the choice", () => within(settled));
        };
        const plan = await choose(2, () => {
          const { plan } = document.querySelector("kv-capacity");
          return plan?.deployment.gpus === 2 && plan;
        });
        assert.equal(plan.sequences, 119);
        await told(/^100 conversations of 8,192 tokens fit as it is: there is room for 119/);
        await wish("1 user at 1M");
        await told(/^1 conversation of 1,048,576 tokens does not fit/);
        await wish("100 users at 32k");
        await told(/do not fit: as it is, 29 do/);
        const longer = await choose(1, () => {
          const { plan } = document.querySelector("kv-capacity");
          return plan?.context !== 8192 && plan;
        });
        assert.ok(longer.sequences >= 100);
      });

      it("asks again where a wish says nothing", async () => {
        await fresh();
        await open("wish");
        const nothing = ["many people", "32k", "0 users", "99999999999999999999 users at 8k", "2.5 users at 8k"];
        for (const typed of [...nothing, "-35 users", "\u22123 users", "1k users at 8k", "1M users at 8k", "on H100"]) {
          await wish(typed);
          await passes(async () => {
            assert.match(await text(".wish .problem"), /^Write how many/, typed);
            assert.equal(await text(".wish .sentence"), "");
          });
          await wish("10 at 1k");
          await until("an answer", async () => (await text(".wish .problem")) === "");
        }
      });
    });

    it("asks for the second script when a part of it is opened, and for nothing else", async () => {
      await fresh();
      await wait(200);
      const asked = () =>
        within(() => performance.getEntriesByType("resource").map((one) => new URL(one.name).pathname));
      assert.ok(!(await asked()).includes("/kv-capacity-more.js"));
      await open("own");
      await open("engine");
      await open("log");
      // A browser may keep the list in another process, where entries come later.
      await until("the script in the list", async () => (await asked()).includes("/kv-capacity-more.js"));
      const later = await asked();
      assert.equal(later.filter((path) => path === "/kv-capacity-more.js").length, 1);
      assert.deepEqual(
        [...new Set(later)].filter((path) => !/^\/(kv-capacity(-more)?\.js|embed\.(css|js)|recorder\.js)$/.test(path)),
        [],
      );
      // From then on the full kernel is the page's only one.
      assert.equal(
        await within(async () => {
          const { core, full } = globalThis[Symbol.for("kv-capacity.kernel.1")];
          return (await core) === (await full);
        }),
        true,
      );
      assert.deepEqual(await within(() => window.problems), []);
    });

    it("offers the models and GPUs of a course first, and all of them on request", async () => {
      await fresh();
      const offered = (key) =>
        within((key) => {
          const select = document.querySelector("kv-capacity").shadowRoot.querySelector(`#${key}`);
          return { ids: [...select.options].map(({ value }) => value), value: select.value };
        }, key);
      const choose = (key, value) =>
        within(
          (key, value) => {
            const select = document.querySelector("kv-capacity").shadowRoot.querySelector(`#${key}`);
            select.value = value;
            select.dispatchEvent(new Event("change", { bubbles: true }));
          },
          key,
          value,
        );
      const first = await offered("gpu");
      assert.ok(!first.ids.includes("p40-24gb"));
      assert.equal(first.ids.at(-1), "…");
      await choose("gpu", "…");
      assert.equal((await offered("gpu")).value, "80gb");
      await until("all GPUs", async () => (await offered("gpu")).ids.includes("p40-24gb"));
      assert.ok(!(await offered("gpu")).ids.includes("…"));
      assert.equal((await offered("gpu")).value, "80gb");
      await choose("gpu", "p40-24gb");
      await plan((one) => one.gpu.id === "p40-24gb");
      assert.ok((await offered("model")).ids.includes("rwkv-5-3b"));
      // One that only the whole catalogue has may be named from the start.
      await fresh("/rare.html");
      await plan((one) => one.model.id === "rwkv-5-3b" && one.gpu.id === "tpu-v4-32gb");
      assert.equal((await offered("model")).value, "rwkv-5-3b");
      assert.equal((await offered("gpu")).value, "tpu-v4-32gb");
    });

    it("reads a pasted config, and says what became of its fields", async () => {
      await fresh();
      await open("own");
      await typeInto(".own textarea", `\uFEFF// a comment\r\n${JSON.stringify(CONFIG).replace("}", ",}")}`);
      const answer = await plan((one) => one.kv_bytes_per_token === PER_TOKEN);
      assert.equal(answer.model.layer_count, 4);
      assert.match(await text(".own .understood"), /4 layers of full attention, 2 KV heads of 64 values/);
      assert.match(await text(".own .understood"), /fields were used/);
      assert.match(await text(".own .understood"), /has no bearing on the cache|have no bearing on the cache/);
      const ignored = await within(() =>
        [...document.querySelector("kv-capacity").shadowRoot.querySelectorAll(".own details:last-child code")].map(
          (one) => one.textContent,
        ),
      );
      assert.ok(ignored.includes("bos_token_id"), ignored.join());
      // What it weighs is what it weighs now.
      await reader.choose("weights", "q4_0");
      await reads(() => text(".own .understood .facts"), /q4_0/);
      // The selector names it, and another choice takes its place.
      assert.notEqual(
        await within(
          () => document.querySelector("kv-capacity").shadowRoot.querySelector("#model").selectedOptions[0].text,
        ),
        "",
      );
      await reader.choose("model", "llama-3-8b");
      await plan((one) => one.model.id === "llama-3-8b");
      assert.equal(await text(".own .understood"), "");
    });

    it("keeps a refused config's error beside it, and the last answer", async () => {
      await fresh();
      await open("own");
      const before = (await reader.plan()).kv_bytes_per_token;
      for (const [pasted, said] of [
        ['{"model_type": "llama", "hidden', /config/],
        [
          '{"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12}',
          /cache|encoder/i,
        ],
        ["<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> other", /./],
        ["[".repeat(100_000), /./],
      ]) {
        await typeInto(".own textarea", pasted);
        await until("a refusal", () => text(".own .field .problem"));
        await reads(() => text(".own .field .problem"), said);
        assert.equal((await reader.plan()).kv_bytes_per_token, before);
        await typeInto(".own textarea", "");
        await until("nothing wrong", async () => (await text(".own .field .problem")) === "");
      }
    });

    it("takes no more of a text that is too long than it can read", async () => {
      await fresh();
      await open("own");
      const given = await within(async () => {
        const { instance } = await globalThis[Symbol.for("kv-capacity.kernel.1")].full;
        const read = instance.importModel;
        let most = 0;
        instance.importModel = (kind, bytes, size, config) => {
          most = Math.max(most, bytes.length);
          return read.call(instance, kind, bytes, size, config);
        };
        const field = document.querySelector("kv-capacity").shadowRoot.querySelector(".own textarea");
        // A field that shows a million lines takes WebKit half a minute.
        Object.defineProperty(field, "value", { value: "[1],\n".repeat(1 << 20), configurable: true });
        field.dispatchEvent(new Event("input", { bubbles: true }));
        for (let i = 0; i < 1200 && most === 0; i++) await new Promise((resolve) => setTimeout(resolve, 50));
        instance.importModel = read;
        delete field.value;
        return most;
      });
      assert.ok(given > 0 && given <= 1 << 16, `${given} bytes were given`);
      await reads(() => text(".own .field .problem"), /5,?242,?880/);
    });

    it("reads a dropped GGUF as far as it must", async () => {
      await fresh();
      await open("own");
      const file = gguf();
      await drop("own", { name: "made-up.gguf", base64: file.toString("base64") });
      const answer = await plan((one) => one.model.name === "Made up");
      assert.equal(answer.kv_bytes_per_token, PER_TOKEN);
      assert.equal(answer.weight_bytes, (1024 / 32) * 34);
      await drop("own", { name: "cut.gguf", base64: file.subarray(0, 70_000).toString("base64") });
      await until("a refusal", async () => /cut\.gguf/.test(await fileProblem()));
    });

    it("takes several files together, and says what is missing of them", async () => {
      await fresh();
      await open("own");
      const index = JSON.stringify({ metadata: { total_size: 1_234_568 }, weight_map: { a: "1.safetensors" } });
      await drop("own", { name: "model.safetensors.index.json", text: index });
      await reads(fileProblem, /1,234,568 bytes.*config\.json/);
      await drop(
        "own",
        { name: "config.json", text: JSON.stringify(CONFIG) },
        { name: "model.safetensors.index.json", text: index },
      );
      assert.equal((await plan((one) => one.weight_bytes === 1_234_568)).kv_bytes_per_token, PER_TOKEN);
      for (const [file, said] of [
        [{ name: "model.gguf", text: "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n" }, /LFS/],
        [{ name: "config.json", text: "<!DOCTYPE html><title>Sign in</title>" }, /web page/],
        [{ name: "model.gguf", text: "GGUF" }, /model\.gguf/],
        [{ name: "empty.gguf", text: "" }, /empty/],
      ]) {
        await drop("own", file);
        await reads(fileProblem, said);
      }
      await drop("own", { name: "1.safetensors", text: "x" }, { name: "2.safetensors", text: "x" });
      await reads(fileProblem, /index\.json/);
      // By the button too, and the same file a second time.
      for (const _ of [1, 2]) {
        assert.equal(await pick("own", "chosen.gguf", "GGUF"), 0);
        await until("the chosen file's answer", async () => /chosen\.gguf/.test(await fileProblem()));
        await drop("own", { name: "empty.gguf", text: "" });
        await until("another", async () => /empty/.test(await fileProblem()));
      }
    });

    it("shows where a file would be taken, for as long as it is held there", async () => {
      await fresh();
      await open("own");
      const held = (kind, type) =>
        within(
          (kind, type) => {
            const transfer = new DataTransfer();
            if (type === "file") transfer.items.add(new File(["x"], "x"));
            else transfer.setData("text/plain", "x");
            const inside = document.querySelector("kv-capacity").shadowRoot.querySelector(".own .inside");
            const event = new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: transfer });
            inside.firstElementChild.dispatchEvent(event);
            return [event.defaultPrevented, inside.classList.contains("dropping")];
          },
          kind,
          type,
        );
      assert.deepEqual(await held("dragover", "text"), [false, false]);
      assert.deepEqual(await held("dragover", "file"), [true, true]);
      assert.deepEqual(await held("dragleave", "file"), [false, false]);
    });

    it("fetches from the hub on a click, and words each of its refusals", async () => {
      await fresh();
      await open("own");
      await within((hub) => document.querySelector("kv-capacity").setAttribute("hub", hub), hub.origin);
      const field = '.own input[type="text"]';
      const problem = () => text(".own .with-button + .problem");
      const fetchIt = async (id, said) => {
        await typeInto(field, id);
        await reader.click(".own .with-button button");
        // What was said before goes with the click; until the hub has answered, no other click is taken.
        await passes(async () => {
          assert.match(await problem(), said, id);
          assert.equal((await reader.control(".own .with-button button")).disabled, false, `${id} is still asked for`);
        });
        assert.equal((await reader.control(field)).value, id);
      };
      hub.asked.length = 0;
      await typeInto(field, "indexed/model");
      await wait(300);
      assert.deepEqual(hub.asked, []);
      await fetchIt("not a name", /owner\/name/);
      assert.deepEqual(hub.asked, []);
      await fetchIt("401/model", /licence/);
      await fetchIt("403/model", /refuses/);
      await fetchIt("404/model", /no config\.json/);
      await fetchIt("500/model", /500/);
      await fetchIt("page/model", /web page/);
      await fetchIt("broken/model", /config/);
      await fetchIt("huge/model", /config\.json is larger than any/);
      await fetchIt("indexed/model", /^$/);
      const answer = await plan((one) => one.weight_bytes === 1_234_568);
      assert.equal(answer.kv_bytes_per_token, PER_TOKEN);
      assert.equal(answer.model.name, "indexed/model");
      await within(() => document.querySelector("kv-capacity").setAttribute("hub", "http://127.0.0.1:1"));
      await fetchIt("owner/model", /could not be reached/);
      // A hub that says nothing, or stops in the middle. Its patience of seconds is cut short here.
      await within((hub) => {
        document.querySelector("kv-capacity").setAttribute("hub", hub);
        const real = window.setTimeout;
        window.setTimeout = (then, time, ...rest) => real(then, time > 10_000 && window.hasty ? 300 : time, ...rest);
      }, hub.origin);
      for (const [id, said] of [
        ["silent/model", /did not answer|in time/],
        ["indexed/model", /^$/],
        ["stalls/model", /did not answer|in time/],
      ]) {
        await within((hasty) => {
          window.hasty = hasty;
        }, id !== "indexed/model");
        await fetchIt(id, said);
      }
      await fresh("/hub-off.html");
      await open("own");
      assert.equal(await text(".own .with-button"), "");
    });

    it("offers the models of a page's author first, in either form", async () => {
      await fresh("/authored.html");
      const answer = await plan((one) => one.model.name === "Tiny");
      assert.equal(answer.kv_bytes_per_token, PER_TOKEN);
      const offered = await within(() => {
        const group = document.querySelector("kv-capacity").shadowRoot.querySelector("#model optgroup");
        return [group.label, ...[...group.children].map((one) => one.text)];
      });
      assert.deepEqual(offered, ["This page", "Tiny", "Whole config"]);
      assert.equal((await reader.control("#model")).value, "tiny");
      await reader.choose("model", "whole-config");
      await plan((one) => one.model.layer_count === 4 && one.model.query_heads === 4);
      await reads(() => within(() => location.hash), /model=whole-config/);
      // By property, in place of script.
      await within(() => {
        const kv = document.querySelector("kv-capacity");
        kv.models = { name: "Given", layers: [{ count: 1, kind: "latent", latent_width: 576 }] };
        kv.model = "given";
      });
      assert.equal((await plan((one) => one.model.name === "Given")).kv_bytes_per_token, 1152);
      await fresh("/late.html");
      assert.equal((await reader.plan()).kv_bytes_per_token, PER_TOKEN);
    });

    it("shows what an engine sets aside, by its rules", async () => {
      const request = { model: "gemma-3-27b", engine: "vllm", gpu: "h100-sxm-80gb", gpus: 2, context: 32768 };
      const expected = ask(request);
      assert.equal(expected.error, undefined);
      await fresh();
      await open("engine");
      await within((request) => {
        document.querySelector("kv-capacity").request = request;
      }, request);
      const answer = await plan((one) => one.engine === "vllm");
      for (const key of ["sequences", "kv_tokens", "kv_blocks", "kv_reserved_per_sequence", "kv_memory_bytes"]) {
        assert.equal(answer[key], expected[key], key);
      }
      assert.match(await text(".reserved"), /Written.*Set aside.*windows, with the tokens of a batch in flight/s);
      const widths = await within(() =>
        [...document.querySelector("kv-capacity").shadowRoot.querySelectorAll(".track")].map((track) =>
          [...track.children].map((one) => one.getBoundingClientRect().width / track.getBoundingClientRect().width),
        ),
      );
      const written = expected.kv_bytes_per_sequence / expected.kv_reserved_per_sequence;
      for (const bar of widths) assert.ok(Math.abs(bar[0] - written) < 0.01, `${bar[0]} against ${written}`);
      await reader.click(".reserved details:last-of-type summary");
      await reads(() => text(".reserved details:last-of-type"), /KV heads 1 to 8 of 16.*KV heads 9 to 16 of 16/s);
      assert.match(await text(".count .small"), /to/);
      // Not one code stands where words should.
      assert.doesNotMatch(await text(".body"), /[a-z]_[a-z]+(?=[^`]*set aside)|undefined|NaN/);
    });

    it("sets an engine's options by their names, and refuses by field", async () => {
      await fresh();
      await open("engine");
      await within(() => {
        const root = document.querySelector("kv-capacity").shadowRoot;
        const select = root.querySelector(".engine select");
        select.value = "vllm";
        select.dispatchEvent(new Event("change"));
      });
      await plan((one) => one.engine === "vllm");
      const field = (label) =>
        within((label) => {
          const root = document.querySelector("kv-capacity").shadowRoot;
          return [...root.querySelectorAll(".engine label")].find((one) => one.textContent.startsWith(label)).htmlFor;
        }, label);
      const utilization = `#${await field("gpu_memory_utilization")}`;
      await typeInto(utilization, "0.5");
      await becomes(() => within(() => document.querySelector("kv-capacity").options), {
        gpu_memory_utilization: 0.5,
      });
      const half = ask({ model: "llama-3.1-8b", engine: "vllm", options: { gpu_memory_utilization: 0.5 } });
      await plan((one) => one.sequences === half.sequences);
      await typeInto(utilization, "1.5");
      await until("a refusal", () => text(`${utilization} ~ .problem`));
      const { invalid, value } = await reader.control(utilization);
      assert.deepEqual([invalid, value], ["true", "1.5"]);
      await typeInto(utilization, "");
      await until("no refusal", async () => (await text(`${utilization} ~ .problem`)) === "");
      assert.equal(await within(() => document.querySelector("kv-capacity").options), undefined);
      const asked = () =>
        within(() => {
          const { kv, gpus, tensor_parallel, options } = document.querySelector("kv-capacity").request;
          return JSON.stringify({ kv, gpus, tensor_parallel, options });
        });
      const put = async (label, value, expected) => {
        await typeInto(`#${await field(label)}`, value);
        await until(`${label} ${value}`, async () => (await asked()) === JSON.stringify(expected));
      };
      const stood = JSON.parse(await asked());
      await put("enforce_eager", "true", { ...stood, options: { enforce_eager: true } });
      await put("enforce_eager", "", stood);
      await put("Keys stored as", "fp8", { ...stood, kv: { k: "fp8", v: "bf16" } });
      await put("Values stored as", "fp8", { ...stood, kv: "fp8" });
      // So many GPUs as share the heads: the number of GPUs follows.
      await put("Tensor parallel", "16", { kv: "fp8", tensor_parallel: 16 });
      /** Opens the list of GPUs where it is closed; a browser tells of that later, and only then is it filled. */
      const holds = async (pattern) => {
        const ranks = ".reserved details:last-of-type";
        const opened = `${ranks}[open]`;
        const isOpen = await within(
          (opened) => document.querySelector("kv-capacity").shadowRoot.querySelector(opened) !== null,
          opened,
        );
        if (!isOpen) await reader.click(`${ranks} summary`);
        await reads(() => text(ranks), pattern);
      };
      await holds(/32 layers of full attention, KV head 1 of 8, kept 2 times/);
      await put("Tensor parallel", "", { kv: "fp8" });
      await put("Pipeline parallel", "2", { kv: "fp8" });
      await until("two stages", async () => (await reader.plan()).deployment.pipeline_parallel === 2);
      await holds(/16 layers of full attention, all 8 KV heads/);
      await within(() => {
        document.querySelector("kv-capacity").model = "deepseek-v2-lite";
      });
      await plan((one) => one.model.id === "deepseek-v2-lite");
      await holds(/14 layers of latent attention/);
      await put("Pipeline parallel", "", { kv: "fp8" });
      await put("Tensor parallel", "2", { kv: "fp8", tensor_parallel: 2 });
      await until("shared heads", async () => (await reader.plan()).deployment.tensor_parallel === 2);
      await holds(/27 layers of latent attention, the whole row, kept 2 times/);
      await fresh("/locked.html");
      await open("engine");
      assert.equal(
        await within(() =>
          [...document.querySelector("kv-capacity").shadowRoot.querySelectorAll(".engine :is(input, select)")].every(
            (one) => one.disabled,
          ),
        ),
        true,
      );
    });

    it("reads the logs of each engine and takes their deployments", async () => {
      await fresh();
      await open("log");
      const files = readdirSync(logs).filter((one) => one.endsWith(".log"));
      assert.ok(files.length >= 10);
      for (const file of files) {
        const written = readFileSync(join(logs, file), "utf8");
        const expected = JSON.parse(readFileSync(join(logs, file.replace(/log$/, "json")), "utf8"));
        await within(() => {
          const root = document.querySelector("kv-capacity").shadowRoot;
          for (const part of [".log-outcome", ".log .title"]) root.querySelector(part).replaceChildren();
        });
        await typeInto(".log textarea", written);
        await until(file, () => text(".log .title"));
        assert.match(await text(".log .title"), /figures? found/, file);
        const told = await within(() =>
          [...document.querySelector("kv-capacity").shadowRoot.querySelectorAll(".log-outcome > :not(details)")]
            .map((one) => one.textContent)
            .join("\n"),
        );
        assert.doesNotMatch(told, /undefined|NaN|[{}]|\b(log|seg|of)\.[a-z]/, file);
        const { engine, model } = await within(() => {
          const { engine, model } = document.querySelector("kv-capacity");
          return { engine, model };
        });
        assert.equal(engine, expected.engine, file);
        if (typeof expected.request?.model === "string") assert.equal(model, expected.request.model, file);
      }
    });

    it("puts back what stood before a log, and says where settings come from", async () => {
      await fresh();
      await open("log");
      const stood = await within(() => document.querySelector("kv-capacity").request);
      assert.equal(await text(".log .taken"), "");
      for (const file of ["vllm-0.6.4-llama-3.1-8b.log", "llama.cpp-b3802-gemma-2-27b.log"]) {
        await typeInto(".log textarea", readFileSync(join(logs, file), "utf8"));
        await plan((one) => one.engine === file.split("-")[0]);
      }
      await open("engine");
      await reader.click(".engine details summary");
      await reads(() => text(".engine .sources"), /n_ubatch.*llama/s);
      await reader.click(".log .taken button");
      await plan((one) => one.engine === "textbook");
      assert.deepEqual(await within(() => document.querySelector("kv-capacity").request), stood);
      assert.equal(await text(".log .taken"), "");
    });

    it("points out what a log contradicts, and asks for what it does not say", async () => {
      await fresh();
      await open("log");
      await typeInto(".log textarea", readFileSync(join(logs, "vllm-contradicts-itself.log"), "utf8"));
      await until("contradictions", () => text(".contradictions"));
      assert.match(await text(".log .missing"), /does not say/);
      await typeInto(".log textarea", "nothing of an engine in here\n");
      await reads(() => text(".log-outcome .problem"), /No line of these engines/);
    });

    it("copes with a log of 10 MB, and with 5 MB without a line break", async () => {
      await fresh();
      await open("log");
      await within(
        async (text) => {
          // As a file: the box holds the start of it alone.
          const transfer = new DataTransfer();
          transfer.items.add(new File([text.head.repeat(text.times), text.start], "server.log"));
          const target = document.querySelector("kv-capacity").shadowRoot.querySelector(".log .inside");
          target.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: transfer }));
        },
        { head: longLog(10_000), times: 1000, start: readFileSync(join(logs, "vllm-0.6.4-llama-3.1-8b.log"), "utf8") },
      );
      await reads(() => text(".log .title"), /vLLM/);
      assert.ok((await reader.control(".log textarea")).value.length < 300_000);
      await within(() => {
        const transfer = new DataTransfer();
        transfer.items.add(new File(["GPU KV cache size: ".repeat(250_000)], "hostile.log"));
        const target = document.querySelector("kv-capacity").shadowRoot.querySelector(".log .inside");
        target.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: transfer }));
      });
      await becomes(() => text(".log .title"), "", "nothing was found in it");
      // Pasted, its start is put into the box; a short one comes there by the browser's own hand.
      const paste = (written) =>
        within((written) => {
          const transfer = new DataTransfer();
          transfer.setData("text/plain", written);
          const box = document.querySelector("kv-capacity").shadowRoot.querySelector(".log textarea");
          const event = new Event("paste", { bubbles: true, cancelable: true });
          Object.defineProperty(event, "clipboardData", { value: transfer });
          box.dispatchEvent(event);
          return event.defaultPrevented;
        }, written);
      assert.equal(await paste("a line"), false);
      assert.equal(await paste(longLog(400_000)), true);
      await reads(() => text(".log .title"), /vLLM/);
      assert.match((await reader.control(".log textarea")).value, /4\d\d,\d{3} characters in all/);
      await reader.click(".log .buttons button");
      await until("an empty box", async () => (await reader.control(".log textarea")).value === "");
      assert.equal(await text(".log .title"), "");
      // A file that was taken away after it was chosen.
      await within(() => {
        File.prototype.text = () => Promise.reject(new DOMException("gone", "NotFoundError"));
      });
      await pick("log", "gone.log", "x");
      await reads(() => text(".log .field .problem"), /could not be read.*gone/);
    });

    it("finds a model by typing, by keyboard alone", async () => {
      await fresh();
      await reader.focus(".search");
      await page.press("Enter");
      await until("the search", () =>
        within(() => document.querySelector("kv-capacity").shadowRoot.activeElement?.role === "combobox"),
      );
      await page.type("qwen3 30b");
      const found = () =>
        within(() => {
          const root = document.querySelector("kv-capacity").shadowRoot;
          const input = root.querySelector("[role=combobox]");
          const active = root.getElementById(input.getAttribute("aria-activedescendant"));
          return {
            names: [...root.querySelectorAll("[role=option]")].map((one) => one.textContent),
            active: active?.textContent,
            selected: active?.getAttribute("aria-selected"),
            focus: root.activeElement?.role ?? root.activeElement?.id,
            shown: input.checkVisibility(),
          };
        });
      const typed = (text) =>
        until(`“${text}” in the box`, async () => (await reader.control("[role=combobox]")).value === text);
      await typed("qwen3 30b");
      const first = await passes(async () => {
        const all = await found();
        assert.ok(all.names.length > 0 && all.names.length < 10);
        assert.ok(
          all.names.every((one) => /qwen3/i.test(one) && /30b/i.test(one)),
          all.names.join(),
        );
        return all;
      });
      assert.deepEqual([first.active, first.selected, first.shown], [first.names[0], "true", true]);
      if (first.names.length > 1) {
        await page.press("ArrowDown");
        await becomes(async () => (await found()).active, first.names[1]);
        await page.press("ArrowUp");
        await becomes(async () => (await found()).active, first.names[0]);
      }
      await page.press("Enter");
      await plan((one) => one.model.name === first.names[0]);
      const closed = async () => {
        const { focus, shown } = await found();
        return [focus, shown];
      };
      await becomes(closed, ["model", false]);
      await reader.focus(".search");
      await page.press("Enter");
      await until("the search", async () => (await found()).shown);
      await page.type("no such model");
      await until("no match", async () => (await found()).names.length === 0);
      await typed("no such model");
      await reads(() => text(".finder .about"), /Bring it along/);
      await page.press("Escape");
      await becomes(closed, ["model", false]);
      assert.equal((await reader.plan()).model.name, first.names[0]);
    });

    it("finds a model by typing, and takes the one that is pointed at", async () => {
      const second = "[role=group]:last-child [role=option]:last-child";
      for (const width of [320, 768, 1280]) {
        await page.resize(width, 1000);
        await fresh();
        await reader.click(".search");
        await until("the search", () =>
          within(() => document.querySelector("kv-capacity").shadowRoot.activeElement?.role === "combobox"),
        );
        await page.type("gemma 27b");
        await until("nothing but what was typed for", () =>
          within(() => {
            const root = document.querySelector("kv-capacity").shadowRoot;
            const names = [...root.querySelectorAll("[role=option]")].map((one) => one.textContent);
            return names.length > 0 && names.every((one) => /gemma.*27b/i.test(one));
          }),
        );
        // Nothing lies over what is to be pointed at.
        const hidden = await within(() => {
          const root = document.querySelector("kv-capacity").shadowRoot;
          return [...root.querySelectorAll("[role=option]")]
            .filter((option) => {
              option.scrollIntoView({ block: "nearest" });
              const { left, top, width, height } = option.getBoundingClientRect();
              return root.elementFromPoint(left + width / 2, top + height / 2)?.closest("[role=option]") !== option;
            })
            .map((option) => option.textContent);
        });
        assert.deepEqual(hidden, [], `${width} px`);
        const name = await text(second);
        assert.match(name, /Gemma/);
        await reader.click(second);
        await plan((one) => one.model.name === name);
        await until("the search to close", async () => (await text(".finder")) === "");
      }
    });

    it("has its parts for an engine where others had brought the full kernel before it came", async () => {
      await fresh();
      await within(() => {
        Object.assign(document.querySelector("kv-capacity"), { engine: "vllm", gpu: "h100-sxm-80gb" });
      });
      await until("what the engine sets aside", async () => (await text(".reserved")) !== "");
      await within(() => {
        const late = document.createElement("kv-capacity");
        late.id = "late";
        Object.assign(late, { engine: "vllm", gpu: "h100-sxm-80gb" });
        document.querySelector("kv-capacity").after(late);
      });
      const reserved = () =>
        within(() => document.querySelector("#late").shadowRoot.querySelector(".reserved").textContent);
      const first = await within(
        () => document.querySelector("kv-capacity").shadowRoot.querySelector(".reserved").textContent,
      );
      await becomes(reserved, first);
      await within(() => document.querySelector("#late").remove());
    });

    it("opens the part for own models from the selector", async () => {
      await fresh();
      await within(() => {
        const select = document.querySelector("kv-capacity").shadowRoot.querySelector("#model");
        select.value = "+";
        select.dispatchEvent(new Event("change"));
      });
      await until("the part", () => text(".own textarea ~ .problem, .own .about"));
      assert.equal((await reader.control("#model")).value, "llama-3.1-8b");
    });

    it("says fixed part and slope where there are any, and nothing of them elsewhere", async () => {
      await fresh();
      assert.doesNotMatch(`${await text(".sentence")}${await text(".notes")}`, /fixed|windows/);
      await within(() => {
        document.querySelector("kv-capacity").model = "gpt-oss-20b";
      });
      await plan((one) => one.model.id === "gpt-oss-20b");
      assert.match(await text(".sequence .small"), /8,192 tokens, .* fixed/);
      assert.match(await text(".sentence"), /is fixed, and each token adds/);
      assert.match(await text(".notes"), /From 128 tokens on the windows are full/);
    });

    it("needs no more than its own folder under a strict policy, and works from disk", async () => {
      await fresh("/strict.html");
      await plan((one) => one.engine === "vllm");
      assert.deepEqual(await within(() => window.problems), []);
      // The page in one file has both scripts inside.
      for (const file of ["embed.html", "kv-capacity.html"]) {
        await reader.open(pathToFileURL(join(process.env.KV_SITE ?? dist, file)).href);
        await open("engine");
        assert.match(await text(".engine .inside"), /Engine/);
      }
    });

    it("comes as modules too", async () => {
      await fresh("/module.html");
      await plan((one) => one.engine === "vllm");
      const asked = async () => {
        const entries = await within(() => performance.getEntriesByType("resource").map((one) => one.name));
        return entries.map((one) => new URL(one).pathname).filter((path) => path.includes("more"));
      };
      await becomes(asked, ["/kv-capacity-more.mjs", "/kv-capacity-more.wasm"]);
      const expected = ask({ model: "llama-3-8b", engine: "vllm", gpu: "h100-sxm-80gb", context: 8192 }).sequences;
      await until("the table", () =>
        within(
          (expected) =>
            [...document.querySelector("kv-capacity-table").shadowRoot.querySelectorAll("tbody td")].at(-1)
              ?.textContent === expected,
          String(expected),
        ),
      );
    });

    it("says so where the second script does not come, and goes on without it", async () => {
      await fresh("/alone/");
      await reader.click(".panel.log > summary");
      await until("the reason", async () => /kv-capacity-more\.js/.test(await text(".panel.log .inside")));
      await within(() => {
        document.querySelector("kv-capacity").engine = "vllm";
      });
      await until("the reason", async () => /kv-capacity-more\.js/.test(await text(".problem")));
      await within(() => {
        document.querySelector("kv-capacity").engine = "textbook";
      });
      await until("the answer", async () => (await text(".problem")) === "");
      assert.equal((await reader.plan()).sequences, 52);
    });

    it("fits in 320 pixels with every part open", async () => {
      await page.resize(320, 800);
      await fresh();
      await within(() => {
        const kv = document.querySelector("kv-capacity");
        kv.request = { model: "gemma-3-27b", engine: "llama.cpp", gpu: "h100-sxm-80gb", gpus: 2, context: 32768 };
      });
      await plan((one) => one.engine === "llama.cpp");
      await within(
        (log) => {
          const root = document.querySelector("kv-capacity").shadowRoot;
          for (const one of root.querySelectorAll("details")) one.open = true;
          const box = root.querySelector(".log textarea");
          box.value = log;
          box.dispatchEvent(new Event("input"));
        },
        readFileSync(join(logs, "vllm-0.6.4-llama-3.1-8b.log"), "utf8"),
      );
      await until("the log", () => text(".log-outcome"));
      await until("what is in the parts", () =>
        within(() => {
          const root = document.querySelector("kv-capacity").shadowRoot;
          // Those of another engine are drawn anew, and closed.
          for (const one of root.querySelectorAll("details")) one.open = true;
          const parts = [...root.querySelectorAll(".reserved details, [part=arithmetic]")];
          return parts.length > 1 && parts.every((one) => one.open && one.querySelector("summary + * > *"));
        }),
      );
      const { wide, page: width } = await within(() => ({
        wide: document.documentElement.scrollWidth,
        page: innerWidth,
      }));
      assert.ok(wide <= width, `${wide} > ${width}`);
      await page.resize(1280, 1000);
    });
  });
}
