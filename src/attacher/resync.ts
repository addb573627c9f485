import type { CSINode } from "../kube/api/csi-node.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { Clock } from "../base/clock.ts";
import { PageTokens } from "../base/page-tokens.ts";
import type { ControllerDriver } from "./driver.ts";
import { AttacherError } from "./errors.ts";
import { isMigrationDriver } from "./names.ts";
import { detachNodeId } from "./node-id.ts";
import { detachSource } from "./source.ts";

/** Node ids by the volume that is published on them, as the driver lists it. */
export type Published = ReadonlyMap<string, ReadonlySet<string>>;

/** What the list may come to in memory, about 200 MB: ten times the volumes on nodes of the largest cluster. */
const PAIRS_MAX = 2_000_000;

/**
 * All pages of the driver's list, within `timeoutMs` altogether. A volume that is on two pages has the nodes of both.
 * A driver that gives out a token twice, pages without entries or pages without end would be walked for ever: that is an error.
 */
export async function listPublished(
  { driver, clock }: { readonly driver: Pick<ControllerDriver, "listVolumes">; readonly clock: Clock },
  { maxEntries, timeoutMs, signal }: { maxEntries: number; timeoutMs: number; signal: AbortSignal },
): Promise<Published> {
  const published = new Map<string, Set<string>>();
  const deadlineMs = clock.now() + timeoutMs;
  const tokens = new PageTokens();
  let pairs = 0;
  for (let startingToken = ""; ;) {
    const leftMs = deadlineMs - clock.now();
    if (leftMs <= 0) throw unusable(`not at its end after ${timeoutMs / 1000} s`);
    const page = await driver.listVolumes({ maxEntries, startingToken }, { timeoutMs: leftMs, signal });
    for (const { volumeId, publishedNodeIds } of page.entries) {
      const nodes = published.get(volumeId) ?? new Set();
      pairs += Math.max(1, publishedNodeIds.length);
      for (const node of publishedNodeIds) nodes.add(node);
      published.set(volumeId, nodes);
    }
    const next = tokens.follow(page.nextToken, leadsNowhere);
    if (next === undefined) return published;
    if (page.entries.length === 0) throw leadsNowhere("a page is empty and says that more follow");
    if (pairs > PAIRS_MAX) throw leadsNowhere(`it has named more than ${PAIRS_MAX} volumes and nodes`);
    startingToken = next;
  }
}

function leadsNowhere(why: string): AttacherError {
  return unusable(`the driver's pages lead nowhere; its list is not believed: ${why}`);
}

function unusable(why: string): AttacherError {
  return new AttacherError("DriverUnusable", `ListVolumes: ${why}`);
}

export interface Neighbours {
  volume(attachment: VolumeAttachment): PersistentVolume | undefined;
  node(attachment: VolumeAttachment): CSINode | undefined;
}

/**
 * Whether the driver's list and the status of an attachment disagree. It decides nothing: an attachment that disagrees is
 * looked at with force. Volumes that are published without any attachment are nobody's business here. Throws an
 * AttacherError where node or volume cannot be told.
 */
export function disagrees(
  attachment: VolumeAttachment,
  published: Published,
  driver: string,
  neighbours: Neighbours,
): boolean {
  const nodeId = detachNodeId(attachment, neighbours.node(attachment), driver);
  const { volumeHandle } = detachSource(attachment, neighbours.volume(attachment));
  const handle = isMigrationDriver(driver) ? repairedHandle(driver, volumeHandle, nodeId) : volumeHandle;
  const found = published.get(handle)?.has(nodeId) ?? false;
  return found !== (attachment.status?.attached === true);
}

const GCE_DISK = /^projects\/([^/]+)\/(zones|regions)\/([^/]+)\/disks\/([^/]+)$/;
const GCE_INSTANCE = /^projects\/([^/]+)\/zones\/([^/]+)\/instances\/[^/]+$/;

/** A translated GCE disk leaves open in which project it is; its list says it in full, and so does the node's id. */
export function repairedHandle(driver: string, handle: string, nodeId: string): string {
  const disk = driver === "pd.csi.storage.gke.io" ? GCE_DISK.exec(handle) : null;
  const instance = GCE_INSTANCE.exec(nodeId);
  if (disk === null || instance === null) return handle;
  const [, project = "", scope = "", place = "", name = ""] = disk;
  const [, ownProject = "", ownZone = ""] = instance;
  const zone = scope === "zones" && place === "UNSPECIFIED" ? ownZone : place;
  return `projects/${project === "UNSPECIFIED" ? ownProject : project}/${scope}/${zone}/disks/${name}`;
}
