import type { AttachablePlugin } from "../plugin.ts";
import type { VolumeSpec } from "../spec.ts";

/**
 * A volume that the node connects to by itself: nobody has to attach it, and yet it goes the whole way (desired,
 * listed in the node's `volumesAttached`, safe to detach), because the kubelet waits for that list and because
 * two nodes must not write to it at once.
 */
export function createNodeConnectedPlugin<Source>({
  name,
  sourceOf,
  volumeNameOf,
}: {
  readonly name: string;
  readonly sourceOf: (spec: VolumeSpec) => Source | undefined;
  readonly volumeNameOf: (source: Source) => string | undefined;
}): AttachablePlugin {
  return {
    name,
    canSupport: (spec) => sourceOf(spec) !== undefined,
    needsAttach: () => true,
    volumeName(spec) {
      const source = sourceOf(spec);
      return source && volumeNameOf(source);
    },
    metricName: () => name,
    attach: async () => "",
    detach: async () => undefined,
    verify: () => "attached",
  };
}
