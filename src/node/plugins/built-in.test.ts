import { expect, test } from "vitest";
import { createBuiltInPlugins } from "./built-in.ts";
import { createStage, inline, persistent } from "./plugins.testing.ts";

const plugins = createBuiltInPlugins(createStage().deps);

for (const [spec, plugin, volume] of [
  [inline({ emptyDir: {} }), "empty-dir", "v"],
  [inline({ gitRepo: { repository: "r" } }), "git-repo", "v"],
  [inline({ hostPath: { path: "/x" } }), "host-path", "/x"],
  [persistent({ hostPath: { path: "/x" } }), "host-path", "/x"],
  [inline({ nfs: { server: "s", path: "/e" } }), "nfs", "s//e"],
  [persistent({ nfs: { server: "s", path: "/e" } }), "nfs", "s//e"],
  [inline({ secret: { secretName: "s" } }), "secret", "v/s"],
  [inline({ configMap: { name: "c" } }), "configmap", "v/c"],
  [inline({ downwardAPI: {} }), "downward-api", "v"],
  [inline({ projected: {} }), "projected", "v"],
  [persistent({ local: { path: "/x" } }), "local-volume", "pv1"],
  [inline({ iscsi: { targetPortal: "p", iqn: "iqn.x", lun: 1 } }), "iscsi", "p:iqn.x:1"],
  [inline({ fc: { targetWWNs: ["a", "b"], lun: 2 } }), "fc", "[a b]:2"],
  [inline({ fc: { wwids: ["a", "b"] } }), "fc", "[a b]"],
  [inline({ image: { reference: "r" } }), "image", "r"],
] as const)
  test(`a ${spec.kind} ${plugin} is claimed by that plugin alone and called ${volume}`, () => {
    const claiming = plugins.filter((each) => each.canSupport(spec));

    expect(claiming.map(({ name }) => name)).toEqual([`kubernetes.io/${plugin}`]);
    expect(claiming[0]?.volumeName(spec)).toBe(volume);
  });

test("what belongs to CSI, to a claim or to a driver of its own is claimed by none", () => {
  const others = [
    inline({ csi: { driver: "d" } }),
    inline({ persistentVolumeClaim: { claimName: "c" } }),
    inline({ flexVolume: { driver: "a/b" } }),
    persistent({ csi: { driver: "d", volumeHandle: "h" } }),
  ];

  expect(others.flatMap((spec) => plugins.filter((plugin) => plugin.canSupport(spec)))).toEqual([]);
});

test("only what can change or expire is set up again, and only disks are attached and mounted once a node", () => {
  const named = (pick: (traits: ReturnType<(typeof plugins)[number]["traits"]>) => boolean) =>
    plugins
      .filter((plugin) => pick(plugin.traits(inline({}))))
      .map(({ name }) => name.slice("kubernetes.io/".length));

  expect(named((traits) => traits.requiresRemount).sort()).toEqual([
    "configmap",
    "downward-api",
    "projected",
    "secret",
  ]);
  expect(named((traits) => traits.attachable !== "no").sort()).toEqual(["fc", "iscsi"]);
  expect(named((traits) => traits.deviceMountable).sort()).toEqual(["fc", "iscsi", "local-volume"]);
  expect(named((traits) => traits.mountOptions).sort()).toEqual(["fc", "iscsi", "local-volume", "nfs"]);
  expect(named((traits) => traits.selinuxMount).sort()).toEqual(["fc", "iscsi"]);
});
