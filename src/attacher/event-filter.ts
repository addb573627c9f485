import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { jsonEqual } from "../kube/patch/json.ts";

/**
 * Whether an update of an attachment is a reason to look at it. An error that we ourselves wrote is none: it would bring the
 * key back at once and make the back-off worthless (external-attacher #337). With an error in play, only what remains
 * after errors, resourceVersion and managedFields are left out counts.
 */
export function isReasonToLook(old: VolumeAttachment, updated: VolumeAttachment): boolean {
  // Told again without a change: the periodic resync.
  if (old.metadata.resourceVersion === updated.metadata.resourceVersion) return true;
  if (!hasError(old) && !hasError(updated)) return true;
  return !jsonEqual(withoutErrors(old), withoutErrors(updated));
}

function hasError({ status }: VolumeAttachment): boolean {
  return Boolean(status?.attachError) || Boolean(status?.detachError);
}

function withoutErrors({ metadata, spec, status }: VolumeAttachment): object {
  const { resourceVersion: _, managedFields: __, ...rest } = metadata;
  const { attachError: ___, detachError: ____, ...told } = status ?? { attached: false };
  return { metadata: rest, spec, status: told };
}
