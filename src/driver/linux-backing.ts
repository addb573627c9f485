import { stat } from "node:fs/promises";
import { goneIdentity } from "./host.ts";
import type { Tools } from "./linux-exec.ts";
import { codeOf, failing } from "./linux-failing.ts";

/**
 * Which file is behind a loop device. The name that sysfs has for it is no answer: a device that was attached in a
 * container is named by that container's paths, which mean nothing here or another file, and a disk that is mounted over
 * the directory has files of the same names. The kernel knows the inode (LOOP_GET_STATUS64, which losetup shows), and a
 * device keeps it for as long as it keeps its `diskseq`: so it is asked once a device, 3 ms, and not at every look.
 */
export interface Backings {
  /** `path` as sysfs has it. Only as true as the `diskseq`, which the caller reads again. */
  of(device: { readonly name: string; readonly diskseq: string; readonly path: string }): Promise<string>;
  /** Asks for many with one child. `diskseqOf` fails for a number that no file is behind. */
  learn(names: readonly string[], diskseqOf: (name: string) => Promise<string>): Promise<void>;
}

const QUERY_MS_MAX = 10_000;
const DELETED = / \(deleted\)$/;

export function createBackings(tools: Tools): Backings {
  /** One a number of the machine. */
  const known = new Map<string, { readonly diskseq: string; readonly identity: string }>();
  const find = (name: string, diskseq: string) => {
    const found = known.get(name);
    return diskseq !== "" && found?.diskseq === diskseq ? found.identity : undefined;
  };

  async function ask(devices: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const columns = ["--list", "--raw", "--noheadings", "--output", "NAME,BACK-INO,BACK-MAJ:MIN"];
    const answer = await tools.run("losetup", [...columns, ...devices], {
      timeoutMs: QUERY_MS_MAX,
      ok: [1],
    });
    return parseBackings(answer.stdout);
  }

  return {
    async of({ name, diskseq, path }) {
      // It has no name by which it could be found, only that which it had.
      if (DELETED.test(path)) return goneIdentity(path.replace(DELETED, ""));
      const before = find(name, diskseq);
      if (before !== undefined) return before;
      const identity = (await ask([`/dev/${name}`])).get(name);
      // A device whose node is not in our /dev cannot be asked.
      if (identity === undefined) return byName(path);
      known.set(name, { diskseq, identity });
      return identity;
    },
    async learn(names, diskseqOf) {
      const asked = await Promise.all(
        names.map(async (name) => ({ name, diskseq: await diskseqOf(name).catch(() => "") })),
      );
      const missing = asked.filter(
        ({ name, diskseq }) => diskseq !== "" && find(name, diskseq) === undefined,
      );
      if (missing.length < 2) return;
      const found = await ask([]);
      for (const { name, diskseq } of missing) {
        const identity = found.get(name);
        if (identity !== undefined && diskseq === (await diskseqOf(name).catch(() => "")))
          known.set(name, { diskseq, identity });
      }
    },
  };
}

/** `/dev/loop3 9978070 254:0`, padded with `\\x20`; a line that does not look like it is of a device that could not be asked. */
export function parseBackings(text: string): ReadonlyMap<string, string> {
  return new Map(
    text
      .replaceAll("\\x20", " ")
      .split("\n")
      .flatMap((line) => {
        const match = /^\/dev\/(loop\d+)\s+(\d+)\s+(\d+):(\d+)\s*$/.exec(line);
        if (match === null || match[2] === "0") return [];
        const [, name = "", inode = "", major = "", minor = ""] = match;
        return [[name, `${deviceOf(BigInt(major), BigInt(minor))}/${inode}`] as const];
      }),
  );
}

/** As glibc packs them, and `stat` answers. */
function deviceOf(major: bigint, minor: bigint): bigint {
  return ((major & 0xfffn) << 8n) | ((major & ~0xfffn) << 32n) | (minor & 0xffn) | ((minor & ~0xffn) << 12n);
}

/** Errors of our own process say nothing about the file; others' files may be broken without being our concern. */
const OWN_ERRORS = new Set(["EMFILE", "ENFILE", "ENOMEM", "EINTR"]);

async function byName(path: string): Promise<string> {
  return failing(`look at the file behind a loop device, ${path}`, async () => {
    try {
      const { dev, ino } = await stat(path, { bigint: true });
      return `${dev}/${ino}`;
    } catch (error) {
      if (OWN_ERRORS.has(codeOf(error) ?? "")) throw error;
      return goneIdentity(path);
    }
  });
}
