import { basename, join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { VolumeError } from "../errors.ts";
import type { Host } from "../host.ts";
import type { Chap, IscsiAdmin } from "./iscsi-admin.ts";
import type { IscsiIdentity } from "./iscsi-identity.ts";
import { multipathOf, writeKernelFile } from "./scsi.ts";

/** Rounds over all portals until the disk is there through enough of them. */
const ROUNDS_MAX = 5;
/** A scanned LUN gets its link within this, or it is not there. */
const LINK_MS_MAX = 30_000;
const LOOK_EVERY_MS = 250;
/** multipathd joins several ways within this, or it is not running. */
const JOIN_MS_MAX = 10_000;

export interface IscsiAttachDeps {
  readonly host: Host;
  readonly clock: Clock;
  readonly admin: IscsiAdmin;
  readonly signal: AbortSignal;
  /** One log-in or log-out of a target at a time; the wait for its disks is not held up by it. */
  readonly exclusive: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Connects the LUN through its portals and answers with its device, the joined one where several ways lead to it. */
export async function attachIscsi(
  deps: IscsiAttachDeps,
  identity: IscsiIdentity,
  chap: Chap,
): Promise<string> {
  const { admin } = deps;
  await admin.makeIface(identity);
  const transport = await admin.transport(identity.iface);
  const paths = new Map<string, string>();
  let failure: unknown;
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    for (const portal of identity.portals.filter((each) => !paths.has(each)))
      try {
        paths.set(portal, await attachPortal(deps, { identity, portal, transport, chap }));
      } catch (error) {
        if (deps.signal.aborted) throw error;
        failure = error;
      }
    if (paths.size === identity.portals.length || (paths.size >= 2 && round >= 2)) break;
    // Several failures in a row of the only portal are the caller's to space out.
    if (identity.portals.length === 1) break;
  }
  const [first] = paths.values();
  if (first === undefined) {
    if (identity.ownIface !== undefined) await admin.deleteIface(identity.iface);
    const reason = failure instanceof Error ? failure.message : String(failure);
    throw new VolumeError("final", `failed to get any path for iscsi disk ${identity.iqn}: ${reason}`, {
      cause: failure,
    });
  }
  return (await joinedDevice(deps, [...paths.values()], identity)) ?? first;
}

interface PortalWay {
  readonly identity: IscsiIdentity;
  readonly portal: string;
  readonly transport: string;
  readonly chap: Chap;
}

async function attachPortal(
  deps: IscsiAttachDeps,
  { identity, portal, transport, chap }: PortalWay,
): Promise<string> {
  const { host, admin, signal, exclusive } = deps;
  const hosts = await exclusive(async () => {
    const there = await admin.hostsOf(identity.iqn, portal);
    if (there.length > 0) return there;
    await admin.login(identity, portal, chap);
    return admin.hostsOf(identity.iqn, portal);
  });
  for (const name of hosts)
    await writeKernelFile(host, `/sys/class/scsi_host/${name}/scan`, `0 0 ${identity.lun}`, signal);
  return waitForLink(deps, { identity, portal, transport });
}

/** Device links appear by udev, which tells nobody we could listen to: looked at four times a second. */
async function waitForLink(
  { host, clock, signal }: IscsiAttachDeps,
  { identity: { iqn, lun }, portal, transport }: Pick<PortalWay, "identity" | "portal" | "transport">,
): Promise<string> {
  const name = `ip-${portal}-iscsi-${iqn}-lun-${lun}`;
  const untilMs = clock.now() + LINK_MS_MAX;
  for (;;) {
    const links = (await host.files.list("/dev/disk/by-path")) ?? [];
    // A card that speaks iSCSI itself is named in front of the address.
    const found = links.find(
      (link) =>
        link.name === name || (transport !== "tcp" && /^pci-.*-/.test(link.name) && link.name.endsWith(name)),
    );
    if (found !== undefined) return join("/dev/disk/by-path", found.name);
    if (clock.now() >= untilMs)
      throw new VolumeError(
        "final",
        `no link ${name} within ${LINK_MS_MAX / 1_000} s; is LUN ${lun} exported to this node?`,
      );
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
}

/** With one portal a joined device is taken where there is one, but not waited for. */
async function joinedDevice(
  { host, clock, signal }: IscsiAttachDeps,
  links: readonly string[],
  { portals }: IscsiIdentity,
): Promise<string | undefined> {
  const untilMs = clock.now() + (portals.length > 1 ? JOIN_MS_MAX : 0);
  for (;;) {
    for (const link of links) {
      const joined = await multipathOf(host, link);
      if (joined !== undefined) return joined;
    }
    if (clock.now() >= untilMs) return undefined;
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
}

/** `/dev/disk/by-path/ip-…-lun-0` of every portal that leads to this LUN now. */
export async function linksOf(host: Host, { portals, iqn, lun }: IscsiIdentity): Promise<readonly string[]> {
  const links = ((await host.files.list("/dev/disk/by-path")) ?? []).map(({ name }) => name);
  const endings = portals.map((portal) => `ip-${portal}-iscsi-${iqn}-lun-${lun}`);
  const ours = links.filter((link) => endings.some((ending) => basename(link).endsWith(ending)));
  return ours.map((link) => join("/dev/disk/by-path", link));
}
