import type { Clock } from "../base/clock.ts";
import { HostError, type Host, type HostErrorCode } from "../node/host.ts";

/** Calls that change the machine: before or after each of them a process can die. */
const CHANGES: Readonly<Record<keyof Host, readonly string[]>> = {
  files: [
    "writeDurable",
    "writeFile",
    "makeDirectories",
    "makeFile",
    "symlink",
    "rename",
    "chmod",
    "chown",
    "removeDirectory",
    "removeFile",
    "removeTree",
    "applyGroup",
    "bindSubPath",
  ],
  mounts: ["mount", "bind", "remount", "unmount", "cleanUp", "formatAndMount", "makeShared"],
  devices: ["growFilesystem", "attachLoop", "detachLoop"],
  programs: ["run"],
  processes: [],
};

export interface FaultyNodeHost extends Host {
  /** The next call of `mounts.mount` whose first argument names `path` (any where left out) fails, `times` over. */
  fail(
    call: string,
    fault: { readonly code?: HostErrorCode; readonly path?: string; readonly times?: number },
  ): void;
  /** The next such call does not answer before `ms` have passed; then it does its work. */
  delay(call: string, fault: { readonly ms: number; readonly path?: string; readonly times?: number }): void;
  /** The process dies at its n-th change from now on, counted from 0: before it, or `after` it was done. */
  dieAt(change: number, when?: "before" | "after"): void;
  readonly isDead: boolean;
  /** Changes so far. */
  readonly changes: number;
  /** Every change in order, as `mounts.mount /path`. */
  readonly log: readonly string[];
}

interface Fault {
  readonly call: string;
  readonly path: string | undefined;
  left: number;
  readonly act: () => Promise<void>;
}

/** The same machine as seen by one process, which meets failures on request and can be killed between any two calls. */
export function createFaultyNodeHost(host: Host, { clock }: { readonly clock: Clock }): FaultyNodeHost {
  const faults: Fault[] = [];
  const log: string[] = [];
  let dies: { readonly at: number; readonly when: "before" | "after" } | undefined;
  let dead = false;
  const isDead = () => dead;

  /** A dead process never hears of anything again: its promises stay pending, so that no clean-up of it runs. */
  function kill(): Promise<never> {
    dead = true;
    return new Promise<never>(() => undefined);
  }

  async function call(
    name: string,
    isChange: boolean,
    args: readonly unknown[],
    work: () => unknown,
  ): Promise<unknown> {
    if (dead) return kill();
    const fault = faults.find((one) => one.call === name && one.left > 0 && touches(args, one.path));
    if (fault !== undefined) {
      fault.left--;
      await fault.act();
    }
    if (!isChange) return work();
    const number = log.push(`${name} ${subjectOf(args)}`) - 1;
    if (dies?.at === number && dies.when === "before") return kill();
    const result = await work();
    // Another call may have met the end meanwhile.
    return dies?.at === number || isDead() ? kill() : result;
  }

  function wrap<K extends keyof Host>(part: K): Host[K] {
    const real = host[part] as unknown as Record<string, (...args: unknown[]) => unknown>;
    const wrapped = Object.keys(real).map((name) => [
      name,
      (...args: unknown[]) =>
        call(`${part}.${name}`, CHANGES[part].includes(name), args, () => real[name]?.(...args)),
    ]);
    return Object.fromEntries(wrapped) as Host[K];
  }

  return {
    files: wrap("files"),
    mounts: wrap("mounts"),
    devices: wrap("devices"),
    programs: wrap("programs"),
    processes: wrap("processes"),
    fail(name, { code = "Failed", path, times = 1 }) {
      const act = async () => {
        throw new HostError(code, `${name} ${path ?? ""}: failed on request`);
      };
      faults.push({ call: name, path, left: times, act });
    },
    delay: (name, { ms, path, times = 1 }) =>
      void faults.push({ call: name, path, left: times, act: () => clock.sleep(ms) }),
    dieAt(change, when = "before") {
      dies = { at: log.length + change, when };
    },
    get isDead() {
      return dead;
    },
    get changes() {
      return log.length;
    },
    log,
  };
}

function touches(args: readonly unknown[], path: string | undefined): boolean {
  return path === undefined || args.some((arg) => arg === path || pathsOf(arg).includes(path));
}

function subjectOf([first]: readonly unknown[]): string {
  return typeof first === "string" ? first : (pathsOf(first)[0] ?? "");
}

/** Of a request: where it acts. */
function pathsOf(arg: unknown): readonly string[] {
  if (typeof arg !== "object" || arg === null) return [];
  return ["target", "path", "root", "source"].flatMap((key) => {
    const value: unknown = Reflect.get(arg, key);
    return typeof value === "string" ? [value] : [];
  });
}
