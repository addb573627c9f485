import type { Volume } from "kubernetes-types/core/v1.js";
import type { Pod } from "../kube/api/pod.ts";
import type { VolumeName } from "../volumes/names.ts";
import type { PluginRegistry } from "../volumes/registry.ts";
import { resolveVolume, type Resolution, type VolumeCaches } from "../volumes/resolve.ts";
import type { VolumeSpec } from "../volumes/spec.ts";
import { toVolumeName } from "../volumes/names.ts";

/** What one volume of a pod asks for. */
export type Wish =
  | {
      readonly kind: "attach";
      readonly volume: VolumeName;
      readonly spec: VolumeSpec;
      readonly plugin: string;
    }
  /** Nothing to attach; `plugin` is there where one serves it, for the count of volumes in use. */
  | { readonly kind: "none"; readonly plugin: string | undefined }
  | { readonly kind: "unresolved"; readonly resolution: Extract<Resolution, { kind: "unresolved" }> };

export interface PopulateDeps {
  readonly plugins: PluginRegistry;
  readonly caches: VolumeCaches;
}

export function wishOf(pod: Pod, volume: Volume, { plugins, caches }: PopulateDeps): Wish {
  const resolution = resolveVolume(pod, volume, caches);
  if (resolution.kind === "unresolved") return { kind: "unresolved", resolution };
  const { spec } = resolution;
  const plugin = plugins.bySpec(spec);
  if (plugin === undefined) return { kind: "none", plugin: undefined };
  const label = plugin.metricName(spec);
  const pluginVolume = plugin.needsAttach(spec) ? plugin.volumeName(spec) : undefined;
  if (!pluginVolume) return { kind: "none", plugin: label };
  return { kind: "attach", volume: toVolumeName(plugin.name, pluginVolume), spec, plugin: label };
}
