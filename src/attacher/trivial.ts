import { volumeAttachments, type VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { attachedPatch } from "./patches.ts";

/**
 * For drivers that have nothing to attach: their volumes are everywhere already, but others wait for the word. No
 * finalizer and no call, so a deletion needs nobody; whoever still exists is called attached.
 */
export async function runTrivial(
  client: Pick<Client, "patch">,
  attachment: VolumeAttachment,
  signal: AbortSignal,
): Promise<void> {
  if (attachment.status?.attached) return;
  const ref = { name: attachment.metadata.name ?? "" };
  try {
    await client.patch(volumeAttachments, ref, attachedPatch(attachment, {}), {
      subresource: "status",
      repeatable: true,
      signal,
    });
  } catch (error) {
    if (!isKubeError(error, "NotFound")) throw error;
  }
}
