import { execFile } from "node:child_process";
import { access, constants, readdir } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { buildCommand, type Built } from "./build.ts";
import { commandName, OTHER_PINS, type Pin } from "./pins.ts";

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
}

export function createBinaries({ kubernetes, cache, folders }: BinariesOptions): Binaries {
  const pins = [kubernetes, ...OTHER_PINS];
  let buildMs = 0;

  async function find(name: string): Promise<Built> {
    for (const folder of folders) {
      const path = join(folder, name);
      if (await isExecutable(path)) return { path };
    }
    for (const pin of pins) {
      const command = pin.commands.find((candidate) => commandName(pin, candidate) === name);
      if (command !== undefined) return buildCommand(pin, command, cache);
    }
    for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
      const path = join(folder, name);
      if (await isExecutable(path)) return { path };
    }
    return {
      missing: `${name}: not built by this command; install it, or name a folder that has it with --bin`,
    };
  }

  return {
    async need(...names) {
      const found: Record<string, string> = {};
      for (const name of names) {
        const startedAtMs = performance.now();
        const built = await find(name);
        buildMs += performance.now() - startedAtMs;
        if ("missing" in built) throw new Unavailable(built.missing);
        found[name] = built.path;
      }
      return found;
    },
    get buildMs() {
      return buildMs;
    },
    async version() {
      for (const folder of folders) {
        const path = join(folder, "kube-apiserver");
        if (await isExecutable(path)) return versionOf(path);
      }
      return kubernetes.version;
    },
  };
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
        (await readdir(folder, { withFileTypes: true }))
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
