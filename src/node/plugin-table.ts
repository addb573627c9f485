import { toVolumeName, type VolumeName } from "../volumes/names.ts";
import { specName, type VolumeSpec } from "../volumes/spec.ts";
import type { NodePlugin } from "./plugin.ts";

/** Who serves a volume. Asked anew at every look: FlexVolume drivers come and go. */
export interface PluginTable {
  all(): readonly NodePlugin[];
  byName(name: string): NodePlugin | undefined;
  bySpec(spec: VolumeSpec): Match;
}

export type Match =
  | { readonly kind: "found"; readonly plugin: NodePlugin }
  | { readonly kind: "none"; readonly message: string };

export function createPluginTable(plugins: () => readonly NodePlugin[]): PluginTable {
  return {
    all: plugins,
    byName: (name) => plugins().find((plugin) => plugin.name === name),
    bySpec(spec) {
      const matching = plugins().filter((plugin) => plugin.canSupport(spec));
      const [plugin, another] = matching;
      if (plugin && !another) return { kind: "found", plugin };
      const names = matching.map(({ name }) => name).join(",");
      return {
        kind: "none",
        message: plugin ? `multiple volume plugins matched: ${names}` : "no volume plugin matched",
      };
    },
  };
}

/**
 * What this node calls a volume. One that is shared has the name everybody knows; one that is neither attached nor
 * staged belongs to its pod alone. Undefined where the plugin misses a field.
 */
export function uniqueName(plugin: NodePlugin, spec: VolumeSpec, podUid: string): VolumeName | undefined {
  const { attachable, deviceMountable } = plugin.traits(spec);
  if (attachable === "no" && !deviceMountable)
    return toVolumeName(plugin.name, `${podUid}-${specName(spec)}`);
  const name = plugin.volumeName(spec);
  return name ? toVolumeName(plugin.name, name) : undefined;
}
