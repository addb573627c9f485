import type { VolumeSpec } from "../../volumes/spec.ts";
import type { NodePlugin } from "../plugin.ts";
import { PLAIN_TRAITS } from "./sources.ts";

const IMAGE = "kubernetes.io/image";

/**
 * An image as a volume. The container runtime pulls and mounts it, as it does the image of a container; here it only
 * counts as mounted. What no runtime of a pod supports stays its error, not ours.
 */
export function createImagePlugin(): NodePlugin {
  return {
    name: IMAGE,
    canSupport: (spec) => imageOf(spec) !== undefined,
    volumeName: (spec) => imageOf(spec)?.reference || undefined,
    traits: () => PLAIN_TRAITS,
    metricName: () => IMAGE,
    mountPath: () => "",
    setUp: async () => ({ readOnly: true, managed: false, selinuxRelabel: true }),
    tearDown: async () => undefined,
    // It never has a directory, so what looks like one is somebody else's.
    reconstruct: async () => undefined,
  };
}

/** Newer than the types. */
interface ImageSource {
  readonly reference?: string;
  readonly pullPolicy?: string;
}

function imageOf(spec: VolumeSpec): ImageSource | undefined {
  return spec.kind === "inline" ? (spec.volume as { readonly image?: ImageSource }).image : undefined;
}
