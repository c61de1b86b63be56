// npm run oracle: holds the kernel against the arithmetic of oracle.mjs over random requests, byte for byte.
//
//   node tests/oracle/compare.mjs [--count 100000] [--seed 1] [--engine vllm]
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { setup } from "../../cpp/toolchain/setup.mjs";
import { Failure, runMain } from "../../cpp/toolchain/terminal.mjs";
import { buildOnce, wholeOption } from "../command.mjs";
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
  await runMain(async () => {
    const { values } = parseArgs({
      options: {
        count: { type: "string", default: "100000" },
        seed: { type: "string", default: "1" },
        engine: { type: "string" },
      },
    });
    const count = wholeOption("count", values.count, 1);
    const seed = wholeOption("seed", values.seed, 0);
    if (values.engine && !ENGINES.includes(values.engine))
      throw new Failure(`There is no engine "${values.engine}". There are: ${ENGINES.join(", ")}`);
    await setup();
    await buildOnce();
    const { outcomes, disagreements } = await compare({
      count,
      seed,
      engines: values.engine ? [values.engine] : ENGINES,
    });
    for (const [outcome, times] of Object.entries(outcomes).sort())
      console.log(`${String(times).padStart(8)}  ${outcome}`);
    for (const { number, request, differs } of disagreements) {
      console.log(`\nrequest ${number}: ${JSON.stringify(request)}\n  oracle ${differs.join("\n  oracle ")}`);
    }
    if (disagreements.length > 0) {
      console.log("\nThey disagree.");
      return 1;
    }
    const answered = Object.entries(outcomes).reduce(
      (sum, [outcome, n]) => sum + (/ answered$/.test(outcome) ? n : 0),
      0,
    );
    // To refuse alike proves little.
    if (answered * 2 <= count) throw new Failure(`Only ${answered} of ${count} requests were answered.`);
    console.log(`\nKernel and oracle agree on ${count} requests, of which ${answered} were answered.`);
    return 0;
  });
}
