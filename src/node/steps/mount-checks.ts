import type { NodeSelectorTerm } from "kubernetes-types/core/v1.js";
import type { Node } from "../../kube/api/node.ts";
import { matchesNodeTerm } from "../../kube/node-selector.ts";
import { VolumeError } from "../errors.ts";
import type { VolumeTraits } from "../plugin.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";

/** What must hold before anything is done with a volume. The texts are upstream's. */

/** Terms are alternatives; within one, all expressions must hold. A volume without affinity may be anywhere. */
export function checkNodeAffinity(spec: VolumeSpec, node: Node | undefined): void {
  const required = spec.kind === "persistent" ? spec.volume.spec?.nodeAffinity?.required : undefined;
  if (!required) return;
  const terms: readonly NodeSelectorTerm[] = Array.isArray(required.nodeSelectorTerms)
    ? required.nodeSelectorTerms
    : [];
  if (terms.some((term) => matchesNodeTerm(term, node))) return;
  throw new VolumeError("transient", "no matching NodeSelectorTerms", {
    blockedBy: [
      { kind: "node" },
      {
        kind: "persistent-volume",
        name: spec.kind === "persistent" ? (spec.volume.metadata.name ?? "") : "",
      },
    ],
  });
}

const MOUNT_OPTIONS_ANNOTATION = "volume.beta.kubernetes.io/mount-options";

export function checkMountOptions(spec: VolumeSpec, { mountOptions }: VolumeTraits): void {
  if (mountOptions || spec.kind === "inline") return;
  const { metadata, spec: volume } = spec.volume;
  const wanted = metadata.annotations?.[MOUNT_OPTIONS_ANNOTATION] || (volume?.mountOptions?.length ?? 0) > 0;
  if (wanted) throw new VolumeError("final", "mount options are not supported for this volume type");
}
