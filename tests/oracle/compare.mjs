// npm run oracle: holds the kernel against the arithmetic of oracle.mjs over random requests, byte for byte.
//
//   node tests/oracle/compare.mjs [--count 100000] [--seed 1] [--engine vllm]
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { oracle } from "./oracle.mjs";
import { ENGINES, randomRequest, randomness } from "./requests.mjs";

const kernelFile = fileURLToPath(new URL("../../web/dist/kv-capacity.mjs", import.meta.url));

/**
 * Asks both the same `count` questions. Gives how many were answered and refused by engine and kind of refusal, and the
 * first disagreements.
 */
export async function compare({ count, seed, engines = ENGINES, most = 5 }) {
  const { loadFullKernel } = await import(pathToFileURL(kernelFile).href);
  const { instance } = await loadFullKernel();
  const random = randomness(seed);
  const outcomes = {};
  const disagreements = [];
  for (let i = 0; i < count; i++) {
    const request = randomRequest(random, engines);
    const expected = oracle(request);
    const answer = JSON.parse(instance.plan(JSON.stringify(request)));
    const outcome = `${request.engine} ${expected.refused ?? "answered"}`;
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    const differs = expected.refused
      ? answer.error?.code === expected.refused
        ? []
        : [`refused: ${expected.refused}, but ${JSON.stringify(answer.error ?? "answered")}`]
      : answer.error
        ? [`answered, but refused: ${JSON.stringify(answer.error)}`]
        : Object.entries(expected)
            .filter(([figure, value]) => (value === null ? answer[figure] !== null : answer[figure] !== Number(value)))
            .map(([figure, value]) => `${figure}: ${value}, but ${answer[figure]}`);
    if (differs.length > 0 && disagreements.push({ number: i, request, differs }) >= most) break;
  }
  return { outcomes, disagreements };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      count: { type: "string", default: "100000" },
      seed: { type: "string", default: "1" },
      engine: { type: "string" },
    },
  });
  const engines = values.engine ? [values.engine] : ENGINES;
  const { outcomes, disagreements } = await compare({
    count: Number(values.count),
    seed: Number(values.seed),
    engines,
  });
  for (const [outcome, times] of Object.entries(outcomes).sort())
    console.log(`${String(times).padStart(8)}  ${outcome}`);
  for (const { number, request, differs } of disagreements) {
    console.log(`\nrequest ${number}: ${JSON.stringify(request)}\n  oracle ${differs.join("\n  oracle ")}`);
  }
  console.log(disagreements.length ? "\nThey disagree." : `\nKernel and oracle agree on ${values.count} requests.`);
  process.exitCode = disagreements.length ? 1 : 0;
}
