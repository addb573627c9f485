import { describe, expect, test } from "vitest";
import type { ApplyGroup } from "../host.ts";
import type { NodePlugin } from "../plugin.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";
import { createBuiltInPlugins } from "./built-in.ts";
import { givenCsi } from "./csi-stage.testing.ts";
import { createFlexVolumePlugin } from "./flex-volume.ts";
import { createStage, inline, persistent, pod, POD_UID, setUpOf, signal } from "./plugins.testing.ts";
import { createSan, IQN, OURS, WWN } from "./san.testing.ts";

/**
 * fsGroup and its change policy, for every plugin. What lives longer than the pod is walked as the policy says; what is
 * made for the pod is always given to its group; what belongs to the machine or to a server never is.
 */

const GID = 5;
const POLICIES = [undefined, "Always", "OnRootMismatch"] as const;

type State = readonly [what: string, gid: number, mode: number, isRight: boolean];
const STATES: readonly State[] = [
  ["given to the group before", GID, 0o2770, true],
  ["given to the group before, open to all", GID, 0o2777, true],
  ["of another group", 6, 0o2770, false],
  ["without setgid", GID, 0o770, false],
  ["closed to the group", GID, 0o2700, false],
];

const FLEX = {
  attach: true,
  selinuxRelabel: false,
  supportsMetrics: false,
  fsGroup: true,
  requiresFsResize: true,
};

/** A machine with disks, every plugin of the node on it, and a note of whose group was changed how. */
async function given({ overIscsi = false } = {}) {
  const stage = createStage();
  const san = await createSan(stage.machine, { joined: false, overIscsi });
  const asked: ApplyGroup[] = [];
  const { files } = stage.host;
  const host = {
    ...stage.host,
    files: {
      ...files,
      applyGroup(request: ApplyGroup) {
        asked.push(request);
        return files.applyGroup(request);
      },
    },
  };
  const deps = { ...stage.deps, host };
  const flex = createFlexVolumePlugin(
    {
      ...deps,
      call: async ({ verb }) =>
        verb === "waitforattach" ? { kind: "success", device: san.ourName() } : { kind: "not-supported" },
    },
    { driver: "x/y", can: FLEX },
  );
  await files.makeDirectories("/data", 0o755);
  return { ...stage, files, asked, plugins: [...createBuiltInPlugins(deps), flex] };
}

const pluginFor = (plugins: readonly NodePlugin[], spec: VolumeSpec) =>
  plugins.find((plugin) => plugin.canSupport(spec))!;

describe("a volume that outlives its pods", () => {
  for (const [name, spec] of [
    ["iscsi", persistent({ iscsi: { targetPortal: "10.0.0.1", iqn: IQN, lun: 7 } })],
    ["fc", persistent({ fc: { targetWWNs: [WWN], lun: 0 } })],
    ["flexvolume", persistent({ flexVolume: { driver: "x/y", fsType: "ext4" } })],
    ["local disk", persistent({ local: { path: `/dev/disk/by-id/scsi-${OURS}`, fsType: "ext4" } })],
    ["local directory", persistent({ local: { path: "/data" } })],
  ] as const)
    for (const [what, gid, mode, isRight] of STATES)
      for (const policy of POLICIES) {
        const isWalked = policy !== "OnRootMismatch" || !isRight;
        test(`${name} ${what}, policy ${policy}: ${isWalked ? "walked" : "left"}`, async () => {
          const { plugins, files } = await given({ overIscsi: name === "iscsi" });
          const plugin = pluginFor(plugins, spec);
          const devicePath = (await plugin.attach?.waitForAttach({ ...setUpOf(spec), timeoutMs: 1 })) ?? "";
          const deviceMountPath = plugin.device?.mountPath(spec) ?? "";
          await plugin.device?.mount({ ...setUpOf(spec), devicePath, deviceMountPath });
          const root = name === "local directory" ? "/data" : deviceMountPath;
          await files.writeFile(`${root}/theirs`, Buffer.from(""), 0o600);
          await files.applyGroup({ path: root, gid, readOnly: false, onRootMismatch: false, signal });
          await files.chmod(root, mode);
          await files.chown(`${root}/theirs`, { gid: 7 });

          await plugin.setUp(
            setUpOf(spec, { devicePath, deviceMountPath, fsGroup: GID, fsGroupChangePolicy: policy }),
          );

          expect((await files.stat(`${root}/theirs`))?.gid).toBe(isWalked ? GID : 7);
        });
      }

  for (const policy of POLICIES)
    test(`csi, policy ${policy}`, async () => {
      const world = givenCsi();
      const asked: ApplyGroup[] = [];
      const applyGroup = world.host.files.applyGroup.bind(world.host.files);
      world.host.files.applyGroup = (request) => {
        asked.push(request);
        return applyGroup(request);
      };
      const spec = persistent({
        csi: { driver: "d", volumeHandle: "h1", fsType: "ext4" },
        accessModes: ["ReadWriteOnce"],
      });

      await world.publish(spec, { fsGroup: GID, fsGroupChangePolicy: policy });

      expect(asked).toMatchObject([{ gid: GID, onRootMismatch: policy === "OnRootMismatch" }]);
    });
});

describe("whatever the policy says", () => {
  const defaultMode = 0o644;
  const projected = {
    defaultMode,
    sources: [{ downwardAPI: { items: [{ path: "n", fieldRef: { fieldPath: "metadata.name" } }] } }],
  };
  for (const [name, volume, isGiven] of [
    ["emptyDir", { emptyDir: {} }, true],
    ["configMap", { configMap: { name: "c", defaultMode } }, true],
    ["secret", { secret: { secretName: "s", defaultMode } }, true],
    ["downwardAPI", { downwardAPI: { ...projected.sources[0]!.downwardAPI, defaultMode } }, true],
    ["projected", { projected }, true],
    ["hostPath", { hostPath: { path: "/data" } }, false],
    ["nfs", { nfs: { server: "s", path: "/x" } }, false],
  ] as const)
    for (const policy of POLICIES)
      test(`${name}, policy ${policy}: ${isGiven ? "all of it" : "nothing"} is given to the group`, async () => {
        const { plugins, asked, configMaps, secrets } = await given();
        configMaps.set("c", { data: { a: "1" } });
        secrets.set("ns/s", { data: { a: "MQ==" } });
        const spec = inline(volume);

        await pluginFor(plugins, spec).setUp(
          setUpOf(spec, { pod: pod(), podUid: POD_UID, fsGroup: GID, fsGroupChangePolicy: policy }),
        );

        expect(asked.some(({ onRootMismatch }) => onRootMismatch)).toBe(false);
        expect(asked.length > 0).toBe(isGiven);
      });
});
