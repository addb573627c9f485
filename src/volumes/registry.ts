import { splitVolumeName, toVolumeName, type VolumeName } from "./names.ts";
import type { AttachablePlugin } from "./plugin.ts";
import type { VolumeSpec } from "./spec.ts";

/** Who serves a volume, found by its spec or, where only its name is left, by that. */
export interface PluginRegistry {
  /** Undefined where none does, and where several do: guessing which would be worse. */
  bySpec(spec: VolumeSpec): AttachablePlugin | undefined;
  byVolume(volume: VolumeName): { plugin: AttachablePlugin; pluginVolume: string } | undefined;
  /** Undefined where no plugin serves the spec, or the plugin misses a field. */
  volumeNameOf(spec: VolumeSpec): VolumeName | undefined;
}

/** Asked anew at every look: FlexVolume drivers come and go with their files. */
export function createPluginRegistry(plugins: () => readonly AttachablePlugin[]): PluginRegistry {
  function bySpec(spec: VolumeSpec): AttachablePlugin | undefined {
    const supporting = plugins().filter((plugin) => plugin.canSupport(spec));
    return supporting.length === 1 ? supporting[0] : undefined;
  }
  return {
    bySpec,
    byVolume(volume) {
      const parts = splitVolumeName(volume);
      const plugin = parts && plugins().find(({ name }) => name === parts.plugin);
      return plugin ? { plugin, pluginVolume: parts.pluginVolume } : undefined;
    },
    volumeNameOf(spec) {
      const plugin = bySpec(spec);
      const pluginVolume = plugin?.volumeName(spec);
      return plugin && pluginVolume ? toVolumeName(plugin.name, pluginVolume) : undefined;
    },
  };
}
