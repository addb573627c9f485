import type { Volume } from "kubernetes-types/core/v1.js";
import { describe, expect, test } from "vitest";
import type { NodeName, VolumeName } from "../names.ts";
import { createPluginRegistry } from "../registry.ts";
import type { VolumeSpec } from "../spec.ts";
import { createFcPlugin } from "./fc.ts";
import { createIscsiPlugin } from "./iscsi.ts";

const iscsi = createIscsiPlugin();
const fc = createFcPlugin();
const registry = createPluginRegistry(() => [iscsi, fc]);

const PORTAL = { targetPortal: "10.0.0.1:3260", iqn: "iqn.2001-04.com.example:disk", lun: 0 };

const inline = (source: Omit<Volume, "name">): VolumeSpec => ({
  kind: "inline",
  volume: { name: "data", ...source },
});
const persistent = (source: object): VolumeSpec => ({
  kind: "persistent",
  volume: { metadata: { name: "pv-1" }, spec: source },
  readOnly: false,
  migrated: "none",
});

describe("the name of the volume", () => {
  for (const [what, source, name] of [
    [
      "scenario 109: iSCSI",
      { iscsi: PORTAL },
      "kubernetes.io/iscsi/10.0.0.1:3260:iqn.2001-04.com.example:disk:0",
    ],
    [
      "iSCSI with a LUN",
      { iscsi: { ...PORTAL, lun: 7 } },
      "kubernetes.io/iscsi/10.0.0.1:3260:iqn.2001-04.com.example:disk:7",
    ],
    ["iSCSI without a portal", { iscsi: { ...PORTAL, targetPortal: "" } }, undefined],
    ["iSCSI without an iqn", { iscsi: { ...PORTAL, iqn: "" } }, undefined],
    ["FC by target", { fc: { targetWWNs: ["50a", "50b"], lun: 2 } }, "kubernetes.io/fc/[50a 50b]:2"],
    ["FC by target, LUN 0", { fc: { targetWWNs: ["50a"], lun: 0 } }, "kubernetes.io/fc/[50a]:0"],
    [
      "FC by both: the target counts",
      { fc: { targetWWNs: ["50a"], lun: 1, wwids: ["360"] } },
      "kubernetes.io/fc/[50a]:1",
    ],
    ["scenario 110: FC by wwids only", { fc: { wwids: ["3600508b4"] } }, "kubernetes.io/fc/[3600508b4]"],
    ["FC, several wwids", { fc: { wwids: ["360", "361"] } }, "kubernetes.io/fc/[360 361]"],
    [
      "FC, a target without its LUN, and wwids",
      { fc: { targetWWNs: ["50a"], wwids: ["360"] } },
      "kubernetes.io/fc/[360]",
    ],
    ["FC, a target without its LUN", { fc: { targetWWNs: ["50a"] } }, undefined],
    ["scenario 110: FC without either", { fc: { targetWWNs: [], wwids: [] } }, undefined],
    ["neither", { nfs: { server: "nas", path: "/" } }, undefined],
  ] as const) {
    test(`${what}: ${name ?? "none"}, inline and persistent`, () => {
      expect(registry.volumeNameOf(inline(source as object))).toBe(name);
      expect(registry.volumeNameOf(persistent(source))).toBe(name);
    });
  }
});

test("a LUN that is left out is 0, as the kubelet reads it", () => {
  const { lun: _, ...source } = PORTAL;

  expect(iscsi.volumeName(persistent({ iscsi: source }))).toBe(
    "10.0.0.1:3260:iqn.2001-04.com.example:disk:0",
  );
});

describe("nothing has to be done", () => {
  for (const [plugin, spec] of [
    [iscsi, inline({ iscsi: PORTAL })],
    [fc, inline({ fc: { wwids: ["360"] } })],
  ] as const) {
    test(`scenario 108: ${plugin.name} needs attaching, which succeeds at once and stays true`, async () => {
      const volume = registry.volumeNameOf(spec) as VolumeName;
      const at = { volume, spec, node: "a" as NodeName, signal: new AbortController().signal };

      expect(plugin.needsAttach(spec)).toBe(true);
      expect(await plugin.attach(at)).toBe("");
      expect(await plugin.verify(at)).toBe("attached");
      await expect(plugin.detach({ ...at, pluginVolume: "x" })).resolves.toBeUndefined();
      expect(plugin.metricName(spec)).toBe(plugin.name);
      expect(registry.byVolume(volume)?.plugin).toBe(plugin);
    });
  }
});
