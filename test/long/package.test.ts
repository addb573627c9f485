// What `npm pack` makes, installed into an empty folder and run with Node.js alone: a user's first minute, without a
// checkout. MOORING_NODES names further Node.js binaries to try, separated by colons.
import { spawn, spawnSync, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { afterAll, describe, expect, test } from "vitest";
import { createKubectl, kubectlIsHere } from "../e2e/kubectl.ts";
import { scratch } from "../e2e/mooring.ts";

const ROOT = resolve(import.meta.dirname, "../..");

/** Measured: 0.7 MB and 2.5 MB. Twice as much is something that does not belong there, such as source maps. */
const PACKED_BYTES_MAX = 1_400_000;
const UNPACKED_BYTES_MAX = 5_000_000;
/** Measured: 0.2 s and 0.8 s alone, twice that beside a build. A person is promised 3 s; CI gets three times as much. */
const VERSION_MS_MAX = 3_000;
const UP_MS_MAX = 9_000;

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

const place = scratch();
afterAll(place.remove);
const home = join(place.path, "empty");
const installed = join(home, "node_modules/mooring");
const tell = (line: string) => process.stdout.write(`${line}\n`);

const packed = pack();
if (install()) everything();
else {
  tell("left out: the package, installed: npm has neither its cache nor a registry here");
  test.skip("the package, installed");
}

describe("the package", () => {
  const paths = packed.files.map(({ path }) => path);

  test("holds what runs, its licence and its first page, and is small", () => {
    tell(`package: ${packed.size} bytes packed, ${packed.unpackedSize} unpacked, ${paths.length} files`);
    const wanted =
      /^(bin\/mooring|dist\/commit|dist\/src\/.*\.js|examples\/.*|package\.json|LICENSE|README\.md)$/;

    expect(paths.filter((path) => !wanted.test(path))).toEqual([]);
    expect(paths.filter((path) => /\.(test|testing|bench)\.js$/.test(path))).toEqual([]);
    expect(packed.size).toBeLessThan(PACKED_BYTES_MAX);
    expect(packed.unpackedSize).toBeLessThan(UNPACKED_BYTES_MAX);
  });

  test("holds nothing whose source is gone", () => {
    const outputs = paths.filter((path) => path.endsWith(".js"));
    const sourceOf = (path: string) => join(ROOT, path.replace(/^dist\/(.*)\.js$/, "$1.ts"));

    expect(outputs.length).toBeGreaterThan(300);
    expect(outputs.filter((path) => !existsSync(sourceOf(path)))).toEqual([]);
  });
});

function everything(): void {
  test("every file that one of its files imports is there", () => {
    const files = packed.files.map(({ path }) => path).filter((path) => path.endsWith(".js"));
    const missing = files.flatMap((path) => missingImports(join(installed, path)));

    expect(missing).toEqual([]);
  });

  test("npx finds the command, in the folder it was installed into", () => {
    const { stdout } = run("npx", ["--no-install", "mooring", "version"], home);

    expect(stdout).toMatch(/^mooring \d+\.\d+\.\d+ /);
  });

  const others = (process.env["MOORING_NODES"] ?? "").split(delimiter).filter((path) => path !== "");
  for (const node of [process.execPath, ...others]) onNode(node);
}

function onNode(node: string): void {
  const version = run(node, ["--version"], place.path).stdout.trim();
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env["PATH"] ?? ""}` };
  const command = join(home, "node_modules/.bin/mooring");

  describe(`on Node.js ${version}`, () => {
    test("it says its version, and builds nothing", () => {
      const before = filesIn(installed);
      const times = [1, 2, 3].map(() => {
        const startedAt = performance.now();
        const { stdout } = run(command, ["version", "-o", "json"], home, env);
        expect(JSON.parse(stdout)).toMatchObject({ node: version.slice(1) });
        return performance.now() - startedAt;
      });

      tell(`mooring version: ${Math.round(Math.min(...times))} ms on Node.js ${version}`);
      expect(Math.min(...times)).toBeLessThan(VERSION_MS_MAX);
      expect(filesIn(installed)).toEqual(before);
    });

    test("it runs a cluster that kubectl can talk to, and stops when told", async () => {
      const data = join(place.path, version, "data");
      mkdirSync(data, { recursive: true, mode: 0o700 });
      const startedAt = performance.now();
      const args = ["up", "--data-dir", data, "--listen", "127.0.0.1:0"];
      const up = spawn(command, args, { cwd: home, env, stdio: ["ignore", "pipe", "inherit"] });
      await untilSaid(up, "Press Ctrl-C");
      const tookMs = performance.now() - startedAt;
      tell(`mooring up: ready after ${Math.round(tookMs)} ms on Node.js ${version}`);

      if (kubectlIsHere()) {
        const kubeconfig = join(data, "admin.kubeconfig");
        const kubectl = createKubectl({ home: join(place.path, version), kubeconfig });
        expect(await kubectl.ok("get", "namespaces", "-o", "name")).toContain("namespace/kube-system\n");
      }
      up.kill("SIGTERM");
      await once(up, "exit");

      expect([up.exitCode, up.signalCode]).toEqual([0, null]);
      expect(tookMs).toBeLessThan(UP_MS_MAX);
    });
  });
}

/** It goes on listening: a reader that goes away is another story. */
function untilSaid(child: ChildProcessByStdio<null, Readable, null>, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes(words)) resolve();
    });
    child.on("exit", () => reject(new Error(`it ended without saying ${words}:\n${said}`)));
  });
}

function pack(): Packed {
  const { stdout } = run("npm", ["pack", "--json", "--pack-destination", place.path], ROOT);
  // What prepack prints comes first.
  const [first] = JSON.parse(stdout.slice(stdout.indexOf("[\n"))) as [Packed];
  return first;
}

/** False where it needs a network that is not there; anything else that fails is a fault. */
function install(): boolean {
  mkdirSync(home);
  writeFileSync(join(home, "package.json"), "{}");
  const args = ["install", "--prefer-offline", "--no-audit", "--no-fund", join(place.path, packed.filename)];
  const { status, stdout, stderr } = spawnSync("npm", args, { cwd: home, encoding: "utf8" });
  if (status !== 0 && /ENOTCACHED|EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ETIMEDOUT/.test(stderr)) return false;
  if (status !== 0) throw new Error(`npm install exited with ${status}:\n${stdout}${stderr}`);
  return true;
}

function run(
  command: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): { readonly stdout: string } {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, env, encoding: "utf8" });
  if (status !== 0)
    throw new Error(`${command} ${args.join(" ")} exited with ${status}:\n${stdout}${stderr}`);
  return { stdout };
}

/** Relative imports, static and lazy; packages are npm's business. */
function missingImports(path: string): string[] {
  const text = readFileSync(path, "utf8");
  const targets = [...text.matchAll(/(?:\bfrom|\bimport|\bimport\()\s*"(\.[^"]+)"/g)];
  return targets
    .map(([, target = ""]) => join(dirname(path), target))
    .filter((target) => !existsSync(target))
    .map((target) => `${path} imports ${target}`);
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((path) => `${path} ${statSync(join(folder, path)).mtimeMs}`)
    .sort();
}
