// The system's packages: which tools are needed for what, and how a Debian gets those that are missing.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { Failure, runQuietly } from "./terminal.mjs";

const headerFolders = ["/usr/include", "/usr/local/include", "/opt/homebrew/include", "/opt/local/include"];
const command = (name) => () => which(name) !== undefined;
const header = (name) => () => headerFolders.some((folder) => existsSync(join(folder, name)));
const file = (name) => () => existsSync(name);
const either =
  (...tests) =>
  () =>
    tests.some((test) => test());

/** Each need by the set-up stage that first has it: the Debian package and the test that it is there. */
const needs = {
  build: [
    ["cmake", command("cmake")],
    ["ninja-build", command("ninja")],
    ["python3", command("python3")],
    ["rapidjson-dev", header("rapidjson/reader.h")],
  ],
  check: [
    ["g++", command("c++")],
    ["doctest-dev", header("doctest/doctest.h")],
    ["clang-format-19", command("clang-format-19")],
    ["clang-tidy-19", command("clang-tidy-19")],
    ["clang-19", command("clang++-19")],
    // What counts coverage and drives a fuzzer; clang only recommends it.
    ["libclang-rt-19-dev", either(file("/usr/share/doc/libclang-rt-19-dev"), () => !isDebian())],
  ],
  test: [
    ["ccache", command("ccache")],
    ["chromium", either(command("chromium"), command("google-chrome"))],
    ["firefox-esr", either(command("firefox-esr"), command("firefox"))],
    ["webkit2gtk-driver", either(command("WebKitWebDriver"), file("/usr/bin/safaridriver"))],
    ["xvfb", command("xvfb-run")],
    ["xauth", command("xauth")],
    ["fonts-dejavu-core", either(file("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"), () => !isDebian())],
  ],
};
export const stages = Object.keys(needs);

export function which(name) {
  const folder = (process.env.PATH ?? "").split(delimiter).find((entry) => entry && existsSync(join(entry, name)));
  return folder && join(folder, name);
}

/** The fields of /etc/os-release; empty where there is none. */
export function osRelease() {
  if (!existsSync("/etc/os-release")) return {};
  const lines = readFileSync("/etc/os-release", "utf8").matchAll(/^(\w+)="?(.*?)"?$/gm);
  return Object.fromEntries([...lines].map(([, key, value]) => [key, value]));
}

export function isDebian() {
  return osRelease().ID === "debian" && which("apt-get") !== undefined;
}

/** The packages that `stage`, or a stage before it, needs and this machine lacks. */
export function missingPackages(stage) {
  const wanted = stages.slice(0, stages.indexOf(stage) + 1).flatMap((name) => needs[name]);
  return wanted.filter(([, present]) => !present()).map(([name]) => name);
}

function rootPrefix(packages) {
  if (process.getuid() === 0) return [];
  if (which("sudo") && spawnSync("sudo", ["-n", "true"]).status === 0) return ["sudo", "-n"];
  throw new Failure(`Some packages are missing. As root, run: apt-get install ${packages.join(" ")}`);
}

/** Brings the package lists up to date. One archive out of reach is no failure: the install will tell. */
export async function updateLists(packages) {
  const [program, ...args] = [...rootPrefix(packages), "apt-get", "update", "-q"];
  await runQuietly("Updating the package lists", "Check the network and the apt sources.", program, args).catch(
    () => {},
  );
}

/** Installs Debian packages, or says which ones to install where that is not Debian. */
export async function installPackages(packages) {
  if (packages.length === 0) return;
  const list = packages.join(" ");
  if (!isDebian()) {
    throw new Failure(`Missing here (by the names of Debian's packages): ${list}. Install them and try again.`);
  }
  const prefix = rootPrefix(packages);
  await updateLists(packages);
  const [program, ...args] = [
    ...prefix,
    "apt-get",
    "install",
    "-y",
    "-q",
    "--no-install-recommends",
    "-oDPkg::Lock::Timeout=600",
    ...packages,
  ];
  await runQuietly(`Installing ${list}`, `Run "apt-get install ${list}" to see why.`, program, args, {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
}
