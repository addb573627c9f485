import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { keyOf, toKey } from "../kube/object.ts";
import type { AttachmentLanes } from "./attachment-lanes.ts";
import type { AttacherDeps } from "./controller.ts";
import { codeName, DriverError } from "./driver.ts";
import { AttacherError } from "./errors.ts";
import type { AttacherOptions } from "./options.ts";
import { disagrees, listPublished, type Neighbours, type Published } from "./resync.ts";
import { volumeNameOf } from "./source.ts";

/**
 * Compares the driver's own list of what is published where with the statuses, now and then. It never writes and never
 * calls publish or unpublish: an attachment that disagrees is looked at with force, in its lane.
 */
export function createReconciler(
  { caches, clock, driver, facts, log, lanes }: AttacherDeps & { readonly lanes: AttachmentLanes },
  { maxEntries, timeoutMs, reconcileSyncMs }: AttacherOptions,
): { run(signal: AbortSignal): Promise<void> } {
  const neighbours: Neighbours = {
    volume: (attachment) => caches.volumes.get(toKey({ name: volumeNameOf(attachment) })),
    node: ({ spec }) => caches.nodes.get(toKey({ name: spec.nodeName })),
  };

  async function reconcile(signal: AbortSignal): Promise<void> {
    const before = [...caches.attachments.objects()].filter(({ spec }) => spec.attacher === facts.name);
    const settled = before.filter((attachment) => !lanes.isBusy(attachment));
    if (settled.length === 0) return;
    let published: Published;
    try {
      published = await listPublished({ driver, clock }, { maxEntries, timeoutMs, signal });
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn("the driver's list could not be read; it is asked again later", { why: whyOf(error) });
      return;
    }
    for (const attachment of settled) compare(attachment, published);
  }

  /** What changed while the list was made is left for the next round: the list may show it before or after. */
  function compare(attachment: VolumeAttachment, published: Published): void {
    const same = caches.attachments.get(keyOf(attachment)) === attachment && !lanes.isBusy(attachment);
    if (!same) return;
    try {
      if (!disagrees(attachment, published, facts.name, neighbours)) return;
    } catch (error) {
      if (!(error instanceof AttacherError)) throw error;
      log.debug("not compared with the driver's list", { attachment: attachment.metadata.name, error });
      return;
    }
    const { metadata, spec, status } = attachment;
    const fields = { attachment: metadata.name, node: spec.nodeName, attached: status?.attached === true };
    log.warn("the driver's list contradicts the status", fields);
    lanes.force(attachment);
  }

  return {
    async run(signal) {
      const { publishes, listsPublishedNodes } = facts.capabilities;
      if (!publishes || !listsPublishedNodes) return;
      try {
        while (!signal.aborted) {
          await reconcile(signal);
          await clock.sleep(reconcileSyncMs, signal);
        }
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
  };
}

/**
 * Of a driver's error only the code: this call carries no secrets, but the driver knows those of others, and without them
 * at hand its words cannot be scrubbed. Its own log has them.
 */
function whyOf(error: unknown): string {
  if (error instanceof AttacherError) return error.message;
  const code = error instanceof DriverError ? error.grpcCode : undefined;
  return code === undefined ? "it failed without a code" : codeName(code);
}
