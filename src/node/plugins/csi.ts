import { CSI_PLUGIN } from "../../volumes/names.ts";
import { specName, type VolumeSpec } from "../../volumes/spec.ts";
import { isObject } from "../../volumes/untrusted.ts";
import type { NodePlugin, VolumeTraits } from "../plugin.ts";
import { createCsiAttach, type RefreshAllocatable } from "./csi-attach.ts";
import { createCsiBlock } from "./csi-block.ts";
import { createCsiDevice } from "./csi-device.ts";
import { expand } from "./csi-expand.ts";
import type { CsiContext } from "./csi-lookups.ts";
import { publish, targetPathOf, unpublish } from "./csi-publish.ts";
import { findStaged, reconstruct } from "./csi-reconstruct.ts";
import { rulesOf } from "./csi-rules.ts";
import { csiVolumeOf } from "./csi-source.ts";
import { stats } from "./csi-stats.ts";

interface CsiPluginOptions {
  readonly refreshAllocatable?: RefreshAllocatable;
  /** Gate CSIVolumeHealth: drivers are asked how volumes do. */
  readonly volumeHealth?: boolean;
}

/** Volumes of CSI drivers: PersistentVolumes staged once a node and published once a pod, and inline ones of a pod. */
export function createCsiPlugin(
  context: CsiContext,
  { refreshAllocatable = async () => undefined, volumeHealth: health = false }: CsiPluginOptions = {},
): NodePlugin {
  return {
    name: CSI_PLUGIN,
    canSupport: (spec) => isObject(spec.kind === "inline" ? spec.volume.csi : spec.volume.spec?.csi),
    volumeName(spec) {
      const volume = csiVolumeOf(spec);
      if (volume?.kind === "persistent") return `${volume.driver}^${volume.handle}`;
      return volume === undefined ? undefined : specName(spec) || undefined;
    },
    traits: (spec) => traitsOf(context, spec),
    metricName(spec) {
      const driver = spec && csiVolumeOf(spec)?.driver;
      return driver === undefined ? CSI_PLUGIN : `${CSI_PLUGIN}:${driver}`;
    },
    mountPath: (spec, podUid) => targetPathOf(context.paths, podUid, specName(spec)),
    setUp: (request) => publish(context, request),
    tearDown: (request) => unpublish(context, request),
    device: createCsiDevice(context),
    block: createCsiBlock(context),
    attach: createCsiAttach(context, refreshAllocatable),
    expand: (request) => expand(context, request),
    stats: (request) => stats(context, request, { health }),
    reconstruct: (found) => reconstruct(context, found),
    findStaged: () => findStaged(context),
  };
}

function traitsOf({ objects }: CsiContext, spec: VolumeSpec): VolumeTraits {
  const volume = csiVolumeOf(spec);
  const isPersistent = volume?.kind === "persistent";
  const traits = {
    deviceMountable: isPersistent,
    mountOptions: true,
    expandable: spec.kind === "persistent" && isPersistent && spec.migrated !== "inline",
  };
  try {
    const rules = rulesOf(volume && objects.csiDriver(volume.driver));
    return {
      ...traits,
      attachable: isPersistent && rules.attachRequired ? "yes" : "no",
      requiresRemount: rules.republish,
      selinuxMount: isPersistent && rules.selinuxMount,
    };
  } catch {
    // The cache has never been complete: whether it must be attached cannot be said yet.
    return {
      ...traits,
      attachable: isPersistent ? "unknown" : "no",
      requiresRemount: false,
      selinuxMount: false,
    };
  }
}
