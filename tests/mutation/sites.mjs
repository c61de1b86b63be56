// Where a C++ source can be changed: operators, comparisons, constants and conditions with their ranges in the text, as
// clang's syntax tree gives them.
import { spawn } from "node:child_process";

/** What stands in for an operator; a comparison has two. The name is that of the function in mutants.hpp. */
const BINARY = {
  "+": ["add", "-"],
  "-": ["sub", "+"],
  "*": ["mul", "/"],
  "/": ["div", "*"],
  "%": ["rem", "/"],
  "<<": ["shl", ">>"],
  ">>": ["shr", "<<"],
  "&": ["band", "|"],
  "|": ["bor", "&"],
  "^": ["bxor", "&"],
  "==": ["eq", "!="],
  "!=": ["ne", "=="],
  "<": ["lt", "<=", ">="],
  "<=": ["le", "<", ">"],
  ">": ["gt", ">=", "<="],
  ">=": ["ge", ">", "<"],
};
const ASSIGNMENT = {
  "+=": ["add_to", "-="],
  "-=": ["sub_from", "+="],
  "*=": ["mul_by", "/="],
  "/=": ["div_by", "*="],
  "%=": ["rem_by", "/="],
  "<<=": ["shl_by", ">>="],
  ">>=": ["shr_by", "<<="],
  "&=": ["and_by", "|="],
  "|=": ["or_by", "&="],
  "^=": ["xor_by", "&="],
};
const COMPARISON = ["==", "!=", "<", "<=", ">", ">="];

/** Nodes below which a value has to be known when the program is compiled, or that the compiler made up. */
const CONSTANT = new Set([
  "ConstantExpr",
  "EnumConstantDecl",
  "StaticAssertDecl",
  "TemplateArgument",
  "NonTypeTemplateParmDecl",
  "TemplateTypeParmDecl",
  "CXXDefaultArgExpr",
  "CXXDefaultInitExpr",
  "ConceptSpecializationExpr",
  "RequiresExpr",
  "UnaryExprOrTypeTraitExpr",
]);

/** Tables of constants that a mutant may change: they are made when the program starts, not when it is compiled. */
const TABLE = /\b(OptionSpec|Format|EngineRules|Measured)\b/;

/** The documents that clang prints, one for each namespace of the project. */
export function syntaxTrees(compiler, args, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(
      compiler,
      [...args, "-w", "-fsyntax-only", "-Xclang", "-ast-dump=json", "-Xclang", "-ast-dump-filter=kvcap"],
      { cwd, stdio: ["ignore", "pipe", "pipe"] },
    );
    const chunks = [];
    let errors = "";
    child.stdout.on("data", (chunk) => chunks.push(chunk));
    child.stderr.on("data", (chunk) => (errors += chunk));
    child.on("error", reject);
    child.on("close", (status) => {
      if (status !== 0) return reject(new Error(errors || `${compiler} ended with status ${status}`));
      const text = Buffer.concat(chunks).toString("utf8");
      resolve(
        text
          .replace(/^Dumping .*:$/gm, "")
          .split(/(?<=^\})$/m)
          .filter((part) => part.trim())
          .map((part) => JSON.parse(part)),
      );
    });
  });
}

/**
 * The places that can be changed in the files of `sources` (a map of path to text), by path. A site is
 * {kind, begin, end, parts, changes}: the range in the text, the ranges of its operands, and what it becomes in each of
 * its mutants.
 */
export function findSites(documents, sources) {
  const found = new Map([...sources.keys()].map((path) => [path, new Map()]));
  let file = "";
  let source;
  const enter = (path) => {
    file = path;
    source = sources.get(path);
  };

  /** Locations leave out the file where it is that of the location before, so all have to be seen in order. */
  const locate = (place) => {
    if (!place) return undefined;
    if (place.spellingLoc || place.expansionLoc) {
      locate(place.spellingLoc);
      locate(place.expansionLoc);
      return undefined;
    }
    if (place.offset === undefined) return undefined;
    if (place.file) enter(place.file);
    return { file, begin: place.offset, end: place.offset + place.tokLen };
  };
  const measure = (node) => {
    locate(node.loc);
    const begin = locate(node.range?.begin);
    const end = locate(node.range?.end);
    if (begin && end && begin.file === end.file) node.at = { file: begin.file, begin: begin.begin, end: end.end };
    for (const one of node.inner ?? []) if (one && typeof one === "object") measure(one);
  };

  const text = ({ begin, end }) => source.slice(begin, end);
  const add = (node, kind, name, parts, changes, more = {}) => {
    const { begin, end } = node.at;
    const key = `${begin} ${end} ${kind === "condition" ? 0 : 1}`;
    const sites = found.get(node.at.file);
    if (!sites.has(key)) sites.set(key, { kind, name, begin, end, parts, changes, early, ...more });
  };
  /** The operator between two operands, or undefined where the text has something else there. */
  const between = (left, right) => {
    if (!left || !right || left.end > right.begin) return undefined;
    return source
      .slice(left.end, right.begin)
      .replace(/\/\/.*$/gm, "")
      .trim();
  };
  const bare = (node) => {
    let inner = node;
    while (["ImplicitCastExpr", "ExprWithCleanups", "ParenExpr", "MaterializeTemporaryExpr"].includes(inner?.kind))
      inner = inner.inner?.[0];
    return inner;
  };

  const visitors = {
    BinaryOperator(node) {
      const [left, right] = node.inner.map((one) => one.at);
      const operator = node.opcode;
      if (between(left, right) !== operator) return;
      if (operator === "&&" || operator === "||") {
        add(node, "lazy", operator, [left, right], [operator === "&&" ? "||" : "&&"], { operator });
      } else if (BINARY[operator]) {
        const [name, ...others] = BINARY[operator];
        add(node, "binary", name, [left, right], others, { operator });
      }
    },
    CompoundAssignOperator(node) {
      const [left, right] = node.inner.map((one) => one.at);
      if (between(left, right) !== node.opcode) return;
      const [name, other] = ASSIGNMENT[node.opcode];
      add(node, "binary", name, [left, right], [other], { operator: node.opcode });
    },
    CXXOperatorCallExpr(node) {
      const [left, right] = node.inner
        .slice(1)
        .map((one) => one.at)
        .filter(Boolean)
        .sort((a, b) => a.begin - b.begin);
      const operator = between(left, right);
      if (node.inner.length !== 3 || !COMPARISON.includes(operator)) return;
      const [name, ...others] = BINARY[operator];
      add({ at: { ...node.at, begin: left.begin, end: right.end } }, "binary", name, [left, right], others, {
        operator,
      });
    },
    UnaryOperator(node) {
      const operand = node.inner[0].at;
      if (!operand) return;
      const operator = node.opcode;
      const written = node.isPostfix
        ? source.slice(operand.end, node.at.end).trim()
        : source.slice(node.at.begin, operand.begin).trim();
      if (written !== operator) return;
      if (operator === "!") add(node, "not", "not", [operand], ["without !"]);
      if (operator === "-") add(node, "unary", "minus", [operand], ["+"], { operator });
      if (operator === "++" || operator === "--") {
        const name = `${node.isPostfix ? "after" : "before"}_${operator === "++" ? "up" : "down"}`;
        add(node, "unary", name, [operand], [operator === "++" ? "--" : "++"], { operator });
      }
    },
    IntegerLiteral(node, parent) {
      const written = text(node.at);
      if (!/^[0-9][0-9a-fA-FxXbBuUlLzZ']*$/.test(written)) return;
      if (parent?.castKind === "NullToPointer") return;
      const value = Number(node.value);
      const type = parent?.castKind === "IntegralCast" && (parent.type.desugaredQualType ?? parent.type.qualType);
      const plain = type && /^(const )?(unsigned |signed )?(char|short|int|long|long long|__int128)$/.test(type);
      const changes = value === 1 ? ["2", "0"] : [String(BigInt(node.value) + 1n)];
      add(node, "constant", value === 1 ? "near_one" : "next", [], changes, {
        // In the core kernel a Wide is another type.
        type: plain ? type.replace("unsigned __int128", "::kvcap::Wide") : "",
      });
    },
    CXXBoolLiteralExpr(node) {
      if (!/^(true|false)$/.test(text(node.at))) return;
      add(node, "truth", "", [], [text(node.at) === "true" ? "false" : "true"]);
    },
    DeclRefExpr(node) {
      const { name, kind, type } = node.referencedDecl ?? {};
      if (kind !== "VarDecl" || !/^k[A-Z]/.test(name) || !text(node.at).endsWith(name)) return;
      const plain = type.desugaredQualType ?? type.qualType;
      if (!/^const (unsigned |signed )?(short|int|long|long long|__int128)$/.test(plain)) return;
      add(node, "constant", "next", [], [`${name} + 1`], { type: "" });
    },
    CallExpr(node) {
      const callee = bare(node.inner[0]);
      const args = node.inner.slice(1).map((one) => one.at);
      if (!callee?.at || args.length !== 2 || args.some((one) => !one)) return;
      const written = /^(?:std::|kvcap::)?(ceil_div|min|max|saturating)(<.*>)?$/.exec(text(callee.at));
      if (!written) return;
      const name = written[1];
      const changes = { ceil_div: "rounded down", min: "max", max: "min", saturating: "+" };
      const kind = name === "saturating" ? "product" : "call";
      add(node, kind, name, args, [changes[name]], { callee: callee.at, types: written[2]?.slice(1, -1) ?? "" });
    },
    ConditionalOperator(node) {
      condition(node.inner[0]);
    },
    IfStmt(node) {
      if (!node.hasVar && !node.hasInit && !node.isConstexpr) condition(node.inner[0]);
    },
  };
  /** A condition that is no operator itself: a call, a variable. Turned round it is another mutant. */
  function condition(node) {
    const inner = bare(node);
    if (!node?.at || !found.has(node.at.file)) return;
    const kinds = ["CallExpr", "CXXMemberCallExpr", "DeclRefExpr", "MemberExpr"];
    if (kinds.includes(inner?.kind) && inner.at && inner.at.end > inner.at.begin)
      add({ at: node.at }, "condition", "", [node.at], ["not"]);
  }

  /** True inside the variables that a compiler would rather make than leave to the program: constants. */
  let early = false;
  const visit = (node, parent) => {
    if (!node?.kind || node.isImplicit || node.explicitlyDefaulted || node.immediate || CONSTANT.has(node.kind)) return;
    if (node.kind === "VarDecl" && node.constexpr) {
      if (!TABLE.test(node.type.qualType) || !node.at || !found.has(node.at.file)) return;
      source = sources.get(node.at.file);
      const words = /\bconstexpr\b/.exec(text(node.at));
      if (!words) return;
      const begin = node.at.begin + words.index;
      add({ at: { ...node.at, begin, end: begin + "constexpr".length } }, "table", "", [], []);
    }
    if (node.at && found.has(node.at.file)) {
      source = sources.get(node.at.file);
      visitors[node.kind]?.(node, parent);
    }
    const outside = early;
    if (node.kind === "VarDecl") early = /^const\b/.test(node.type.qualType);
    if (node.kind === "LambdaExpr") early = false;
    for (const one of node.inner ?? []) visit(one, node);
    early = outside;
  };
  for (const document of documents) {
    measure(document);
    visit(document);
  }
  return found;
}
