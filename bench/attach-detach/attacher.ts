import type { VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import { openApi } from "./api.ts";
import { ATTACHMENTS, BENCH_DRIVER } from "./estate.ts";

/**
 * A driver that is infinitely fast: every VolumeAttachment is attached as soon as it is seen. No finalizer, so that
 * a deletion is complete when it is answered. Until its process ends.
 */
export async function attach({ kubeconfig }: { kubeconfig: string }): Promise<null> {
  const api = await openApi(kubeconfig);
  await api.watch<VolumeAttachment>(ATTACHMENTS, (type, { metadata, spec, status }) => {
    if (type !== "ADDED" || spec.attacher !== BENCH_DRIVER || status?.attached) return;
    const patch = { status: { attached: true } };
    // Deleted meanwhile, where a pod goes right after it came.
    void api.send("PATCH", `${ATTACHMENTS}/${metadata.name ?? ""}/status`, patch).catch(() => undefined);
  });
  return null;
}
