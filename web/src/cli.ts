/** `kv-capacity plan`: JSON requests on standard input, JSON answers on standard output, from the page's kernel. */
import "./kernel-whole.js";
import { stdin, stdout, stderr } from "node:process";
import { loadKernel, VERSION } from "./kernel.js";

const HELP = `Usage: kv-capacity plan [--jsonl]

Reads a JSON request from standard input and prints the JSON answer: how many
conversations fit on these GPUs, what each takes, and how that was computed.

  echo '{"model": "llama-3-8b", "context": 8192}' | kv-capacity plan

  --jsonl     one request per line in, one answer per line out; a line that is
              refused is answered with its error, and the stream goes on
  --help      this text
  --version   the version

Exit status: 0 answered, 2 bad request (with --jsonl: at least one), 1 internal fault.
`;

const ANSWERED = 0;
const FAULT = 1;
const BAD = 2;

/** The kernel refuses longer requests; no more than one byte past its limit is ever kept. */
const KEPT = (16 << 20) + 1;
const NEWLINE = 10;

/** Chunks of a request, without what is past the limit. */
class Held {
  #chunks: Uint8Array[] = [];
  #length = 0;

  add(chunk: Uint8Array): void {
    const part = chunk.subarray(0, KEPT - this.#length);
    if (part.length === 0) return;
    this.#chunks.push(part);
    this.#length += part.length;
  }

  take(): string {
    const text = new TextDecoder().decode(Buffer.concat(this.#chunks));
    this.#chunks = [];
    this.#length = 0;
    return text;
  }
}

function statusOf(answer: string): number {
  const { error } = JSON.parse(answer) as { error?: { code: string } };
  if (!error) return ANSWERED;
  return error.code === "internal" ? FAULT : BAD;
}

/** Prints a line; waits where the reader is slower. */
function print(line: string): Promise<void> | undefined {
  if (stdout.write(`${line}\n`)) return undefined;
  return new Promise((resolve) => stdout.once("drain", resolve));
}

/** A fault outweighs a bad request, which outweighs an answer. */
const worse = (a: number, b: number): number => (a === FAULT || b === FAULT ? FAULT : Math.max(a, b));

async function plan(lines: boolean): Promise<number> {
  const kernel = await loadKernel();
  const held = new Held();
  let status = ANSWERED;
  const answer = async () => {
    const request = held.take();
    if (lines && request.trim() === "") return;
    const text = kernel.planText(request);
    status = worse(status, statusOf(text));
    await print(text);
  };
  for await (const chunk of stdin as AsyncIterable<Buffer>) {
    let from = 0;
    if (lines) {
      for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
        held.add(chunk.subarray(from, end));
        from = end + 1;
        await answer();
      }
    }
    held.add(chunk.subarray(from));
  }
  await answer();
  return status;
}

async function main(args: string[]): Promise<number> {
  const [command, ...flags] = args;
  if (args.includes("--help") || args.includes("-h")) {
    stdout.write(HELP);
    return ANSWERED;
  }
  if (args.includes("--version")) {
    stdout.write(`${VERSION}\n`);
    return ANSWERED;
  }
  if (command !== "plan" || flags.some((flag) => flag !== "--jsonl")) {
    stderr.write(HELP);
    return BAD;
  }
  return plan(flags.includes("--jsonl"));
}

// A reader that stops listening, such as `head`, is no fault.
stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? ANSWERED : FAULT);
});

main(process.argv.slice(2)).then(
  (status) => {
    process.exitCode = status;
  },
  (error) => {
    stderr.write(`kv-capacity: ${error instanceof Error ? error.message : error}\n`);
    process.exitCode = FAULT;
  },
);
