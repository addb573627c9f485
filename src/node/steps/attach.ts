import type { Context } from "../context.ts";
import { VolumeError } from "../errors.ts";
import type { VolumeState, Want } from "../world.ts";
import { telling } from "./mount.ts";
import { begin } from "./operation.ts";

/** Where the node should attach for itself: none of its plugins can, which the pod is told in upstream's words. */
export function startAttach(context: Context, volume: VolumeState, want: Want): void {
  const pods = [...volume.wants.keys()];
  const refuse = () => {
    throw new VolumeError("final", "attaching volumes from the kubelet is not supported");
  };
  begin(context, volume, { operation: "volume_attach", exclusive: true, pods }, () =>
    telling(context, want, "AttachVolume.Attach failed", refuse, FAILED.reason),
  );
}

const FAILED = { reason: "FailedAttachVolume" } as const;
