import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { JsonPatchOperation, Patch } from "../kube/client/client.ts";
import { addFinalizerPatch } from "../kube/finalizers.ts";
import { formatTime } from "../kube/time.ts";

/**
 * The writes, exactly. Finalizers and annotations go by JSON patch: several parties keep entries in these lists, and a
 * merge patch from a stale cache would bring back what another took away. Statuses are ours alone and go by merge patch,
 * with every field they mean to clear spelled out as null, so that a stale cache leaves nothing standing. Both name the
 * uid: an attachment that was deleted and made anew has the same name.
 */

/** Finalizer and annotations in one write, or undefined if all of it is there. */
export function holdPatch(
  attachment: VolumeAttachment,
  finalizer: string,
  annotations: Readonly<Record<string, string>>,
): readonly JsonPatchOperation[] | undefined {
  const known = attachment.metadata.annotations;
  const missing = Object.entries(annotations).filter(([key, value]) => known?.[key] !== value);
  const operations = [...(addFinalizerPatch(attachment, finalizer) ?? sameObject(attachment))];
  if (missing.length === 0) {
    return operations.some(({ op }) => op === "add") ? operations : undefined;
  }
  if (known === undefined) {
    return [
      ...operations,
      { op: "test", path: "/metadata/annotations", value: null },
      { op: "add", path: "/metadata/annotations", value: Object.fromEntries(missing) },
    ];
  }
  return [
    ...operations,
    ...missing.map(([key, value]): JsonPatchOperation => ({
      op: "add",
      path: `/metadata/annotations/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`,
      value,
    })),
  ];
}

export function attachedPatch(
  attachment: VolumeAttachment,
  context: Readonly<Record<string, string>>,
): Patch {
  const known = Object.keys(attachment.status?.attachmentMetadata ?? {});
  const dropped = known.filter((key) => !Object.hasOwn(context, key));
  const nulls: Record<string, null> = Object.fromEntries(dropped.map((key) => [key, null]));
  const attachmentMetadata = Object.keys(context).length === 0 ? null : { ...nulls, ...context };
  return statusPatch(attachment, { attached: true, attachmentMetadata, attachError: null });
}

export function detachedPatch(attachment: VolumeAttachment): Patch {
  return statusPatch(attachment, { attached: false, attachmentMetadata: null, detachError: null });
}

/** `attached` is required in every status, and stays what it is: a failed repair of an attachment does not undo it. */
export function errorPatch(
  attachment: VolumeAttachment,
  which: "attachError" | "detachError",
  error: { readonly message: string; readonly errorCode: number | undefined; readonly wall: Date },
): Patch {
  const { message, errorCode, wall } = error;
  return statusPatch(attachment, {
    attached: attachment.status?.attached === true,
    [which]: {
      time: formatTime(wall),
      message: shorten(message),
      // A code of an earlier failure must not stay beside the text of this one.
      errorCode: errorCode ?? null,
    },
  });
}

/** The API server refuses longer messages, and with them the whole status. */
const MESSAGE_BYTES_MAX = 1024;

function shorten(message: string): string {
  const bytes = Buffer.from(message);
  if (bytes.length <= MESSAGE_BYTES_MAX) return message;
  // A character cut in two becomes U+FFFD, which is as long as three bytes.
  return `${bytes
    .subarray(0, MESSAGE_BYTES_MAX - 8)
    .toString("utf8")
    .replace(/\uFFFD$/, "")}...`;
}

function statusPatch({ metadata }: VolumeAttachment, status: object): Patch {
  const same = metadata.uid === undefined ? {} : { metadata: { uid: metadata.uid } };
  return { type: "merge", value: { ...same, status } };
}

function sameObject({ metadata }: VolumeAttachment): readonly JsonPatchOperation[] {
  return metadata.uid === undefined ? [] : [{ op: "test", path: "/metadata/uid", value: metadata.uid }];
}
