import { execFile } from "node:child_process";
import { access, constants, readdir } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { buildTarget, type Built } from "./build.ts";
import { OTHER_PINS, targetName, targetsOf, type Pin } from "./pins.ts";

const run = promisify(execFile);

/**
 * Where each real program is. One that was put into `--bin DIR` comes before the pinned one; what has no pin is looked
 * for on the machine: containerd and runc, which distributions have, `csi-attacher` and `csi-node-driver-registrar`, of
 * which the module registry has no release.
 */
export interface Binaries {
  /** The programs' paths by name; throws Unavailable if one of them cannot be had. */
  need(...names: readonly string[]): Promise<Readonly<Record<string, string>>>;
  /** What the results are to be attributed to: the pinned Kubernetes, or that of a kube-apiserver from `--bin`. */
  version(): Promise<string>;
  /** Spent on builds so far, which is not the suite's time. */
  readonly buildMs: number;
}

/** A suite that met this was not run: it is neither passed nor failed. */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
}

export interface BinariesOptions {
  readonly kubernetes: Pin;
  readonly cache: string;
  /** Folders of programs that somebody else built. */
  readonly folders: readonly string[];
  /** How long builds may still take; a program that is not there by then is missing. */
  readonly buildMsLeft: () => number;
}

/** Programs that somebody else built are looked for here too, so that they need not be named in every run. */
export function extraFolder(cache: string): string {
  return join(cache, "extra");
}

/** Where a program is, what it can be built from, or neither. */
type Found = Built | { readonly pin: Pin; readonly target: string };

export function createBinaries(options: BinariesOptions): Binaries {
  const { kubernetes, cache } = options;
  const folders = [...options.folders, extraFolder(cache)];
  let buildMs = 0;

  async function locate(name: string): Promise<Found> {
    const given = await inFolders(name, folders);
    if (given !== undefined) return given;
    for (const pin of [kubernetes, ...OTHER_PINS]) {
      const target = targetsOf(pin).find((candidate) => targetName(pin, candidate) === name);
      if (target !== undefined) return { pin, target };
    }
    const missing = `${name}: not built by this command; put it into ${extraFolder(cache)}, or name a folder with --bin`;
    return (await inFolders(name, (process.env["PATH"] ?? "").split(delimiter))) ?? { missing };
  }

  async function build(found: Found): Promise<string> {
    const startedAtMs = performance.now();
    const built =
      "pin" in found
        ? await buildTarget(found.pin, found.target, { cache, withinMs: options.buildMsLeft() })
        : found;
    buildMs += performance.now() - startedAtMs;
    if ("missing" in built) throw new Unavailable(built.missing);
    return built.path;
  }

  return {
    async need(...names) {
      // Minutes of building would be in vain if another one cannot be had at all.
      const found = await Promise.all(names.map(async (name) => [name, await locate(name)] as const));
      for (const [, place] of found) if ("missing" in place) throw new Unavailable(place.missing);
      const paths: Record<string, string> = {};
      for (const [name, place] of found) paths[name] = await build(place);
      return paths;
    },
    get buildMs() {
      return buildMs;
    },
    async version() {
      const given = await inFolders("kube-apiserver", folders);
      return given === undefined ? kubernetes.version : versionOf(given.path);
    },
  };
}

async function inFolders(
  name: string,
  folders: readonly string[],
): Promise<{ readonly path: string } | undefined> {
  for (const folder of folders) {
    const path = join(folder, name);
    if (await isExecutable(path)) return { path };
  }
  return undefined;
}

async function versionOf(path: string): Promise<string> {
  // Some write it to stderr, and some have no such flag.
  const { stdout, stderr } = await run(path, ["--version"], { timeout: 10_000 }).catch(() => ({
    stdout: "",
    stderr: "",
  }));
  return /v\d+\.\d+\.\d+\S*/.exec(`${stdout} ${stderr}`)?.[0] ?? "of unknown version";
}

/** The programs of `--bin` folders with their versions, since no pin says which they are. */
export async function givenPrograms(folders: readonly string[]): Promise<string[]> {
  const given = await Promise.all(
    folders.map(async (folder) =>
      Promise.all(
        (await readdir(folder, { withFileTypes: true }).catch(() => []))
          .filter((entry) => entry.isFile())
          .map(async ({ name }) => `${name} ${await versionOf(join(folder, name))}`),
      ),
    ),
  );
  return given.flat();
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
