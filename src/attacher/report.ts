import type { Clock } from "../base/clock.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { toKey } from "../kube/object.ts";
import { BY_NODE, BY_VOLUME, type AttacherCaches } from "./caches.ts";
import type { AttachmentLanes } from "./attachment-lanes.ts";
import { operationOf } from "./plan.ts";
import { ownHandleOf, volumeNameOf } from "./source.ts";
import type { WaitingFor, WaitingReason } from "./waiting.ts";

/** One VolumeAttachment in `/debug/attachments`: how it is, and why it is not as it should be. */
export interface AttachmentReport {
  readonly volumeAttachment: string;
  readonly driver: string;
  readonly node: string;
  readonly persistentVolume?: string;
  /** As far as the attachment itself tells it. */
  readonly volumeHandle?: string;
  readonly state: "attaching" | "attached" | "detaching";
  /** Failures in a row. */
  readonly failures: number;
  readonly waitingFor?: WaitingReport;
}

/** The controller's shape, so that one renderer does for both. */
export interface WaitingReport {
  readonly reason: WaitingReason;
  readonly object: { readonly kind: string; readonly name: string; readonly namespace?: string };
  readonly since: string;
  readonly until?: string;
  readonly message: string;
}

export interface ReportFilter {
  readonly attachment?: string;
  readonly volume?: string;
  readonly node?: string;
  readonly waitingOnly?: boolean;
  /** What exceeds it is left out. */
  readonly limit?: number;
}

export function createReport(
  deps: {
    readonly caches: AttacherCaches;
    readonly clock: Clock;
    readonly lanes: Pick<AttachmentLanes, "waitingFor" | "failures">;
    readonly driver: string;
  },
  filter: ReportFilter,
): readonly AttachmentReport[] {
  const { clock, lanes, driver } = deps;
  const reports: AttachmentReport[] = [];
  for (const attachment of candidates(deps.caches, filter)) {
    if (reports.length >= (filter.limit ?? Infinity)) break;
    if (attachment.spec.attacher !== driver || !matches(attachment, filter)) continue;
    const waiting = lanes.waitingFor(attachment);
    if (filter.waitingOnly && waiting === undefined) continue;
    const failures = lanes.failures(attachment);
    reports.push({
      ...describe(attachment),
      failures,
      ...(waiting && { waitingFor: reportWait(clock, waiting) }),
    });
  }
  return reports;
}

/** By key where the filter gives one; a walk otherwise. */
function candidates({ attachments }: AttacherCaches, { attachment, volume, node }: ReportFilter) {
  if (attachment !== undefined) {
    const found = attachments.get(toKey({ name: attachment }));
    return found === undefined ? [] : [found];
  }
  if (volume !== undefined) return attachments.byIndex(BY_VOLUME, volume);
  if (node !== undefined) return attachments.byIndex(BY_NODE, node);
  return attachments.objects();
}

function matches(attachment: VolumeAttachment, { volume, node }: ReportFilter): boolean {
  if (volume !== undefined && volumeNameOf(attachment) !== volume) return false;
  return node === undefined || attachment.spec.nodeName === node;
}

function describe(attachment: VolumeAttachment): Omit<AttachmentReport, "failures"> {
  const { metadata, spec, status } = attachment;
  const [volume, handle] = [volumeNameOf(attachment), ownHandleOf(attachment)];
  const attaching = status?.attached ? "attached" : "attaching";
  return {
    volumeAttachment: metadata.name ?? "",
    driver: spec.attacher,
    node: spec.nodeName,
    ...(volume !== "" && { persistentVolume: volume }),
    ...(handle !== "" && { volumeHandle: handle }),
    state: operationOf(attachment) === "detach" ? "detaching" : attaching,
  };
}

function reportWait(clock: Clock, { reason, object, sinceMs, untilMs, message }: WaitingFor): WaitingReport {
  const at = (ms: number) => new Date(clock.wall().getTime() + ms - clock.now()).toISOString();
  return {
    reason,
    object,
    since: at(sinceMs),
    ...(untilMs !== undefined && { until: at(untilMs) }),
    message,
  };
}
