import { expect, test } from "vitest";
import type { VolumeSpec } from "../../volumes/spec.ts";
import type { NodePlugin } from "../plugin.ts";
import { createBuiltInPlugins } from "./built-in.ts";
import { createCsiPlugin } from "./csi.ts";
import { createCsiDrivers } from "./csi-drivers.ts";
import { createFlexVolumePlugin } from "./flex-volume.ts";
import {
  createStage,
  inline,
  persistent,
  POD_UID,
  ROOT,
  setUpOf,
  signal,
  tearDownOf,
} from "./plugins.testing.ts";

/**
 * Names of volumes, pods, drivers and disks are chosen by whoever may write API objects, and become paths. Whatever they
 * are, a path lies below the directory of its own kind, or there is none.
 */

const HOSTILE = ["..", ".", "../../../../etc", "a/../../b", "/etc/passwd", "a\0b", "~..~..", "x/y", ""];

function plugins() {
  const { deps, clock } = createStage();
  const drivers = createCsiDrivers({ clock, connect: () => Promise.reject(new Error("none")) as never });
  return [
    ...createBuiltInPlugins(deps),
    createCsiPlugin({ ...deps, drivers, nodeName: "n1" }),
    createFlexVolumePlugin(
      { ...deps, call: () => Promise.reject(new Error("not called")) },
      {
        driver: "acme/disk",
        can: {
          attach: true,
          selinuxRelabel: true,
          supportsMetrics: false,
          fsGroup: true,
          requiresFsResize: true,
        },
      },
    ),
  ];
}

/** Every kind with this text wherever one stands: its own name, and each field that a path is made of. */
function specsOf(text: string): readonly VolumeSpec[] {
  const iscsi = { targetPortal: "10.0.0.1", iqn: "iqn.2026-01.org.example:d", lun: 0 };
  return [
    ...[
      { emptyDir: {} },
      { configMap: { name: "c" } },
      { secret: { secretName: "s" } },
      { downwardAPI: {} },
      { projected: { sources: [] } },
      { nfs: { server: "s", path: "/" } },
      { csi: { driver: "d.example" } },
      { csi: { driver: text } },
      { flexVolume: { driver: "acme/disk" } },
      { iscsi: { ...iscsi, iqn: `iqn.2026-01.org.example:${text}` } },
      { iscsi: { ...iscsi, targetPortal: text } },
      { iscsi: { ...iscsi, iscsiInterface: text } },
      { iscsi: { ...iscsi, initiatorName: "iqn.2026-01.org.example:me" } },
      { fc: { wwids: [text] } },
      { fc: { targetWWNs: [text], lun: 0 } },
    ].map((source) => inline({ name: text, ...source })),
    ...(["Filesystem", "Block"] as const).flatMap((volumeMode) =>
      [
        { csi: { driver: text, volumeHandle: "h" } },
        { csi: { driver: "d.example", volumeHandle: text } },
        { local: { path: "/data" } },
        { iscsi },
        { fc: { wwids: ["360"] } },
        { flexVolume: { driver: "acme/disk" } },
      ].map((source) => persistent({ volumeMode, ...source }, { name: text })),
    ),
  ];
}

/** All paths that the plugin makes of them; those it refuses are left out. */
function pathsOf(plugin: NodePlugin, spec: VolumeSpec, podUid: string): readonly string[] {
  const { device, block } = plugin;
  const asked = [
    () => plugin.mountPath(spec, podUid),
    () => device?.mountPath(spec),
    () => block?.globalMapPath(spec),
    () => block?.stagingPath(spec),
    () => {
      const map = block?.podDeviceMap(spec, podUid);
      return map && `${map.directory}/${map.name}`;
    },
  ];
  return asked.flatMap((ask) => {
    try {
      return ask() || [];
    } catch {
      return [];
    }
  });
}

const PLACES = [
  /^\/var\/lib\/kubelet\/pods\/[^/]+\/volumes\/[^/]+\/[^/]+(\/mount)?$/,
  /^\/var\/lib\/kubelet\/pods\/[^/]+\/volumeDevices\/[^/]+\/[^/]+$/,
  /^\/var\/lib\/kubelet\/plugins\/kubernetes\.io\/csi\/[^/]+\/[0-9a-f]{64}\/globalmount$/,
  /^\/var\/lib\/kubelet\/plugins\/kubernetes\.io\/csi\/volumeDevices\/([^/]+\/dev|staging\/[^/]+)$/,
  /^\/var\/lib\/kubelet\/plugins\/kubernetes\.io\/local-volume\/mounts\/[^/]+$/,
  /^\/var\/lib\/kubelet\/plugins\/kubernetes\.io~local-volume\/volumeDevices\/[^/]+$/,
  /^\/var\/lib\/kubelet\/plugins\/kubernetes\.io\/iscsi\/(volumeDevices\/)?iface-[^/]+\/[^/]+$/,
  /^\/var\/lib\/kubelet\/plugins\/kubernetes\.io\/fc\/(volumeDevices\/)?[^/]+$/,
  /^\/var\/lib\/kubelet\/plugins\/kubernetes\.io\/flexvolume\/acme\/disk\/mounts\/[^/]+$/,
];

function isInPlace(path: string): boolean {
  const steps = path.split("/");
  return (
    !steps.includes("..") &&
    !steps.includes(".") &&
    !path.includes("\0") &&
    PLACES.some((place) => place.test(path))
  );
}

for (const text of [...HOSTILE, "plain"])
  test(`a name like ${JSON.stringify(text)} leads nowhere but to its own place`, () => {
    const all = plugins();
    const found: string[] = [];
    for (const spec of specsOf(text))
      for (const plugin of all.filter((each) => each.canSupport(spec)))
        for (const podUid of [POD_UID, text]) found.push(...pathsOf(plugin, spec, podUid));

    expect(found.filter((path) => !isInPlace(path))).toEqual([]);
    // A suite in which everything is refused would prove nothing.
    if (text === "plain") expect(found.length).toBeGreaterThan(80);
  });

test("what has a hostile name is refused before anything of it is made", async () => {
  const { deps, host, configMaps } = createStage();
  configMaps.set("c", { data: { a: "1" } });
  const before = host.log.length;

  for (const text of HOSTILE.filter((each) => each !== "~..~.."))
    for (const source of [{ emptyDir: {} }, { configMap: { name: "c", defaultMode: 0o644 } }]) {
      const spec = inline({ name: text, ...source });
      const plugin = createBuiltInPlugins(deps).find((each) => each.canSupport(spec));
      await expect(plugin?.setUp(setUpOf(spec))).rejects.toThrow("cannot be a directory name");
      await expect((async () => plugin?.tearDown(tearDownOf(spec)))()).rejects.toThrow(
        "cannot be a directory name",
      );
    }

  expect(host.log.slice(before).filter((line) => !/stat|list|read/i.test(line))).toEqual([]);
});

for (const name of ["staging", "publish"])
  test(`a raw block volume called ${name} would lie over the directory that all share: refused`, async () => {
    const { deps, clock } = createStage();
    const drivers = createCsiDrivers({ clock, connect: () => Promise.reject(new Error("none")) as never });
    const plugin = createCsiPlugin({ ...deps, drivers, nodeName: "n1" });
    const spec = persistent(
      { volumeMode: "Block", csi: { driver: "d.example", volumeHandle: "h" } },
      { name },
    );

    const staged = plugin.block?.setUpDevice?.({ ...setUpOf(spec), signal });

    await expect(staged).rejects.toThrow(`a block volume cannot be called "${name}"`);
    expect(await deps.host.files.list(`${ROOT}/plugins`)).toBeUndefined();
  });
