import { csiSourceOf, type VolumeSpec } from "../volumes/spec.ts";
import { splitCsiVolume, splitVolumeName, type VolumeName } from "../volumes/names.ts";
import { FORCE_AFTER_MS, type AttachDetachOptions, type DetachPolicy, type ForceRule } from "./options.ts";

/** Under which rule a volume may be taken from a node that still says it uses it. */
export function forceRuleOf(
  volume: VolumeName,
  spec: VolumeSpec | undefined,
  { detachPolicies, disableForceDetachOnTimeout }: AttachDetachOptions,
): ForceRule {
  const policy = detachPolicies.find(({ match }) => matches(match, volume, spec));
  if (policy) return policy.force;
  return disableForceDetachOnTimeout ? { kind: "when-fenced" } : { kind: "after", ms: FORCE_AFTER_MS };
}

function matches(match: DetachPolicy["match"], volume: VolumeName, spec: VolumeSpec | undefined): boolean {
  if (match.kind === "driver") return match.driver === driverOf(volume, spec);
  return spec?.kind === "persistent" && spec.volume.spec?.storageClassName === match.storageClass;
}

/** Also of a volume that was only found by its name. */
export function driverOf(volume: VolumeName, spec: VolumeSpec | undefined): string | undefined {
  const source = spec && csiSourceOf(spec);
  if (source) return source.driver;
  const parts = splitVolumeName(volume);
  return parts && splitCsiVolume(parts.pluginVolume)?.driver;
}
