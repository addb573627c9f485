import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import ts from "typescript";
import { describe, expect, test } from "vitest";

/**
 * The architecture, as a test. The tables below are the ones of ARCHITECTURE.md: which room may import
 * which, which files may touch the world, how long a function may be.
 */

const ROOT = resolve(import.meta.dirname, "..");
const SRC = join(ROOT, "src");

/** What a room may import, besides itself and packages. */
const IMPORTS: Readonly<Record<string, readonly string[]>> = {
  base: [],
  kube: ["base"],
  csi: ["base"],
  driver: ["base", "csi"],
  cel: ["base"],
  apiserver: ["base", "kube", "cel"],
  volumes: ["base", "kube"],
  operations: ["base", "volumes"],
  "attach-detach": ["base", "kube", "volumes", "operations"],
  attacher: ["base", "kube", "volumes", "csi"],
  node: ["base", "kube", "volumes", "operations", "csi"],
  companions: ["base", "kube", "volumes", "csi"],
  views: ["base", "kube", "volumes"],
  processes: [
    "base",
    "kube",
    "csi",
    "driver",
    "cel",
    "apiserver",
    "volumes",
    "operations",
    "attach-detach",
    "attacher",
    "node",
    "companions",
    "views",
  ],
  cli: ["base", "kube", "views", "processes", "sim"],
  sim: [
    "base",
    "kube",
    "csi",
    "driver",
    "cel",
    "apiserver",
    "volumes",
    "operations",
    "attach-detach",
    "attacher",
    "node",
    "companions",
    "views",
    "processes",
  ],
};

/** What of the command line is `mooring sim`: the only files outside tests that import the simulator. */
const SIM_COMMAND: readonly string[] = ["cli/commands/sim-run.ts", "cli/output/sim.ts"];

/** Packages that only one place may know, so that replacing one is a change in one file. */
const PACKAGE_HOMES: Readonly<Record<string, readonly string[]>> = {
  undici: ["kube/transport/http"],
  pino: ["base/pino-log.ts"],
  "prom-client": ["base/prom-metrics.ts"],
  commander: ["cli/"],
  lmdb: ["apiserver/store/lmdb-environment.ts"],
  "@peculiar/x509": ["apiserver/certificates.ts"],
  "@grpc/grpc-js": ["csi/grpc-channel.ts", "csi/server.ts"],
  "@bufbuild/protobuf": ["csi/", "attacher/", "companions/", "driver/", "node/"],
  yaml: [
    "kube/config/",
    "apiserver/schema/yaml-body.ts",
    "cli/output/printer.ts",
    "processes/up/manifest.ts",
  ],
};

/** Node modules and globals that reach the world. Everything else gets it handed in. */
const WORLD_MODULES =
  /^node:(fs|fs\/promises|child_process|net|tls|http|https|http2|dns|os|dgram|worker_threads|timers|timers\/promises)$/;
const WORLD_GLOBALS = new Set(["setTimeout", "setInterval", "setImmediate", "fetch", "process"]);
const WORLD_MEMBERS = new Set(["Date.now", "Math.random", "performance.now", "crypto.randomUUID"]);

/** The adapters: the only files where the world may be touched, and why. */
const ADAPTERS: Readonly<Record<string, string>> = {
  "base/system-clock.ts": "the operating system's time",
  "base/pino-log.ts": "stderr",
  "base/programs.ts": "programs of this machine",
  "kube/transport/http": "sockets to an API server",
  "kube/config/environment-proxy.ts": "isIP and BlockList of node:net, which open nothing",
  "csi/server.ts": "the socket of a CSI driver",
  "csi/socket-file.ts": "the file of that socket",
  "driver/linux": "the files, loop devices and mounts of this machine, through its tools",
  "node/registration/linux-sockets.ts": "inotify on the folder of registration sockets",
  "node/linux": "the files, mounts, devices and programs of this machine",
  "apiserver/server": "the socket of the API server",
  "apiserver/store/lmdb-disk": "the files of the durable store",
  "sim/scheduler.ts": "one turn of the event loop, to drain promises between two simulated timers",
  "sim/seeds.ts": "MOORING_SEED in the environment",
  "sim/threads.ts": "threads that run seeds",
  "sim/search-thread.ts": "such a thread",
  "sim/block-coverage.ts": "source maps of this program",
  "processes/": "composition roots",
  "cli/": "arguments, exit code and output of the process",
};

/** Functions above 70 lines: a ratchet that only goes down. Names are `file: function`. */
const LONG_FUNCTIONS: readonly string[] = [];
const FUNCTION_LINES_MAX = 70;

/** Above this a file must say why at its top; the list only gets shorter. */
const FILE_LINES_MAX = 600;

/** Helpers of tests that stand beside the code they prepare; left out of the build. */
const STAGE = /\.testing\.ts$/;

/** Written by a tool; a test beside the room compares it with what the tool writes today. */
const GENERATED = /\/csi\/gen\//;

interface Source {
  /** Relative to src/, with slashes. */
  readonly path: string;
  readonly room: string;
  readonly file: ts.SourceFile;
}

const sources = readSources();
/** Tests and what only tests import may use the simulator and the world. */
const production = sources.filter(({ path }) => !isTestOnly(path));

describe("architecture", () => {
  test("all of src/ was read: an empty scan proves nothing", () => {
    expect(sources.length).toBeGreaterThan(100);
    expect(new Set(sources.map(({ room }) => room))).toEqual(new Set(Object.keys(IMPORTS)));
  });

  test("imports only point the way the rooms allow", () => {
    const wrong = production.flatMap((source) =>
      importsOf(source)
        .filter(
          ({ room }) => room !== undefined && room !== source.room && !IMPORTS[source.room]?.includes(room),
        )
        .map(({ text }) => `${source.path} imports ${text}`),
    );

    expect(wrong).toEqual([]);
  });

  test("tests see everything, but what ships never imports a test or its stage, and only `mooring sim` the simulator", () => {
    const wrong = production
      .filter(({ room, path }) => room !== "sim" && !SIM_COMMAND.includes(path))
      .flatMap((source) =>
        importsOf(source)
          .filter(({ target }) => target !== undefined && (isTestOnly(target) || target.startsWith("sim/")))
          .map(({ text }) => `${source.path} imports ${text}`),
      );

    expect(wrong).toEqual([]);
  });

  test("the simulator is loaded when it runs, and without tests", () => {
    const graph = new Map(
      production.map((source) => [
        source.path,
        valueImportsOf(source).flatMap(({ target, lazy }) => (target === undefined || lazy ? [] : [target])),
      ]),
    );
    const loaded = new Set(["cli/main.ts"]);
    for (const path of loaded) for (const next of graph.get(path) ?? []) loaded.add(next);
    const tests = production
      .filter(({ room }) => room === "sim")
      .flatMap((source) =>
        importsOf(source)
          .filter(({ text, target = "" }) => text.startsWith("vitest") || isTestOnly(target))
          .map(({ text }) => `${source.path} imports ${text}`),
      );

    expect(loaded.size).toBeGreaterThan(20);
    expect([...loaded].filter((path) => path.startsWith("sim/") || SIM_COMMAND.includes(path))).toEqual([]);
    expect(tests).toEqual([]);
  });

  test("no file imports itself by way of others", () => {
    const graph = new Map(
      production.map(
        (source) => [source.path, valueImportsOf(source).flatMap(({ target }) => target ?? [])] as const,
      ),
    );

    expect(cycleIn(graph)).toBeUndefined();
  });

  test("each package has one home", () => {
    const wrong = production.flatMap((source) =>
      importsOf(source)
        .filter(({ text }) => PACKAGE_HOMES[text]?.every((home) => !source.path.startsWith(home)) ?? false)
        .map(({ text }) => `${source.path} imports ${text}`),
    );

    expect(wrong).toEqual([]);
  });

  test("the world is an argument: only adapters touch time, chance, files, sockets and processes", () => {
    const wrong = production
      .filter(({ path }) => !isAdapter(path))
      .flatMap((source) => worldUsesOf(source).map((use) => `${source.path}: ${use}`));

    expect(wrong).toEqual([]);
  });

  test("every adapter exists: a stale exception is a hole", () => {
    const unused = Object.keys(ADAPTERS).filter(
      (prefix) => !production.some(({ path }) => path.startsWith(prefix)),
    );

    expect(unused).toEqual([]);
  });

  test(`functions take at most ${FUNCTION_LINES_MAX} lines, except those on the list`, () => {
    const long = production.flatMap((source) => longFunctionsOf(source)).sort();

    expect(long).toEqual([...LONG_FUNCTIONS].sort());
  });

  test(`files take at most ${FILE_LINES_MAX} lines`, () => {
    const long = sources.filter(({ file }) => lineCount(file) > FILE_LINES_MAX).map(({ path }) => path);

    expect(long).toEqual([]);
  });

  test("folders are at most two deep below src/, commands of the command line excepted", () => {
    const deep = sources.filter(({ path }) => !path.startsWith("cli/") && path.split("/").length > 3);

    expect(deep.map(({ path }) => path)).toEqual([]);
  });
});

describe("the checks themselves", () => {
  test("a world use is found in each of its forms", () => {
    const text = `
      import { readFileSync } from "node:fs";
      const a = Date.now(); const b = new Date(); const c = new Date(5);
      setTimeout(() => undefined, 1); Math.random(); void fetch("x"); globalThis.setTimeout; process.env;
    `;
    const file = ts.createSourceFile("x.ts", text, ts.ScriptTarget.Latest, true);

    const uses = worldUsesOf({ path: "kube/x.ts", room: "kube", file });

    expect(uses.sort()).toEqual([
      "Date.now",
      "Math.random",
      "fetch",
      "new Date()",
      "node:fs",
      "process",
      "setTimeout",
      "setTimeout",
    ]);
  });

  test("a name that only looks like the world is not", () => {
    const text = `
      const spec = { setTimeout: 1, process: "controller" }; spec.process; clock.now(); random.float();
      function f({ process }: { process: string }) { return process.length; }
    `;
    const file = ts.createSourceFile("x.ts", text, ts.ScriptTarget.Latest, true);

    expect(worldUsesOf({ path: "kube/x.ts", room: "kube", file })).toEqual([]);
  });

  test("a cycle is found and told as a path", () => {
    const graph = new Map([
      ["a", ["b"]],
      ["b", ["c"]],
      ["c", ["b"]],
    ]);

    expect(cycleIn(graph)).toEqual(["b", "c", "b"]);
    expect(cycleIn(new Map([["a", ["b"]]]))).toBeUndefined();
  });

  test("a long function is found by its name", () => {
    const body = "  work();\n".repeat(FUNCTION_LINES_MAX);
    const file = ts.createSourceFile(
      "x.ts",
      `export function far() {\n${body}}\n`,
      ts.ScriptTarget.Latest,
      true,
    );

    expect(longFunctionsOf({ path: "kube/x.ts", room: "kube", file })).toEqual(["kube/x.ts: far"]);
  });
});

function readSources(): Source[] {
  return readdirSync(SRC, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((absolute) => !GENERATED.test(absolute))
    .map((absolute) => {
      const path = relative(SRC, absolute).replaceAll("\\", "/");
      const text = readFileSync(absolute, "utf8");
      const file = ts.createSourceFile(absolute, text, ts.ScriptTarget.Latest, true);
      return { path, room: path.split("/")[0] ?? "", file };
    });
}

function isTestOnly(path: string): boolean {
  const name = basename(path);
  return (
    name.endsWith(".test.ts") || name.endsWith(".bench.ts") || path.includes("/fixtures/") || STAGE.test(name)
  );
}

function isAdapter(path: string): boolean {
  return Object.keys(ADAPTERS).some((prefix) => path.startsWith(prefix));
}

interface Import {
  readonly text: string;
  /** Gone after compilation: it may close a cycle and name a world it cannot touch. */
  readonly typeOnly: boolean;
  /** `import()`: not before it is reached. */
  readonly lazy: boolean;
  /** Of a relative import: the file in src/ and its room. */
  readonly target?: string;
  readonly room?: string;
}

function importsOf({ file }: Source): Import[] {
  const found: Import[] = [];
  const visit = (node: ts.Node): void => {
    const specifier =
      ts.isImportDeclaration(node) || ts.isExportDeclaration(node)
        ? node.moduleSpecifier
        : ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
          ? node.arguments[0]
          : undefined;
    if (specifier !== undefined && ts.isStringLiteral(specifier))
      found.push(
        toImport(file, specifier.text, { typeOnly: isTypeOnly(node), lazy: ts.isCallExpression(node) }),
      );
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function valueImportsOf(source: Source): Import[] {
  return importsOf(source).filter(({ typeOnly }) => !typeOnly);
}

function isTypeOnly(node: ts.Node): boolean {
  if (ts.isExportDeclaration(node)) return node.isTypeOnly;
  if (!ts.isImportDeclaration(node)) return false;
  const { importClause } = node;
  if (importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  const named = importClause?.namedBindings;
  const onlyTypes =
    named !== undefined && ts.isNamedImports(named) && named.elements.every((name) => name.isTypeOnly);
  return onlyTypes && importClause?.name === undefined;
}

function toImport(file: ts.SourceFile, text: string, how: Pick<Import, "typeOnly" | "lazy">): Import {
  if (!text.startsWith(".")) return { text, ...how };
  const target = relative(SRC, resolve(dirname(file.fileName), text)).replaceAll("\\", "/");
  return { text, ...how, target, room: target.split("/")[0] ?? "" };
}

/** The first cycle found, as a path; depth first, each file looked at once. */
function cycleIn(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>();
  function visit(path: string, trail: readonly string[]): string[] | undefined {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (done.has(path)) return undefined;
    done.add(path);
    for (const next of graph.get(path) ?? []) {
      const cycle = visit(next, [...trail, path]);
      if (cycle !== undefined) return cycle;
    }
    return undefined;
  }
  for (const path of graph.keys()) {
    const cycle = visit(path, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

function worldUsesOf(source: Source): string[] {
  const uses = valueImportsOf(source)
    .map(({ text }) => text)
    .filter((text) => WORLD_MODULES.test(text));
  const visit = (node: ts.Node): void => {
    const use = worldUse(node);
    if (use !== undefined) uses.push(use);
    ts.forEachChild(node, visit);
  };
  visit(source.file);
  return uses;
}

function worldUse(node: ts.Node): string | undefined {
  if (
    ts.isNewExpression(node) &&
    node.expression.getText() === "Date" &&
    (node.arguments?.length ?? 0) === 0
  ) {
    return "new Date()";
  }
  if (ts.isPropertyAccessExpression(node)) {
    const text = node.getText();
    if (WORLD_MEMBERS.has(text)) return text;
    const viaGlobal = node.expression.getText() === "globalThis" && WORLD_GLOBALS.has(node.name.text);
    return viaGlobal ? node.name.text : undefined;
  }
  return ts.isIdentifier(node) && WORLD_GLOBALS.has(node.text) && isUseOfGlobal(node) ? node.text : undefined;
}

/** Not a property's name, a declaration's name or a parameter: a value read from the global scope. */
function isUseOfGlobal(node: ts.Identifier): boolean {
  const { parent } = node;
  if (isDeclaredAround(node)) return false;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isCallExpression(parent) || ts.isNewExpression(parent)) return true;
  return ts.isElementAccessExpression(parent) && parent.expression === node;
}

/** A function around it has a variable or parameter of this name: the simulator's processes are no `process`. */
function isDeclaredAround(node: ts.Identifier): boolean {
  const declares = (inside: ts.Node): boolean =>
    ((ts.isVariableDeclaration(inside) || ts.isParameter(inside) || ts.isBindingElement(inside)) &&
      ts.isIdentifier(inside.name) &&
      inside.name.text === node.text) ||
    (ts.forEachChild(inside, declares) ?? false);
  for (let around: ts.Node = node; !ts.isSourceFile(around); around = around.parent)
    if (isFunction(around) && declares(around)) return true;
  return false;
}

function longFunctionsOf({ path, file }: Source): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (isFunction(node) && ownLinesOf(file, node) > FUNCTION_LINES_MAX)
      found.push(`${path}: ${nameOf(node)}`);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** Without the functions inside it: a factory is as long as its parts are many, and each part is counted alone. */
function ownLinesOf(file: ts.SourceFile, outer: ts.Node): number {
  let own = linesOf(file, outer);
  const visit = (node: ts.Node): void => {
    if (isFunction(node)) own -= linesOf(file, node) - 1;
    else ts.forEachChild(node, visit);
  };
  ts.forEachChild(outer, visit);
  return own;
}

function isFunction(node: ts.Node): node is ts.FunctionLikeDeclaration {
  return (
    ts.isFunctionDeclaration(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isArrowFunction(node) ||
    ts.isFunctionExpression(node)
  );
}

function linesOf(file: ts.SourceFile, node: ts.Node): number {
  const line = (position: number) => file.getLineAndCharacterOfPosition(position).line;
  return line(node.getEnd()) - line(node.getStart()) + 1;
}

function lineCount(file: ts.SourceFile): number {
  return file.getLineStarts().length;
}

function nameOf(node: ts.FunctionLikeDeclaration): string {
  if (node.name !== undefined) return node.name.getText();
  const { parent } = node;
  return ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)
    ? parent.name.getText()
    : "(anonymous)";
}
