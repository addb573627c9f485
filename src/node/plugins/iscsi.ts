import { join } from "node:path";
import type { ISCSIPersistentVolumeSource } from "kubernetes-types/core/v1.js";
import type { Clock } from "../../base/clock.ts";
import { toVolumeName } from "../../volumes/names.ts";
import { createIscsiPlugin as createIscsiNames } from "../../volumes/plugins/iscsi.ts";
import { specName, type VolumeSpec } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import type { NodeObjects } from "../objects.ts";
import type { FoundVolume, NodePlugin, Reconstructed, SetUpRequest, StagedVolume } from "../plugin.ts";
import { diskAt } from "./disk-identity.ts";
import { diskSteps, findMappedDisk, findMountedDisk, type DiskDeps } from "./disk-volume.ts";
import { hostFailure, readFailure } from "./failures.ts";
import { createIscsiAdmin, type Chap } from "./iscsi-admin.ts";
import { attachIscsi, linksOf } from "./iscsi-attach.ts";
import { iscsiDirectory, iscsiIdentity, iscsiVolumeNames, type IscsiIdentity } from "./iscsi-identity.ts";
import { createIscsiRecords } from "./iscsi-record.ts";
import { createLanes } from "./lanes.ts";
import { multipathOf, releaseDisk } from "./scsi.ts";
import { sourceOf } from "./sources.ts";

const ISCSI = "kubernetes.io/iscsi";

interface Release {
  readonly directory: string;
  readonly wwid: string;
  readonly signal: AbortSignal;
}

export interface IscsiDeps extends DiskDeps {
  readonly objects: Pick<NodeObjects, "secret" | "node">;
  readonly clock: Clock;
}

/** A LUN of an iSCSI target: the node logs in, finds the disk, mounts it, and logs out after its last volume there. */
export function createIscsiPlugin(deps: IscsiDeps): NodePlugin {
  const { host, paths, clock } = deps;
  const base = paths.plugin(ISCSI);
  const names = createIscsiNames();
  const targets = createLanes();
  const records = createIscsiRecords(deps, base);

  async function waitForAttach(request: Pick<SetUpRequest, "spec" | "pod" | "signal">): Promise<string> {
    const { spec, signal } = request;
    const identity = iscsiIdentity(spec);
    const chap = await chapOf(deps, request);
    const directory = join(base, isBlock(spec) ? "volumeDevices" : "", iscsiDirectory(identity));
    try {
      // Made and recorded before the log-in: from here on the volume counts when somebody asks who is the last.
      await host.files.makeDirectories(directory, 0o750);
      await records.save(directory, identity, specName(spec));
      const admin = createIscsiAdmin(host, signal);
      const exclusive = <T>(work: () => Promise<T>) => targets.run(identity.iqn, signal, work);
      return await attachIscsi({ host, clock, admin, signal, exclusive }, identity, chap);
    } catch (error) {
      throw hostFailure(`iscsi volume ${specName(spec)}`, error);
    }
  }

  /** Of a log-in of this boot: after the next, nobody is logged in and there is no device to let go. */
  async function release({ directory, wwid, signal }: Release): Promise<void> {
    const identity = await records.load(directory);
    if (identity === undefined)
      throw new VolumeError(
        "final",
        `${directory}: its name tells no portal and target, so nobody can log out`,
      );
    // Its own ways only: another volume may have reached the same disk through other portals.
    const linked = (
      await Promise.all((await linksOf(host, identity)).map((link) => diskAt(host, link)))
    ).filter((disk) => disk !== undefined);
    const known = wwid || (linked[0]?.wwid ?? "");
    await releaseDisk(host, { wwid: known, ways: linked.filter((disk) => disk.wwid === known) }, signal);
    await targets.run(identity.iqn, signal, async () => {
      const admin = createIscsiAdmin(host, signal);
      for (const portal of identity.portals)
        if (!(await isPortalBusy(directory, identity.iqn, portal))) await admin.logout(identity, portal);
      if (identity.ownIface !== undefined) await admin.deleteIface(identity.iface);
    });
    await records.remove(directory);
  }

  async function findDisk(spec: VolumeSpec): Promise<string> {
    const [link] = await linksOf(host, iscsiIdentity(spec));
    if (link === undefined)
      throw new VolumeError(
        "transient",
        `iscsi volume ${specName(spec)}: its disk is not there; it is attached again`,
      );
    return (await multipathOf(host, link)) ?? link;
  }

  /** Whether another volume uses this target through this portal: counted by directories, of both kinds. */
  async function isPortalBusy(except: string, iqn: string, portal: string): Promise<boolean> {
    for (const directory of (await volumeDirectories()).filter((each) => each !== except)) {
      const other = await records.load(directory);
      if (other?.iqn === iqn && other.portals.includes(portal)) return true;
    }
    return false;
  }

  async function volumeDirectories(tops = [base, join(base, "volumeDevices")]): Promise<readonly string[]> {
    const list = async (path: string) =>
      ((await host.files.list(path)) ?? []).map(({ name }) => join(path, name));
    const ifaces = (await Promise.all(tops.map(list))).flat().filter((path) => path.includes("/iface-"));
    return (await Promise.all(ifaces.map(list))).flat();
  }

  async function reconstruct(found: FoundVolume): Promise<Reconstructed | undefined> {
    if (found.mode === "Filesystem") {
      const disk = await findMountedDisk(host, base, found.path);
      const identity = disk && (await records.load(join(base, disk.directory)));
      return (
        disk &&
        identity && {
          spec: specOf(found, identity),
          ...(disk.selinuxLabel && { selinuxLabel: disk.selinuxLabel }),
        }
      );
    }
    const map = await findMappedDisk(host, await volumeDirectories([join(base, "volumeDevices")]), found);
    const identity = map && (await records.load(map));
    return identity ? { spec: specOf(found, identity) } : undefined;
  }

  /** Called as the node's status calls it: there the portal may stand without its port. */
  function specOf(
    { specName: name, mode }: Pick<FoundVolume, "specName" | "mode">,
    identity: IscsiIdentity,
  ): VolumeSpec {
    const { volumesInUse = [], volumesAttached = [] } = deps.objects.node()?.status ?? {};
    const listed = new Set([...volumesInUse, ...volumesAttached.map((each) => each.name)]);
    const called = iscsiVolumeNames(identity).find((each) => listed.has(toVolumeName(ISCSI, each)));
    const rest = `:${identity.iqn}:${identity.lun}`;
    const targetPortal = called?.slice(0, -rest.length) ?? identity.targetPortal;
    const { iqn, lun, portals, iface, ownIface } = identity;
    const iscsi: ISCSIPersistentVolumeSource = {
      targetPortal,
      iqn,
      lun,
      portals: [...portals],
      iscsiInterface: ownIface?.after ?? iface,
    };
    if (ownIface !== undefined) iscsi.initiatorName = ownIface.initiatorName;
    const volume = { metadata: { name }, spec: { iscsi, volumeMode: mode } };
    return { kind: "persistent", volume, readOnly: false, migrated: "none" };
  }

  return {
    name: ISCSI,
    canSupport: (spec) => names.canSupport(spec),
    volumeName: (spec) => names.volumeName(spec),
    metricName: () => ISCSI,
    ...diskSteps(deps, {
      plugin: ISCSI,
      fields: (spec) => sourceOf(spec, "iscsi"),
      directory: (spec) => iscsiDirectory(iscsiIdentity(spec)),
      find: findDisk,
      release,
    }),
    // Logging in and out belongs to mounting here, whoever attaches.
    attach: { waitForAttach, attach: async () => "", detach: async () => undefined },
    reconstruct,
    // By directories, mounted or not: each was made before its log-in, so none of them leaves a session behind.
    async findStaged() {
      const found = await Promise.all((await volumeDirectories()).map(toStaged));
      return found.flatMap((each) => each ?? []);
    },
  };

  async function toStaged(path: string): Promise<StagedVolume | undefined> {
    const identity = await records.load(path);
    if (identity === undefined) return undefined;
    const mode = path.startsWith(join(base, "volumeDevices")) ? "Block" : "Filesystem";
    const spec = specOf({ specName: iscsiVolumeNames(identity)[0] ?? "", mode }, identity);
    return { volume: toVolumeName(ISCSI, names.volumeName(spec) ?? ""), spec, mode, path };
  }
}

function isBlock(spec: VolumeSpec): boolean {
  return spec.kind === "persistent" && spec.volume.spec?.volumeMode === "Block";
}

const CHAP_KEYS = ["username", "password", "username_in", "password_in"] as const;

/** The secret of an inline volume is the pod's neighbour; that of a PersistentVolume may be anywhere. */
async function chapOf(
  { objects }: Pick<IscsiDeps, "objects">,
  { spec, pod, signal }: Pick<SetUpRequest, "spec" | "pod" | "signal">,
): Promise<Chap> {
  const { chapAuthDiscovery = false, chapAuthSession = false, secretRef } = sourceOf(spec, "iscsi") ?? {};
  if (!chapAuthDiscovery && !chapAuthSession) return { discovery: [], session: [] };
  const { name = "", namespace = pod.metadata.namespace ?? "" }: { name?: string; namespace?: string } =
    secretRef ?? {};
  if (name === "") throw new VolumeError("final", `iscsi volume ${specName(spec)}: CHAP wants a secretRef`);
  const of = { kind: "secret", namespace, name } as const;
  const secret = await objects.secret(namespace, name, signal).catch((error: unknown) => {
    throw readFailure(`couldn't get secret ${namespace}/${name}: `, error, of);
  });
  const values = (prefix: string) => [
    [`${prefix}.authmethod`, "CHAP"] as const,
    ...CHAP_KEYS.flatMap((key) => {
      const value = secret.data?.[`${prefix}.${key}`];
      return value === undefined
        ? []
        : [[`${prefix}.${key}`, Buffer.from(value, "base64").toString()] as const];
    }),
  ];
  return {
    discovery: chapAuthDiscovery ? values("discovery.sendtargets.auth") : [],
    session: chapAuthSession ? values("node.session.auth") : [],
  };
}
