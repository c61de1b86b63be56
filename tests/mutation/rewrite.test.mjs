// What the mutation testing of the arithmetic rests on: every place is found, the rewritten text compiles and does as
// the source does, and each mutant does as the change says.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { rewrite } from "./rewrite.mjs";
import { findSites, syntaxTrees } from "./sites.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const COMPILER = "clang++-19";

/** A source with something of each kind, and the places where nothing may be changed. */
const SOURCE = `// A multiplication sign, ×, takes two bytes.
#include <algorithm>
#include <cstdio>
namespace kvcap {
using u64 = unsigned long;
constexpr u64 kStep = 7 - 4;
static_assert(kStep + 1 == 4);
struct Bytes {
  u64 count = 0;
  friend constexpr bool operator==(Bytes, Bytes) = default;
};
struct OptionSpec {
  u64 fallback;
  bool offered;
};
constexpr OptionSpec kOption{40, true};
template <class T>
constexpr T ceil_div(T a, T b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}
u64 saturating(u64 a, u64 b) { return a * b; }
bool asked(u64 at, u64& times) {
  ++times;
  return at > 5;
}
u64 answer(u64 n, int which) {
  u64 times = 0;
  const u64 hundred = 99 + 1;
  u64 room[1 + 3] = {n, 2 * n, 5 * n};
  switch (which) {
    case 0: return ceil_div<u64>(n, 4) * hundred + ceil_div(n, u64{2});
    case 1: return (asked(n, times) && !asked(n, times)) + 10 * times;
    case 2: return std::min<u64>(n, kStep) << 2;
    case 3: return Bytes{n} == Bytes{9} ? 20 : 30;
    case 4: return kOption.offered ? kOption.fallback : n;
    case 5: room[0] -= 2; n = room[0]--; return 7 * (n + 50) + room[0] + 3 * room[1] + room[2];
    case 6: return n <= 9;
    case 7: return n <= 10;
    case 8: if (asked(n, times)) return saturating(n, 5); return times;
    default: return Bytes{}.count;
  }
}
}
`;

/** The source with one change written into it by hand. */
function changed(source, { begin, end, parts, kind, operator, types }, change) {
  const [left, right] = parts.map((part) => source.slice(part.begin, part.end));
  const becomes = {
    constant: () => `(${change})`,
    truth: () => change,
    not: () => `static_cast<bool>(${left})`,
    condition: () => `!(${left})`,
    unary: () => (source.startsWith(operator, begin) ? change + left : left + change),
    binary: () => `(${left} ${change} ${right})`,
    lazy: () => `(${left} ${change} ${right})`,
    product: () => `(${left} + ${right})`,
    call: () =>
      change === "rounded down" ? `((${left}) / (${right}))` : `std::${change}<${types}>(${left}, ${right})`,
  };
  return source.slice(0, begin) + becomes[kind]() + source.slice(end);
}

function build(folder, name, text, ...flags) {
  const source = join(folder, `${name}.cpp`);
  const program = join(folder, name);
  writeFileSync(source, text, "latin1");
  const made = spawnSync(COMPILER, ["-std=c++23", "-w", ...flags, source, "-o", program], { encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
  return (args, env = {}) =>
    spawnSync(program, args, { encoding: "utf8", env: { ...process.env, ...env } }).stdout.split("\n");
}

test("a rewritten source does as the source does, and each mutant as if its change were written there", async () => {
  const folder = mkdtempSync(join(tmpdir(), "kv-capacity-mutation-"));
  try {
    const { latin, sites } = await sitesIn(SOURCE, folder);
    const begin = latin.indexOf("namespace kvcap");
    const head = latin.slice(0, begin);
    const mutants = sites.flatMap((site) =>
      site.changes.map((change, index) => ({ id: site.id + index, site, change })),
    );

    const kinds = new Set(sites.map(({ kind }) => kind));
    assert.deepEqual([...kinds].sort(), [
      "binary",
      "call",
      "condition",
      "constant",
      "lazy",
      "not",
      "product",
      "table",
      "truth",
      "unary",
    ]);

    // By hand: each mutant is a copy of the namespace under a name of its own.
    const copies = [
      { id: 0, text: latin },
      ...mutants.map(({ id, site, change }) => ({ id, text: changed(latin, site, change) })),
    ];
    const print = (id) =>
      `for (int n : {1, 2, 5, 6, 8, 9, 10, 11}) for (int which = 0; which < WHICH; ++which) std::printf("%lu ", ${id}::answer(n, which)); std::puts("");`;
    const byHand = build(
      folder,
      "by-hand",
      `${head}constexpr int WHICH = 10;\n${copies.map(({ id, text }) => text.slice(begin).replace("kvcap", `copy${id}`)).join("\n")}
int main() { ${copies.map(({ id }) => print(`copy${id}`)).join("\n")} }`,
    )([]);
    const rewritten = build(
      folder,
      "rewritten",
      `${rewrite(latin, sites).text}constexpr int WHICH = 10;\nint main() { ${print("kvcap")} }`,
      ...["-include", join(here, "mutants.hpp")],
    );
    for (const { id, site, change } of [{ id: 0 }, ...mutants]) {
      const what = site ? `${latin.slice(site.begin, site.end)}: ${change}` : "no mutant";
      assert.equal(rewritten([], { KVCAP_MUTANT: String(id) })[0], byHand[id], what);
      if (id !== 0) assert.notEqual(byHand[id], byHand[0], `the source does not show it: ${what}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

async function sitesIn(text, folder) {
  const path = join(folder, "source.cpp");
  writeFileSync(path, text);
  const latin = Buffer.from(text).toString("latin1");
  const found = findSites(await syntaxTrees(COMPILER, ["-std=c++23", path], folder), new Map([[path, latin]]));
  const sites = [...found.get(path).values()].sort((a, b) => a.begin - b.begin);
  let id = 1;
  for (const site of sites) {
    site.id = id;
    id += site.changes.length;
  }
  return { latin, sites };
}
