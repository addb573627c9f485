import {
  HostError as DriverError,
  type Host as DriverHost,
  type HostErrorCode as DriverCode,
} from "../driver/host.ts";
import {
  HostError as NodeError,
  type Host as NodeHost,
  type HostErrorCode as NodeCode,
} from "../node/host.ts";

/** One call of a machine, as `mounts.mount` with its arguments. */
export interface HostCall {
  readonly name: string;
  readonly args: readonly unknown[];
}

/** What there is to know of an interface to a machine for whoever stands between it and its user. */
export interface HostView<H, Code extends string> {
  readonly parts: readonly (keyof H & string)[];
  /** Calls that change the machine: before, in the middle of and after each a process can die. */
  readonly changes: ReadonlySet<string>;
  /** Calls that answer without a promise; nothing stands between them. */
  readonly synchronous: ReadonlySet<string>;
  error(code: Code, message: string, options?: ErrorOptions): Error;
}

export const NODE_VIEW: HostView<NodeHost, NodeCode> = {
  parts: ["files", "mounts", "devices", "programs", "processes"],
  changes: namesOf({
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
  }),
  synchronous: new Set(),
  error: (code, message, options) => new NodeError(code, message, options),
};

export const DRIVER_VIEW: HostView<DriverHost, DriverCode> = {
  parts: ["files", "images", "loops", "filesystems", "mounts"],
  changes: namesOf({
    files: [
      "writeDurable",
      "overwrite",
      "rename",
      "makeDirectory",
      "makeFile",
      "removeDirectory",
      "removeFile",
    ],
    images: ["create", "copy", "clone", "grow"],
    loops: ["attach", "detach", "refresh"],
    filesystems: ["format", "grow", "check"],
    mounts: ["mount", "bind", "remountBind", "unmount", "freeze", "thaw"],
  }),
  synchronous: new Set(["filesystems.offered", "filesystems.missingTool", "images.read"]),
  error: (code, message, options) => new DriverError(code, message, options),
};

function namesOf(parts: Readonly<Record<string, readonly string[]>>): ReadonlySet<string> {
  return new Set(Object.entries(parts).flatMap(([part, names]) => names.map((name) => `${part}.${name}`)));
}

/**
 * The same machine with something between each call and its work: the base of everything that counts, delays, fails or
 * ends calls, for the node's `Host` and the driver's alike.
 */
export function mapCalls<H extends object, Code extends string>(
  host: H,
  { parts, synchronous }: HostView<H, Code>,
  around: (call: HostCall, work: () => unknown) => unknown,
): H {
  const wrapped = parts.map((part) => {
    const real = host[part] as Record<string, (...args: unknown[]) => unknown>;
    const calls = Object.keys(real).map((method) => {
      const name = `${part}.${method}`;
      const work = (...args: unknown[]) => real[method]?.(...args);
      return [
        method,
        synchronous.has(name) ? work : (...args: unknown[]) => around({ name, args }, () => work(...args)),
      ];
    });
    return [part, Object.fromEntries(calls) as unknown] as const;
  });
  return Object.fromEntries(wrapped) as H;
}

/** Where a call acts: its first argument, or what a request says of its target. */
export function subjectOf({ args: [first] }: HostCall): string {
  return typeof first === "string" ? first : (pathsOf(first)[0] ?? "");
}

export function touches({ args }: HostCall, path: string): boolean {
  return args.some((arg) => arg === path || pathsOf(arg).includes(path));
}

/** Of a request or a device. */
function pathsOf(arg: unknown): readonly string[] {
  if (typeof arg !== "object" || arg === null) return [];
  return ["target", "path", "root", "source"].flatMap((key) => {
    const value: unknown = Reflect.get(arg, key);
    return typeof value === "string" ? [value] : [];
  });
}
