import { execFile } from "node:child_process";
import { access, copyFile, chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { moduleText } from "./go-module.ts";
import { isTest, targetName, type Pin } from "./pins.ts";

const run = promisify(execFile);

/** kube-apiserver alone takes 3 minutes on two cores from nothing. */
const BUILD_MS_MAX = 1_200_000;
const DOWNLOAD_MS_MAX = 300_000;
/** Less than this is not worth a start: what is in Go's own cache is linked in 10 to 20 s. */
const BUILD_MS_MIN = 20_000;

export type Built = { readonly path: string } | { readonly missing: string };

/**
 * One program of a pin, from the cache or built into it. A program that cannot be had is an answer with its reason, since
 * a suite without it is left out, not failed: no Go, no registry, another checksum, a build that fails, no time. What was
 * compiled of a build that is stopped stays in Go's own cache, and the next one goes on from there.
 */
export async function buildTarget(pin: Pin, target: string, task: BuildLimits): Promise<Built> {
  const { cache, withinMs } = task;
  const name = targetName(pin, target);
  const place = `${pin.as ?? lastPart(pin.module)}-${pin.version}`;
  const path = join(cache, "bin", place, name);
  if (await exists(path)) return { path };
  const untilMs = performance.now() + withinMs;
  if (withinMs < BUILD_MS_MIN) return { missing: `${name} ${pin.version}: not built, ${NO_TIME}` };
  try {
    const source = await download(pin, Math.min(DOWNLOAD_MS_MAX, withinMs));
    const folder = join(cache, "build", place);
    await writeModule(pin, source, folder);
    process.stderr.write(`conformance: building ${name} ${pin.version}\n`);
    const startedAtMs = performance.now();
    await goBuild(pin, {
      target,
      folder,
      path,
      timeoutMs: Math.max(1, Math.min(BUILD_MS_MAX, untilMs - startedAtMs)),
    });
    const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(0);
    process.stderr.write(`conformance: built ${name} ${pin.version} in ${seconds} s\n`);
    return { path };
  } catch (error) {
    if (performance.now() >= untilMs) return { missing: `${name} ${pin.version}: build stopped, ${NO_TIME}` };
    return { missing: `${name} ${pin.version}: ${reasonOf(error)}` };
  }
}

interface BuildLimits {
  readonly cache: string;
  readonly withinMs: number;
}

const NO_TIME = "the time for builds is over; the next run goes on from here";

function lastPart(module: string): string {
  const parts = module.split("/").filter((part) => !/^v\d+$/.test(part));
  return parts[parts.length - 1] ?? module;
}

interface Downloaded {
  readonly Dir?: string;
  readonly Sum?: string;
  readonly Error?: string;
}

async function download(pin: Pin, timeoutMs: number): Promise<string> {
  const { stdout } = await go(["mod", "download", "-json", `${pin.module}@${pin.version}`], {
    timeout: timeoutMs,
  });
  const { Dir: directory, Sum: sum } = JSON.parse(stdout) as Downloaded;
  if (directory === undefined) throw new Error("the module registry answered without a source");
  if (sum !== pin.sum)
    throw new Error(`the registry's source has the checksum ${sum ?? "?"}, not ${pin.sum}`);
  return directory;
}

async function writeModule(pin: Pin, source: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const original = await readFile(join(source, "go.mod"), "utf8");
  await writeFile(join(folder, "go.mod"), moduleText(pin, original));
  await copyFile(join(source, "go.sum"), join(folder, "go.sum"));
  await chmod(join(folder, "go.sum"), 0o644);
  await writeFile(join(folder, "peers.go"), "package peers\n");
  await go(["mod", "edit", `-require=${pin.module}@${pin.version}`], { cwd: folder, timeout: 10_000 });
}

interface BuildTask {
  readonly target: string;
  readonly folder: string;
  readonly path: string;
  readonly timeoutMs: number;
}

async function goBuild(pin: Pin, { target, folder, path, timeoutMs }: BuildTask): Promise<void> {
  const versions = pin.versionIn.map((variable) => `-X ${variable}=${pin.version}`);
  if (pin.module === "k8s.io/kubernetes") {
    const [major = "", minor = ""] = pin.version.slice(1).split(".");
    // Feature gates ask these two, and take an empty one for version 0.
    versions.push(`-X k8s.io/component-base/version.gitMajor=${major}`);
    versions.push(`-X k8s.io/component-base/version.gitMinor=${minor}`);
  }
  const source = target === "" ? pin.module : `${pin.module}/${target}`;
  const half = `${path}.part`;
  const verb = isTest(pin, target) ? ["test", "-c"] : ["build"];
  await go([...verb, "-ldflags", ["-s -w", ...versions].join(" "), "-o", half, source], {
    cwd: folder,
    timeout: timeoutMs,
  });
  // A build that was interrupted leaves no program that looks whole.
  await rename(half, path);
}

function go(args: readonly string[], { cwd, timeout }: { readonly cwd?: string; readonly timeout: number }) {
  // Node.js wants whole milliseconds.
  const options = { timeout: Math.ceil(timeout), ...(cwd === undefined ? {} : { cwd }) };
  const env = { ...process.env, GOFLAGS: "-mod=mod -p=2 -buildvcs=false", CGO_ENABLED: "0" };
  return run("nice", ["-n", "10", "go", ...args], { ...options, env, maxBuffer: 64 * 2 ** 20 });
}

function reasonOf(error: unknown): string {
  const { stderr, stdout, message } = error as { stderr?: string; stdout?: string; message: string };
  const said = `${stdout ?? ""}\n${stderr ?? ""}`;
  if (/'go': No such file/.test(said)) return "there is no Go on this machine";
  if (/403 Forbidden|404 Not Found/.test(said)) return "the module registry does not have it";
  if (/dial tcp|no such host|i\/o timeout/.test(said)) return "the module registry cannot be reached";
  const lines = said.split("\n").filter((line) => line !== "" && !line.startsWith("go: downloading"));
  return (lines[lines.length - 1] ?? message).slice(0, 200);
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
