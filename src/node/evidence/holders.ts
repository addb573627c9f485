import type { HostProcess, MountNamespace, NamespaceMount, ProcessScan } from "../host-processes.ts";
import { isAtOrBelow } from "../mount-table.ts";

/**
 * Who has a volume, read from one look at the machine. Pure.
 *
 * A container has a volume as a mount of its own, in a mount namespace of its own: the host's unmount leaves it there,
 * and whoever is in it goes on writing. A service with a private namespace, or a driver in a container, sees the mounts
 * of the host, too; but what it sees goes as soon as the host unmounts, so it does not have the volume.
 */

/** A part of a filesystem that nobody may have any more. */
export interface Target {
  readonly deviceNumber: string;
  readonly root: string;
  readonly source: string;
}

export interface Holder {
  readonly by: HostProcess;
  /** How it has it: `mounted at /data in mnt:[4026532201]`. */
  readonly how: string;
}

export interface Question {
  readonly targets: readonly Target[];
  /** `major:minor` of block devices. */
  readonly devices: readonly string[];
  /** The pod that goes; undefined for the volume itself, when the last pod has gone. */
  readonly podUid: string | undefined;
  /** Pods of this node that go on using the volume. */
  readonly others: ReadonlySet<string>;
  /** Whether a pod of this uid is alive on this node. */
  readonly isAlive: (podUid: string) => boolean;
}

export function holderOf(scan: ProcessScan, question: Question): Holder | undefined {
  return (
    ofPod(scan, question) ??
    scan.namespaces
      .filter(({ own }) => !own)
      .reduce<Holder | undefined>(
        (found, namespace) => found ?? inNamespace(scan, namespace, question),
        undefined,
      ) ??
    opener(scan, question)
  );
}

/** A container of the pod that is alive may use any of its volumes, however it came by it. */
function ofPod({ pods }: ProcessScan, { podUid }: Question): Holder | undefined {
  const by = pods.find((one) => one.podUid === podUid);
  return by && { by, how: "is in the control group of the pod" };
}

function inNamespace(scan: ProcessScan, namespace: MountNamespace, question: Question): Holder | undefined {
  const by = namespace.processes.find((one) => counts(one, question));
  if (!by) return undefined;
  const mount = namespace.mounts.find(
    (one) => question.targets.some((target) => isPartOf(one, target)) && !goesWithHost(scan, namespace, one),
  );
  return mount && { by, how: `has it mounted at ${mount.path} in ${namespace.name}` };
}

function opener({ openers }: ProcessScan, question: Question): Holder | undefined {
  const by = openers.find(
    (one) =>
      question.devices.includes(one.deviceNumber) &&
      counts(one, question) &&
      // A driver in a pod may serve a device from a process of its own, which has it open as long as it is there.
      (one.podUid === undefined || one.podUid === question.podUid || !question.isAlive(one.podUid)),
  );
  return by && { by, how: `has device ${by.deviceNumber} open` };
}

/**
 * While other pods of this node have the volume, it stays here; whose a process is that says of no pod does not matter
 * until the last of them goes. Then every process counts.
 */
function counts({ podUid }: HostProcess, question: Question): boolean {
  if (question.podUid === undefined || podUid === question.podUid) return true;
  return question.others.size === 0;
}

/** Filesystems without a device share a number where they share a server: of these the source has to be the same, too. */
function isPartOf(mount: NamespaceMount, { deviceNumber, root, source }: Target): boolean {
  if (mount.deviceNumber !== deviceNumber || !isAtOrBelow(mount.root, root)) return false;
  return !deviceNumber.startsWith("0:") || mount.source === source;
}

/**
 * Whether the host's unmount takes this mount along: it lies on a mount that hears of the host's, at the same place, and
 * the host has the same thing there.
 */
function goesWithHost(scan: ProcessScan, namespace: MountNamespace, mount: NamespaceMount): boolean {
  const parent = namespace.mounts.find(({ id }) => id === mount.parentId);
  if (!parent) return false;
  const heard = groupsHeardBy(scan, parent);
  const at = placeOn(parent, mount);
  return scan.namespaces
    .filter(({ own }) => own)
    .some(({ mounts }) =>
      mounts.some((host) => {
        if (host.deviceNumber !== mount.deviceNumber || host.root !== mount.root) return false;
        const on = mounts.find(({ id }) => id === host.parentId);
        return on?.peers !== undefined && heard.has(on.peers) && placeOn(on, host) === at;
      }),
    );
}

/** Its own peer group, its master, that one's master, ... */
function groupsHeardBy({ namespaces }: ProcessScan, { peers, master }: NamespaceMount): ReadonlySet<number> {
  const heard = new Set<number>();
  const next = [peers, master];
  for (let group = next.pop(); next.length > 0 || group !== undefined; group = next.pop()) {
    if (group === undefined || heard.has(group)) continue;
    heard.add(group);
    for (const { mounts } of namespaces)
      for (const one of mounts) if (one.peers === group && one.master !== undefined) next.push(one.master);
  }
  return heard;
}

/** Where a mount lies, as a path of the filesystem below it. */
function placeOn(parent: NamespaceMount, { path }: NamespaceMount): string {
  const below = parent.path === "/" ? path : path.slice(parent.path.length);
  return `${parent.deviceNumber} ${parent.root === "/" ? "" : parent.root}${below}`;
}
