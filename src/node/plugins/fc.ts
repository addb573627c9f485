import { basename, join } from "node:path";
import type { FCVolumeSource } from "kubernetes-types/core/v1.js";
import { toVolumeName } from "../../volumes/names.ts";
import { createFcPlugin as createFcNames } from "../../volumes/plugins/fc.ts";
import { specName, type VolumeSpec } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import type { Host } from "../host.ts";
import type { FoundVolume, NodePlugin, Reconstructed, StagedVolume } from "../plugin.ts";
import { devicesOf, diskAt, sameSpelling } from "./disk-identity.ts";
import { diskSteps, findMappedDisk, findMountedDisk, type DiskDeps } from "./disk-volume.ts";
import { hostStep } from "./failures.ts";
import { multipathOf, releaseDisk, writeKernelFile } from "./scsi.ts";
import { sourceOf } from "./sources.ts";

const FC = "kubernetes.io/fc";

/** A disk on a Fibre Channel network: found by the name of its target or its own, and joined where several ways lead to it. */
export function createFcPlugin(deps: DiskDeps): NodePlugin {
  const { host, paths } = deps;
  const names = createFcNames();
  const base = paths.plugin(FC);

  /** Without a record, of a kubelet before us or of a start that failed early, the address tells which disk it was. */
  async function release({ directory, wwid, signal }: Release): Promise<void> {
    const identity = identityOfDirectory(basename(directory));
    const disk = wwid !== "" || identity === undefined ? undefined : await lookForDisk(host, identity);
    const known = wwid || ((disk && (await diskAt(host, disk))?.wwid) ?? "");
    const ways = await devicesOf(host, known);
    await releaseDisk(host, { wwid: known, ways }, signal);
  }

  return {
    name: FC,
    canSupport: (spec) => names.canSupport(spec),
    volumeName: (spec) => names.volumeName(spec),
    metricName: () => FC,
    ...diskSteps(deps, {
      plugin: FC,
      fields: (spec) => sourceOf(spec, "fc"),
      directory: (spec) => directoryOf(identityOf(spec)),
      find: (spec, signal) => findDisk(host, identityOf(spec), signal),
      release,
    }),
    attach: {
      waitForAttach: ({ spec, signal }) => hostStep("fc", () => findDisk(host, identityOf(spec), signal)),
      // The network attaches it, to every node that may see it.
      attach: async () => "",
      detach: async () => undefined,
    },
    reconstruct: (found) => reconstruct(host, base, found),
    async findStaged() {
      const mounted = await stagedIn(host, base, "Filesystem");
      return [...mounted, ...(await stagedIn(host, join(base, "volumeDevices"), "Block"))];
    },
  };
}

interface Release {
  readonly directory: string;
  readonly wwid: string;
  readonly signal: AbortSignal;
}

type FcIdentity =
  | { readonly kind: "target"; readonly wwns: readonly string[]; readonly lun: number }
  | { readonly kind: "disk"; readonly wwids: readonly string[] };

/** Names become parts of paths, so what is no name of a port or a disk is refused. */
const WWN = /^[0-9a-zA-Z:]+$/;
const WWID = /^[0-9a-zA-Z][0-9a-zA-Z_. -]*$/;

function identityOf(spec: VolumeSpec): FcIdentity {
  const { targetWWNs = [], lun, wwids = [] }: FCVolumeSource = sourceOf(spec, "fc") ?? {};
  if (targetWWNs.length > 0 && typeof lun === "number" && targetWWNs.every((wwn) => WWN.test(wwn)))
    return { kind: "target", wwns: targetWWNs, lun };
  if (wwids.length > 0 && wwids.every((wwid) => WWID.test(wwid))) return { kind: "disk", wwids };
  throw new VolumeError(
    "final",
    `fc volume ${specName(spec)}: no fc disk information found; set targetWWNs with lun, or wwids`,
  );
}

function identityOfDirectory(directory: string): FcIdentity | undefined {
  const source = parseDirectory(directory);
  if (source?.wwids !== undefined) return { kind: "disk", wwids: source.wwids };
  const { targetWWNs: wwns, lun } = source ?? {};
  return wwns === undefined || lun === undefined ? undefined : { kind: "target", wwns, lun };
}

function directoryOf(identity: FcIdentity): string {
  return identity.kind === "target"
    ? `${identity.wwns.join("-")}-lun-${identity.lun}`
    : identity.wwids.join("-");
}

/** Looked for, and once more after the hosts were told to look: a disk that was just attached is not known yet. */
async function findDisk(host: Host, identity: FcIdentity, signal: AbortSignal): Promise<string> {
  const known = await lookForDisk(host, identity);
  if (known !== undefined) return known;
  for (const { name } of (await host.files.list("/sys/class/scsi_host")) ?? [])
    await writeKernelFile(host, join("/sys/class/scsi_host", name, "scan"), "- - -", signal);
  const found = await lookForDisk(host, identity);
  // Uncertain of nothing: a disk that is not there was not mounted either.
  if (found === undefined) throw new VolumeError("final", "no fc disk found");
  return found;
}

async function lookForDisk(host: Host, identity: FcIdentity): Promise<string | undefined> {
  const directory = identity.kind === "target" ? "/dev/disk/by-path" : "/dev/disk/by-id";
  const isIt = (name: string) =>
    identity.kind === "target"
      ? identity.wwns.some((wwn) =>
          new RegExp(`^(pci-.*-fc|fc)-0x${wwn.toLowerCase()}-lun-${identity.lun}$`).test(name),
        )
      : identity.wwids.some((wwid) => name === `scsi-${wwid.replaceAll(" ", "_")}`);
  const entries = (await host.files.list(directory)) ?? [];
  const found = entries
    .map(({ name }) => name)
    .filter(isIt)
    .map((name) => join(directory, name));
  const ours: string[] = [];
  for (const path of found) if (await isOurs(host, identity, path)) ours.push(path);
  for (const path of ours) {
    const joined = await multipathOf(host, path);
    if (joined !== undefined) return joined;
  }
  return ours[0];
}

/** udev's links lag behind the kernel: a disk that was asked for by its own name must say that name itself. */
async function isOurs(host: Host, identity: FcIdentity, path: string): Promise<boolean> {
  const disk = await diskAt(host, path);
  if (identity.kind === "target") return disk !== undefined;
  return identity.wwids.some((wwid) => sameSpelling(wwid) === disk?.wwid);
}

async function reconstruct(host: Host, base: string, found: FoundVolume): Promise<Reconstructed | undefined> {
  if (found.mode === "Filesystem") {
    const disk = await findMountedDisk(host, base, found.path);
    const source = disk && parseDirectory(disk.directory);
    return (
      disk &&
      source && { spec: fcSpec(found, source), ...(disk.selinuxLabel && { selinuxLabel: disk.selinuxLabel }) }
    );
  }
  const maps = ((await host.files.list(join(base, "volumeDevices"))) ?? []).map(({ name }) =>
    join(base, "volumeDevices", name),
  );
  const map = await findMappedDisk(host, maps, found);
  const source = map && parseDirectory(map.slice(join(base, "volumeDevices").length + 1));
  return source ? { spec: fcSpec(found, source) } : undefined;
}

/** By directories, mounted or not: a disk whose mount failed may still have to be let go. */
async function stagedIn(
  host: Host,
  base: string,
  mode: "Filesystem" | "Block",
): Promise<readonly StagedVolume[]> {
  const directories = ((await host.files.list(base)) ?? []).filter(
    ({ name, kind }) => kind === "directory" && name !== "volumeDevices",
  );
  return directories.flatMap(({ name }) => {
    const source = parseDirectory(name);
    const spec = source && fcSpec({ specName: name, mode }, source);
    const volume = spec && createFcNames().volumeName(spec);
    return spec && volume ? [{ volume: toVolumeName(FC, volume), spec, mode, path: join(base, name) }] : [];
  });
}

/** The lists come back in one order; a list of several disks by their own names cannot be told from one name with dashes. */
function parseDirectory(directory: string): FCVolumeSource | undefined {
  if (directory.includes("/")) return undefined;
  const [, wwns, lun] = /^(.+)-lun-(\d+)$/.exec(directory) ?? [];
  return wwns === undefined ? { wwids: [directory] } : { targetWWNs: wwns.split("-"), lun: Number(lun) };
}

function fcSpec(
  { specName: name, mode }: Pick<FoundVolume, "specName" | "mode">,
  fc: FCVolumeSource,
): VolumeSpec {
  const volume = { metadata: { name }, spec: { fc, volumeMode: mode } };
  return { kind: "persistent", volume, readOnly: false, migrated: "none" };
}
