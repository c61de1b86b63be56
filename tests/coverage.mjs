// npm run coverage: which lines the tests run, of cpp/ by clang's own counting and of web/src by Chromium's. Fails where
// a share is too small, or where a line is excused that is run or gone. The whole report is in build/coverage/.
//
//   node tests/coverage.mjs [cpp | web] …     only the parts named
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder, setup } from "../cpp/toolchain/setup.mjs";
import { Failure, runMain } from "../cpp/toolchain/terminal.mjs";
import { measureCpp } from "./coverage/cpp.mjs";
import { measureWeb } from "./coverage/web.mjs";

const PARTS = { cpp: measureCpp, web: measureWeb };

await runMain(async () => {
  const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(PARTS);
  const unknown = names.find((name) => !(name in PARTS));
  if (unknown) throw new Failure(`There is no part "${unknown}". There are: ${Object.keys(PARTS).join(", ")}`);
  await setup("test");
  const folder = join(projectFolder, "build/coverage");
  mkdirSync(folder, { recursive: true });
  let passed = 0;
  let failed = 0;
  for (const name of names) {
    const { report, checks } = await PARTS[name]();
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(report, null, 1));
    passed += checks.filter(Boolean).length;
    failed += checks.filter((check) => !check).length;
  }
  console.log(`${passed} passed, ${failed} failed`);
  return failed ? 1 : 0;
});
