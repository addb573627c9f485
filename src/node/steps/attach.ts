import { specName } from "../../volumes/spec.ts";
import { forget, holdOf, markAttached } from "../actual.ts";
import { tellPod, type Context } from "../context.ts";
import { VolumeError } from "../errors.ts";
import type { VolumeState, Want } from "../world.ts";
import { telling } from "./mount.ts";
import { begin } from "./operation.ts";

const FAILED = { reason: "FailedAttachVolume" } as const;

/** Where the node attaches for itself. CSI drivers have no way to, which the pod is told in upstream's words. */
export function startAttach(context: Context, volume: VolumeState, want: Want): void {
  const pods = [...volume.wants.keys()];
  begin(context, volume, { operation: "volume_attach", exclusive: true, pods }, (signal) =>
    telling(
      context,
      want,
      "AttachVolume.Attach failed",
      () => attach(context, volume, { want, signal }),
      FAILED.reason,
    ),
  );
}

async function attach(
  context: Context,
  volume: VolumeState,
  { want, signal }: { readonly want: Want; readonly signal: AbortSignal },
): Promise<void> {
  const { spec, mode, pod, podUid } = want;
  const { attach: steps } = volume.plugin;
  if (!steps?.attach) throw new VolumeError("final", "attaching volumes from the kubelet is not supported");
  const devicePath = await steps.attach({ volume: volume.name, spec, pod, podUid, signal });
  markAttached(volume, { spec, mode, devicePath, attachable: "yes" });
  const message = `AttachVolume.Attach succeeded for volume "${specName(spec)}" `;
  tellPod(context, pod, { type: "Normal", reason: "SuccessfulAttachVolume", message });
}

/** Nothing of it is mounted any more. It stays in use until this has ended: what may be attached is. */
export function startDetach(context: Context, volume: VolumeState): void {
  begin(context, volume, { operation: "volume_detach", exclusive: true, pods: [] }, async (signal) => {
    const { spec } = holdOf(volume);
    await volume.plugin.attach?.detach?.({ volume: volume.name, spec, signal });
    forget(volume);
  });
}
