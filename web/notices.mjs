// The notices of other people's work that is compiled into the kernels, as their licences ask. The holders' lines are read
// from the very files that are compiled, so that they are those of the versions in use.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "../cpp/toolchain/setup.mjs";
import { Failure } from "../cpp/toolchain/terminal.mjs";

function textOf(file) {
  if (!existsSync(file)) throw new Failure(`${file} is not there, and a notice that has to be given is read from it.`);
  return readFileSync(file, "utf8");
}

/** The line of a file that says who holds the copyright. */
function holder(file) {
  const [, line] = textOf(file).match(/^[ */]*(Copyright .*?)\s*$/m) ?? [];
  if (!line) throw new Failure(`${file} names no holder of a copyright.`);
  return line;
}

/** What is said of other people's work; `emscripten` is the compiler's folder, `headers` that of RapidJSON's. */
export function notices(emscripten, headers) {
  const [, mit] = readFileSync(join(projectFolder, "LICENSE"), "utf8").match(/^(Permission is hereby[\s\S]*)$/m);
  const parts = [
    {
      name: "RapidJSON",
      what: "reads JSON; MIT licence",
      notice: `${holder(join(headers, "rapidjson/reader.h"))}\n\n${mit}`,
    },
    {
      name: "Emscripten",
      what: "start-up code, memory allocation and the binding to JavaScript; MIT licence",
      notice: `${holder(join(emscripten, "system/include/emscripten/bind.h"))}\n\n${mit}`,
    },
    {
      name: "musl",
      what: "the C library; MIT licence",
      notice: textOf(join(emscripten, "system/lib/libc/musl/COPYRIGHT")),
    },
    {
      name: "libc++, libc++abi and compiler-rt, of the LLVM Project",
      what: "the C++ library and integer arithmetic",
      notice:
        "Apache License v2.0 with LLVM Exceptions, https://llvm.org/LICENSE.txt. By those exceptions, what a compiler\n" +
        "embeds of them into a program may be passed on without further conditions.",
    },
  ];
  const sections = parts.map(({ name, what, notice }) => `${name}: ${what}\n${"-".repeat(72)}\n\n${notice.trim()}\n`);
  return `KV Capacity's kernels hold parts of these works.\n\n${sections.join("\n\n")}`;
}
