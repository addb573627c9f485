import { expect, test } from "vitest";
import { toVolumeName, type VolumeName } from "./names.ts";
import type { AttachablePlugin } from "./plugin.ts";
import { createPluginRegistry } from "./registry.ts";
import { specName, type VolumeSpec } from "./spec.ts";

/** Serves the specs whose names start as it does, and calls them by what follows. */
function plugin(name: string, prefix: string): AttachablePlugin {
  return {
    name,
    canSupport: (spec) => specName(spec).startsWith(prefix),
    needsAttach: () => true,
    volumeName: (spec) => specName(spec).slice(prefix.length) || undefined,
    metricName: () => name,
    attach: () => Promise.resolve(""),
    detach: () => Promise.resolve(),
    verify: () => "unknown",
  };
}

const spec = (name: string): VolumeSpec => ({ kind: "inline", volume: { name } });

const csi = plugin("kubernetes.io/csi", "csi-");
const flex = plugin("vendor/driver", "flex-");

test("a volume is served by the one plugin that supports it, and named by it", () => {
  const registry = createPluginRegistry(() => [csi, flex]);

  expect(registry.bySpec(spec("flex-data"))).toBe(flex);
  expect(registry.volumeNameOf(spec("flex-data"))).toBe("vendor/driver/data");
  expect(registry.volumeNameOf(spec("csi-a/b"))).toBe("kubernetes.io/csi/a/b");
});

test("a volume that no plugin or that several support is served by none", () => {
  const registry = createPluginRegistry(() => [csi, flex, plugin("vendor/other", "csi-d")]);

  expect(registry.bySpec(spec("nfs-data"))).toBeUndefined();
  expect(registry.bySpec(spec("csi-data"))).toBeUndefined();
  expect(registry.volumeNameOf(spec("csi-data"))).toBeUndefined();
  expect(registry.bySpec(spec("csi-else"))).toBe(csi);
});

test("a volume whose plugin misses a field has no name", () => {
  const registry = createPluginRegistry(() => [csi]);

  expect(registry.bySpec(spec("csi-"))).toBe(csi);
  expect(registry.volumeNameOf(spec("csi-"))).toBeUndefined();
});

test("where only the name is left, it names the plugin", () => {
  const registry = createPluginRegistry(() => [csi, flex]);

  expect(registry.byVolume(toVolumeName("kubernetes.io/csi", "d^a/b"))).toEqual({
    plugin: csi,
    pluginVolume: "d^a/b",
  });
  expect(registry.byVolume(toVolumeName("kubernetes.io/rbd", "x"))).toBeUndefined();
  expect(registry.byVolume("rubbish" as VolumeName)).toBeUndefined();
});

test("a plugin that comes later is found, and one that went is not", () => {
  let plugins = [csi];
  const registry = createPluginRegistry(() => plugins);

  plugins = [flex];

  expect(registry.bySpec(spec("flex-data"))).toBe(flex);
  expect(registry.bySpec(spec("csi-data"))).toBeUndefined();
});
