import type { HostPathVolumeSource } from "kubernetes-types/core/v1.js";
import type { VolumeSpec } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import { HostError, type FileKind, type FileStat, type Host } from "../host.ts";
import type { NodePlugin } from "../plugin.ts";
import { hasBackstep, isReadOnly, PLAIN_TRAITS, sourceOf } from "./sources.ts";

const HOST_PATH = "kubernetes.io/host-path";

/** What each type asks of a path, and what it makes where there is nothing. */
const TYPES: Readonly<
  Record<string, { readonly kind: FileKind; readonly words: string; readonly make?: "directory" | "file" }>
> = {
  Directory: { kind: "directory", words: "directory" },
  DirectoryOrCreate: { kind: "directory", words: "directory", make: "directory" },
  File: { kind: "file", words: "file" },
  FileOrCreate: { kind: "file", words: "file", make: "file" },
  Socket: { kind: "socket", words: "socket file" },
  CharDevice: { kind: "char", words: "character device" },
  BlockDevice: { kind: "block", words: "block device" },
};

const NAMES: Readonly<Record<FileKind, string>> = {
  directory: "Directory",
  file: "File",
  socket: "Socket",
  char: "CharDevice",
  block: "BlockDevice",
  symlink: "Symlink",
  other: "Unknown",
};

/** A path of the node itself. Nothing is mounted for it and nothing is taken down: it is only looked at. */
export function createHostPathPlugin({ host }: { readonly host: Host }): NodePlugin {
  const source = (spec: VolumeSpec) => sourceOf(spec, "hostPath");
  return {
    name: HOST_PATH,
    canSupport: (spec) => source(spec) !== undefined,
    volumeName: (spec) => source(spec)?.path || undefined,
    traits: () => PLAIN_TRAITS,
    metricName: () => HOST_PATH,
    mountPath: (spec) => source(spec)?.path ?? "",
    async setUp({ spec }) {
      await checkHostPath(host, source(spec));
      return { readOnly: isReadOnly(spec, undefined), managed: false, selinuxRelabel: false };
    },
    tearDown: async () => undefined,
    reconstruct: async ({ specName: name }) => ({
      spec: { kind: "inline", volume: { name, hostPath: { path: name } } },
    }),
  };
}

async function checkHostPath(host: Host, source: HostPathVolumeSource | undefined): Promise<void> {
  const { path = "", type = "" } = source ?? {};
  if (path === "" || hasBackstep(path))
    throw new VolumeError("final", `invalid HostPath \`${path}\`: must be a path without '..'`);
  if (type === "") return;
  const wanted = Object.hasOwn(TYPES, type) ? TYPES[type] : undefined;
  if (wanted === undefined) throw new VolumeError("final", `${type} is an invalid volume type`);
  const { kind, words, make } = wanted;
  let found = await look(host, path, words);
  if (found === undefined && make !== undefined) {
    await create(host, path, make);
    found = await look(host, path, words);
  }
  if (found?.kind === kind) return;
  throw new VolumeError(
    "final",
    found === undefined
      ? `hostPath type check failed, ${path} is not a ${words}, unable to determine its type: it does not exist`
      : `hostPath type check failed: ${path} is not a ${words}, it's a ${NAMES[found.kind]}`,
  );
}

/** Links followed: a hostPath may well be one. */
async function look(host: Host, path: string, words: string): Promise<FileStat | undefined> {
  try {
    return await host.files.statTarget(path);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const message = `hostPath type check failed, ${path} is not a ${words}, unable to determine its type: ${text}`;
    // A path on a dead server is not looked at for ever; it may be fine the next time.
    const timedOut = error instanceof HostError && error.code === "TimedOut";
    throw new VolumeError(timedOut ? "transient" : "final", message, { cause: error });
  }
}

/** Parents of a file are not made: one that is missing is more likely a typing error than a wish. */
async function create(host: Host, path: string, what: "directory" | "file"): Promise<void> {
  if (what === "directory") await host.files.makeDirectories(path, 0o755);
  else await host.files.makeFile(path, 0o644);
}
