import { describe, expect, test } from "vitest";
import { NodeServiceCapability_RPC_Type as Rpc } from "../../csi/gen/csi_pb.ts";
import { sha256 } from "../paths.ts";
import { ATTACHMENT, csi, givenCsi, inline, pv } from "./csi-stage.testing.ts";
import { ROOT } from "./plugins.testing.ts";

const STAGING = `${ROOT}/plugins/kubernetes.io/csi/d/${sha256("h1")}/globalmount`;
const GLOBAL = STAGING.replace("/globalmount", "");
const POD_DIR = `${ROOT}/pods/u1/volumes/kubernetes.io~csi/pv1`;
const TARGET = `${POD_DIR}/mount`;

describe("a volume's life", () => {
  test("stage, publish, unpublish, unstage: nothing is left", async () => {
    const world = givenCsi();
    const before = world.machine.describe(ROOT);

    await world.stage(pv());
    const attributes = await world.publish(pv());
    const [atStaging, atTarget] = [
      await world.host.mounts.isMountPoint(STAGING),
      await world.host.mounts.isMountPoint(TARGET),
    ];
    await world.unpublish(pv());
    await world.unstage(pv());

    expect([atStaging, atTarget]).toEqual([true, true]);
    expect(attributes).toEqual({ readOnly: false, managed: true, selinuxRelabel: false });
    expect(world.backend.work()).toEqual([
      "stage h1",
      "publish h1",
      `unpublish h1 ${TARGET}`,
      `unstage h1 ${STAGING}`,
    ]);
    expect(world.machine.describe(ROOT).filter((line) => !/ directory$/.test(line))).toEqual(before);
    expect(await world.host.files.stat(GLOBAL)).toBeUndefined();
    expect(await world.host.files.stat(POD_DIR)).toBeUndefined();
  });

  test("the records are the kubelet's, byte by byte", async () => {
    const world = givenCsi();

    await world.stage(pv());
    await world.publish(pv());

    expect(await world.host.files.read(`${GLOBAL}/vol_data.json`)).toBe(
      '{"driverName":"d","volumeHandle":"h1"}\n',
    );
    expect(await world.host.files.read(`${POD_DIR}/vol_data.json`)).toBe(
      `{"attachmentID":"${ATTACHMENT}","driverName":"d","nodeName":"n1","specVolID":"pv1","volumeHandle":"h1","volumeLifecycleMode":"Persistent"}\n`,
    );
  });

  test("what the driver can do is asked once, and again after its connection was lost (FIX 19)", async () => {
    const world = givenCsi();
    await world.stage(pv());
    await world.publish(pv());
    expect(world.backend.calls.filter((call) => call === "capabilities")).toHaveLength(1);

    world.channels[0]!.disconnect();
    world.channels[0]!.connect();
    await world.publish(pv());

    expect(world.backend.calls.filter((call) => call === "capabilities")).toHaveLength(2);
  });

  test("scenario 66: a driver that does not stage gets no directory and no staging path (FIX 17)", async () => {
    const world = givenCsi({ capabilities: [] });

    await world.stage(pv());
    await world.publish(pv());
    await world.unpublish(pv());
    await world.unstage(pv());

    expect(world.backend.work()).toEqual(["publish h1", `unpublish h1 ${TARGET}`]);
    expect(world.backend.publishes[0]?.stagingTargetPath).toBe("");
    expect(await world.host.files.stat(`${ROOT}/plugins`)).toBeUndefined();
  });

  test("scenario 73: a handle with slashes is hashed in the path and raw in the record", async () => {
    const world = givenCsi({ driver: { attachRequired: false } });
    const spec = pv(csi({ volumeHandle: "rg#acc/share#../x" }));

    await world.stage(spec);

    const path = world.plugin.device!.mountPath(spec);
    expect(path).toBe(STAGING.replace(sha256("h1"), sha256("rg#acc/share#../x")));
    expect(await world.host.files.read(path.replace("/globalmount", "/vol_data.json"))).toContain(
      '"rg#acc/share#../x"',
    );
  });

  test("a driver or a volume named to lead out of the root directory gets no path at all", () => {
    const { plugin } = givenCsi();

    expect(() => plugin.device!.mountPath(pv(csi({ driver: ".." })))).toThrow(/directory name/);
    expect(() => plugin.mountPath(pv({}, { name: ".." }), "u1")).toThrow(/directory name/);
    expect(() => plugin.mountPath(pv(), "../..")).toThrow(/directory name/);
  });
});

describe("attachments", () => {
  test("scenario 72: what the controller was told on attaching is handed on", async () => {
    const world = givenCsi({ attachment: { status: { attached: true, attachmentMetadata: { k: "v" } } } });

    await world.stage(pv());
    await world.publish(pv());

    expect(world.backend.stages[0]?.publishContext).toEqual({ k: "v" });
    expect(world.backend.publishes[0]?.publishContext).toEqual({ k: "v" });
    expect(await world.waitForAttach(pv())).toBe(ATTACHMENT);
  });

  test("a driver that needs no attaching is mounted without looking for an attachment", async () => {
    const world = givenCsi({ driver: { attachRequired: false }, attachment: undefined });

    await world.stage(pv());

    expect(world.backend.work()).toEqual(["stage h1"]);
    expect(world.plugin.traits(pv()).attachable).toBe("no");
  });

  for (const [claim, attachment, message] of [
    ["missing", undefined, `volume h1 has GET error for volume attachment ${ATTACHMENT}: `],
    [
      "being deleted",
      { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } },
      "volume attachment is being deleted",
    ],
    ["failed", { status: { attached: false, attachError: { message: "quota" } } }, "quota"],
    [
      "not there yet",
      { status: { attached: false } },
      `volume h1 is not attached for volume attachment ${ATTACHMENT}`,
    ],
  ] as const) {
    test(`scenario 74: an attachment that is ${claim} is waited for, and nothing is staged`, async () => {
      const world = givenCsi();
      world.objects.attachment = attachment;

      const waiting = world.waitForAttach(pv());

      await expect(waiting).rejects.toMatchObject({
        message: expect.stringContaining(message) as string,
        outcome: "transient",
        blockedBy: [{ kind: "attachment", name: ATTACHMENT }],
      });
      expect(world.backend.work()).toEqual([]);
    });
  }

  for (const [claim, driver, errorCode, reached] of [
    ["scenario 15: a full node", { nodeAllocatableUpdatePeriodSeconds: 60 }, 8, true],
    ["scenario 16: a driver that never says how full", {}, 8, false],
    ["scenario 16: another failure", { nodeAllocatableUpdatePeriodSeconds: 60 }, undefined, false],
  ] as const) {
    test(`${claim}: limit reached ${reached}, and the driver is asked again only then`, async () => {
      const attachError = { message: "no", errorCode };
      const world = givenCsi({
        driver: driver as object,
        attachment: { status: { attached: false, attachError } },
      });

      const answer = await world.plugin.attach!.limitReached!(pv(), new AbortController().signal);

      expect(answer).toBe(reached);
      expect(world.refreshed).toEqual(reached ? ["d"] : []);
    });
  }
});

describe("secrets, tokens and pod info", () => {
  test("scenario 59: a missing secret is waited for by name, and the driver is not called", async () => {
    const world = givenCsi();
    const spec = pv(csi({ nodePublishSecretRef: { namespace: "sec", name: "s" } }));

    const publishing = world.publish(spec);

    await expect(publishing).rejects.toMatchObject({
      message: 'fetching NodePublishSecretRef sec/s failed: secrets "s" not found',
      outcome: "transient",
      blockedBy: [{ kind: "secret", namespace: "sec", name: "s" }],
    });
    expect(world.backend.work()).toEqual([]);
    expect(await world.host.files.stat(POD_DIR)).toBeUndefined();
  });

  test("each call gets its own secret; no word of it reaches an error, a log or a record", async () => {
    const world = givenCsi({
      secrets: { "sec/stage": { key: "hunter22" }, "sec/pub": { key: "correct-horse" } },
    });
    const spec = pv(
      csi({
        nodeStageSecretRef: { namespace: "sec", name: "stage" },
        nodePublishSecretRef: { namespace: "sec", name: "pub" },
      }),
    );
    await world.stage(spec);
    world.backend.fail("publish", "INTERNAL", "login with correct-horse failed");

    const error: unknown = await world.publish(spec).catch((thrown: unknown) => thrown);

    expect(world.backend.stages[0]?.secrets).toEqual({ key: "hunter22" });
    expect(world.backend.publishes[0]?.secrets).toEqual({ key: "correct-horse" });
    expect(String(error)).toContain("rpc error: code = Internal desc = login with ***stripped*** failed");
    const everywhere = [
      String(error),
      JSON.stringify(error),
      ...world.logs,
      JSON.stringify(world.host.log),
    ].join("\n");
    expect(everywhere).not.toMatch(/hunter22|correct-horse/);
  });

  test("scenario 71: an inline volume is published only, with the secret of its pod's namespace", async () => {
    const world = givenCsi({
      driver: { volumeLifecycleModes: ["Ephemeral"], podInfoOnMount: true },
      secrets: { "ns/s": { key: "value" } },
    });
    const spec = inline({ nodePublishSecretRef: { name: "s" } });

    await world.publish(spec);

    const handle = `csi-${sha256("u1v")}`;
    expect(world.backend.work()).toEqual([`publish ${handle}`]);
    expect(world.backend.publishes[0]).toMatchObject({
      secrets: { key: "value" },
      stagingTargetPath: "",
      volumeContext: { "csi.storage.k8s.io/ephemeral": "true" },
    });
    const record = await world.host.files.read(`${ROOT}/pods/u1/volumes/kubernetes.io~csi/v/vol_data.json`);
    expect(record).toContain('"volumeLifecycleMode":"Ephemeral"');
    expect(world.plugin.traits(spec)).toMatchObject({ attachable: "no", deviceMountable: false });
  });

  test("scenario 64: without a CSIDriver object no pod keys, no tokens, and no inline volumes", async () => {
    const world = givenCsi();

    await world.publish(pv(csi({ volumeAttributes: { a: "b" } })));

    expect(world.backend.publishes[0]?.volumeContext).toEqual({ a: "b" });
    await expect(world.publish(inline())).rejects.toMatchObject({
      message: 'volume mode "Ephemeral" not supported by driver d (no CSIDriver object)',
      outcome: "transient",
      blockedBy: [{ kind: "csi-driver-object", name: "d" }],
    });
  });

  test("scenario 68: one token an audience, bound to the pod; the empty audience asks for none", async () => {
    const world = givenCsi({
      driver: { tokenRequests: [{ audience: "gcp", expirationSeconds: 600 }, { audience: "" }] },
    });

    await world.publish(pv());

    const text =
      world.backend.publishes[0]?.volumeContext["csi.storage.k8s.io/serviceAccount.tokens"] ?? "{}";
    expect(Object.keys(JSON.parse(text) as object).sort()).toEqual(["", "gcp"]);
    const asked = { namespace: "ns", serviceAccount: "sa", pod: { name: "p1", uid: "u1" } };
    expect(world.tokens).toEqual([
      { ...asked, audiences: ["gcp"], expirationSeconds: 600 },
      { ...asked, audiences: [], expirationSeconds: undefined },
    ]);
  });

  test("scenario 78: each refresh publishes again with a fresh token and stages nothing", async () => {
    const world = givenCsi({ driver: { requiresRepublish: true, tokenRequests: [{ audience: "gcp" }] } });
    await world.stage(pv());
    await world.publish(pv());

    await world.publish(pv(), { isRemount: true });

    expect(world.backend.work()).toEqual(["stage h1", "publish h1", "publish h1"]);
    const [first, second] = world.backend.publishes;
    expect(second?.targetPath).toBe(first?.targetPath);
    expect(second?.volumeContext).not.toEqual(first?.volumeContext);
    expect(world.plugin.traits(pv()).requiresRemount).toBe(true);
  });
});

describe("fsGroup", () => {
  const grouped = { fsGroup: 3_000, fsGroupChangePolicy: "Always" };

  test("scenario 69: a driver that takes the group gets it, and nothing is walked", async () => {
    const world = givenCsi({ capabilities: [Rpc.STAGE_UNSTAGE_VOLUME, Rpc.VOLUME_MOUNT_GROUP] });

    await world.stage(pv(), { fsGroup: 3_000 });
    await world.publish(pv(), grouped);

    const value = { volumeMountGroup: "3000" };
    expect(world.backend.stages[0]?.volumeCapability?.accessType).toMatchObject({ value });
    expect(world.backend.publishes[0]?.volumeCapability?.accessType).toMatchObject({ value });
    expect(world.host.log.join("\n")).not.toContain("applyGroup");
  });

  test("scenario 70: otherwise the group is applied to the mounted volume", async () => {
    const world = givenCsi();

    await world.publish(pv(), grouped);

    expect(world.host.log).toContain(`files.applyGroup ${TARGET}`);
    expect((await world.host.files.stat(TARGET))?.gid).toBe(3_000);
  });

  test("scenario 80: a refresh does not walk the volume again (FIX 21)", async () => {
    const world = givenCsi();
    await world.publish(pv(), grouped);

    await world.publish(pv(), { ...grouped, isRemount: true });

    expect(world.host.log.filter((line) => line.includes("applyGroup"))).toHaveLength(1);
  });

  test("scenario 58: a walk that fails leaves an uncertain volume with its record", async () => {
    const world = givenCsi();
    world.host.fail("files.applyGroup", { code: "Failed" });

    const publishing = world.publish(pv(), grouped);

    await expect(publishing).rejects.toMatchObject({
      outcome: "uncertain",
      message: expect.stringMatching(/^applyFSGroup failed for vol h1: /) as string,
    });
    expect(await world.host.files.read(`${POD_DIR}/vol_data.json`)).toContain('"h1"');
  });

  test("a CSIDriver that says nothing about fsGroup is waited for, where it matters", async () => {
    const world = givenCsi({ driver: {} });

    await expect(world.publish(pv(), grouped)).rejects.toMatchObject({ outcome: "transient" });
    await world.publish(pv());
    expect(world.backend.work()).toEqual(["publish h1"]);
  });
});

describe("growth and figures", () => {
  test("a driver that cannot expand says so; one that can is told path, staging path and size", async () => {
    const world = givenCsi();
    await expect(world.expand(pv())).rejects.toMatchObject({ kind: "not-supported", outcome: "final" });

    const able = givenCsi({ capabilities: [Rpc.EXPAND_VOLUME] });
    await able.expand(pv());

    expect(able.backend.work()).toEqual(["expand h1 /mnt /stage 2048"]);
    await expect(able.expand(pv(), -1)).rejects.toMatchObject({ outcome: "final" });
    await expect(able.expand(pv(), 1, "")).rejects.toMatchObject({ outcome: "final" });
  });

  for (const [code, kind, outcome] of [
    ["FAILED_PRECONDITION", "in-use", "final"],
    ["OUT_OF_RANGE", "infeasible", "final"],
    ["NOT_FOUND", "infeasible", "final"],
    ["INVALID_ARGUMENT", "infeasible", "final"],
    ["INTERNAL", "other", "final"],
    ["DEADLINE_EXCEEDED", "other", "uncertain"], // scenario 62 (FIX 15)
  ] as const) {
    test(`expansion answered with ${code} is ${kind} and ${outcome}`, async () => {
      const world = givenCsi({ capabilities: [Rpc.EXPAND_VOLUME] });
      world.backend.fail("expand", code);

      await expect(world.expand(pv())).rejects.toMatchObject({ kind, outcome });
    });
  }

  test("stats: bytes and inodes are read, unknown units passed over", async () => {
    const world = givenCsi({ capabilities: [Rpc.GET_VOLUME_STATS] });

    expect(await world.stats(pv())).toEqual({
      availableBytes: 60,
      capacityBytes: 100,
      usedBytes: 40,
      inodesFree: 6,
      inodes: 10,
      inodesUsed: 4,
    });
    await expect(givenCsi().stats(pv())).rejects.toMatchObject({ kind: "not-supported" });
  });
});
