import { describe, expect, test } from "vitest";
import { VolumeCapability_AccessMode_Mode as Mode } from "../../csi/gen/csi_pb.ts";
import { podInfoOf, publishRequest, stageRequest, toAccessMode, wantsGroup } from "./csi-requests.ts";
import { csiVolumeOf, type PersistentCsiVolume } from "./csi-source.ts";
import { csi, inline, POD, pv } from "./csi-stage.testing.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";

const plain = { singleNodeMultiWriter: false, mountGroup: false };
const volumeOf = (spec: VolumeSpec) => csiVolumeOf(spec)!;
const persistentOf = (spec: VolumeSpec) => csiVolumeOf(spec) as PersistentCsiVolume;

const staging = (spec: VolumeSpec) => ({
  volume: persistentOf(spec),
  stagingPath: "/stage",
  publishContext: {},
  secrets: {},
  traits: plain,
});

const publishing = (spec: VolumeSpec) => ({
  volume: volumeOf(spec),
  handle: "h1",
  stagingPath: "/stage",
  targetPath: "/target",
  publishContext: {},
  secrets: {},
  podInfo: undefined,
  tokens: new Map(),
  tokensInSecrets: false,
  traits: plain,
});

describe("NodeStageVolume, field by field (14.6)", () => {
  test("everything a volume can say", () => {
    const spec = pv({ mountOptions: ["noatime"], ...csi({ volumeAttributes: { a: "b" } }) });

    const request = stageRequest({
      ...staging(spec),
      publishContext: { k: "v" },
      secrets: { user: "me" },
      traits: { singleNodeMultiWriter: true, mountGroup: true },
      fsGroup: 3_000,
      selinuxLabel: "system_u:object_r:container_file_t:s0:c1,c2",
    });

    expect(request).toEqual({
      volumeId: "h1",
      stagingTargetPath: "/stage",
      publishContext: { k: "v" },
      volumeContext: { a: "b" },
      secrets: { user: "me" },
      volumeCapability: {
        accessMode: { mode: Mode.SINGLE_NODE_MULTI_WRITER },
        accessType: {
          case: "mount",
          value: {
            fsType: "ext4",
            mountFlags: ["noatime", 'context="system_u:object_r:container_file_t:s0:c1,c2"'],
            volumeMountGroup: "3000",
          },
        },
      },
    });
  });

  test("a block volume has neither flags nor group", () => {
    const request = stageRequest({
      ...staging(pv({ volumeMode: "Block", mountOptions: ["noatime"] })),
      traits: { singleNodeMultiWriter: false, mountGroup: true },
      fsGroup: 1,
    });

    expect(request.volumeCapability?.accessType).toEqual({ case: "block", value: {} });
  });

  test("scenario 65: the beta annotation for mount options is not used for CSI", () => {
    const spec = pv();
    if (spec.kind === "persistent") {
      spec.volume.metadata.annotations = { "volume.beta.kubernetes.io/mount-options": "nodev" };
    }

    const { volumeCapability } = stageRequest(staging(spec));

    expect(volumeCapability?.accessType).toMatchObject({ value: { mountFlags: [] } });
  });
});

describe("NodePublishVolume, field by field (14.7)", () => {
  test("a PersistentVolume: read-only is the pod's claim source, not the volume's own field", () => {
    const request = publishRequest(publishing(pv(csi({ readOnly: true }))));

    expect(request).toMatchObject({
      volumeId: "h1",
      stagingTargetPath: "/stage",
      targetPath: "/target",
      readonly: false,
      volumeContext: {},
    });
    expect(publishRequest(publishing(pv({}, { readOnly: true }))).readonly).toBe(true);
  });

  test("an inline volume: its own read-only, ReadWriteOnce, no flags", () => {
    const request = publishRequest(
      publishing(inline({ readOnly: true, fsType: "xfs", volumeAttributes: { a: "b" } })),
    );

    expect(request).toMatchObject({
      readonly: true,
      volumeContext: { a: "b" },
      volumeCapability: {
        accessMode: { mode: Mode.SINGLE_NODE_WRITER },
        accessType: { value: { fsType: "xfs", mountFlags: [], volumeMountGroup: "" } },
      },
    });
  });

  test("scenario 63: five pod keys, which win over attributes, and nothing of them reaches the spec", () => {
    const key = "csi.storage.k8s.io/pod.name";
    const spec = pv(csi({ volumeAttributes: { a: "b", [key]: "liar" } }));

    const { volumeContext } = publishRequest({
      ...publishing(spec),
      podInfo: podInfoOf(POD, { ephemeral: false }),
    });

    expect(volumeContext).toEqual({
      a: "b",
      [key]: "p1",
      "csi.storage.k8s.io/pod.namespace": "ns",
      "csi.storage.k8s.io/pod.uid": "u1",
      "csi.storage.k8s.io/serviceAccount.name": "sa",
      "csi.storage.k8s.io/ephemeral": "false",
    });
    expect(stageRequest(staging(spec)).volumeContext).toEqual({ a: "b", [key]: "liar" });
  });

  test("scenario 68: tokens are JSON by audience, in the context or in the secrets", () => {
    const tokens = new Map([["gcp", { token: "t", expirationTimestamp: "2026-01-01T00:00:00Z" }]]);
    const key = "csi.storage.k8s.io/serviceAccount.tokens";
    const text = '{"gcp":{"token":"t","expirationTimestamp":"2026-01-01T00:00:00Z"}}';

    const inContext = publishRequest({ ...publishing(pv()), tokens });
    const inSecrets = publishRequest({ ...publishing(pv()), tokens, tokensInSecrets: true });

    expect([inContext.volumeContext, inContext.secrets]).toEqual([{ [key]: text }, {}]);
    expect([inSecrets.volumeContext, inSecrets.secrets]).toEqual([{}, { [key]: text }]);
  });
});

describe("access modes (scenario 67)", () => {
  for (const [mode, incapable, capable] of [
    ["ReadWriteOnce", Mode.SINGLE_NODE_WRITER, Mode.SINGLE_NODE_MULTI_WRITER],
    ["ReadWriteOncePod", Mode.SINGLE_NODE_WRITER, Mode.SINGLE_NODE_SINGLE_WRITER],
    ["ReadOnlyMany", Mode.MULTI_NODE_READER_ONLY, Mode.MULTI_NODE_READER_ONLY],
    ["ReadWriteMany", Mode.MULTI_NODE_MULTI_WRITER, Mode.MULTI_NODE_MULTI_WRITER],
    ["Sometimes", Mode.UNKNOWN, Mode.UNKNOWN],
  ] as const) {
    test(`${mode} is what the driver can tell apart`, () => {
      expect(toAccessMode(mode, { singleNodeMultiWriter: false })).toBe(incapable);
      expect(toAccessMode(mode, { singleNodeMultiWriter: true })).toBe(capable);
    });
  }

  test("the first mode counts, and none means ReadWriteOnce", () => {
    const modeOf = (accessModes: string[]) =>
      stageRequest(staging(pv({ accessModes }))).volumeCapability?.accessMode?.mode;

    expect(modeOf(["ReadOnlyMany", "ReadWriteOnce"])).toBe(Mode.MULTI_NODE_READER_ONLY);
    expect(modeOf([])).toBe(Mode.SINGLE_NODE_WRITER);
  });
});

describe("scenario 70: whose files get the pod's group", () => {
  const policyDefault = "ReadWriteOnceWithFSType";
  for (const [policy, modes, fsType, readOnly, expected] of [
    [policyDefault, ["ReadWriteOnce"], "ext4", false, true],
    [policyDefault, ["ReadWriteOncePod"], "ext4", false, true],
    [policyDefault, ["ReadWriteOnce"], "", false, false],
    [policyDefault, ["ReadWriteMany"], "ext4", false, false],
    [policyDefault, ["ReadWriteMany", "ReadWriteOnce"], "ext4", false, true],
    ["None", ["ReadWriteOnce"], "ext4", false, false],
    ["File", ["ReadWriteMany"], "", false, true],
    ["File", ["ReadWriteOnce"], "ext4", true, false], // nobody may write, so nobody needs the group
  ] as const) {
    test(`${policy}, ${modes.join("+")}, fsType "${fsType}", readOnly ${readOnly}: ${expected}`, () => {
      const volume = volumeOf(pv({ accessModes: [...modes], ...csi({ fsType }) }, { readOnly }));

      expect(wantsGroup(volume, { fsGroup: 3_000, policy, traits: plain })).toBe(expected);
    });
  }

  test("an inline volume with a filesystem: yes; no fsGroup, or a driver that sets it itself: no", () => {
    const volume = volumeOf(inline({ fsType: "ext4" }));

    expect(wantsGroup(volume, { fsGroup: 1, policy: policyDefault, traits: plain })).toBe(true);
    expect(wantsGroup(volume, { fsGroup: undefined, policy: policyDefault, traits: plain })).toBe(false);
    expect(
      wantsGroup(volume, { fsGroup: 1, policy: policyDefault, traits: { ...plain, mountGroup: true } }),
    ).toBe(false);
  });
});
