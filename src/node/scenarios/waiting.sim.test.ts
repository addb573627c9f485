import { describe, expect, test } from "vitest";
import type { CSIDriver } from "../../kube/api/csi-driver.ts";
import { volumeAttachments } from "../../kube/api/volume-attachment.ts";
import { given, type NodeWorld } from "../../sim/node-world.ts";

const SIGNAL = new AbortController().signal;
const messageOf = (error: unknown) => (error as Error).message;

function waitFor(world: NodeWorld, pod: string): Promise<string | undefined> {
  return world.manager.waitForAttachAndMount(world.pod(pod)!, SIGNAL).then(() => undefined, messageOf);
}

describe("waiting for volumes", () => {
  test("scenario 6: the lists are sorted, and what no plugin serves is named apart", async () => {
    const unsupported = (name: string) => ({ name, nfs: { server: "s", path: "/" } });
    const world = await given({
      pods: { web: { uses: ["vol2", "vol02"], inline: [unsupported("vol3"), unsupported("vol03")] } },
      attached: false,
    });

    const said = await waitFor(world, "web");

    expect(said).toContain("unmounted volumes=[vol02 vol03 vol2 vol3], ");
    expect(said).toContain("unattached volumes=[vol02 vol2], failed to process volumes=[vol03 vol3]: ");
  });

  test("scenario 7: mounted at the very end of the wait counts as mounted", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, attached: false });
    const said = waitFor(world, "web");
    world.driver.delay("publish", 1_000);

    await world.runFor(121_500);
    await world.attach("v");
    await world.runFor(2_000);

    expect(await said).toBeUndefined();
  });

  test("scenario 10: of twelve distinct reasons at most eleven are told, each once", async () => {
    const inline = Array.from({ length: 12 }, (_, at) => ({
      name: `v${at}`,
      nfs: { server: "s", path: "/" },
    }));
    const world = await given({ pods: { web: { inline } } });

    const said = (await waitFor(world, "web")) ?? "";

    const told = said.split("err=no volume plugin matched").length - 1;
    expect(told).toBe(11);
  });

  test("a step under way is said to be one from its beginning, to a pod that comes and to one that leaves", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, attached: false });
    const waits = () => {
      const [volume] = world.manager.report().volumes;
      return [...(volume?.pods ?? []), volume].map((one) => one?.waitingFor);
    };
    const underWay = (call: string) => ({
      reason: "step-running",
      message: expect.stringMatching(`${call}.* is under way since`) as string,
    });
    for (const call of ["stage", "publish", "unpublish", "unstage"] as const)
      world.driver.delay(call, 10_000);

    await world.attach("v");
    await world.runFor(5_000);
    expect(waits()).toMatchObject([underWay("NodeStageVolume"), undefined]);
    await world.runFor(10_000);
    expect(waits()).toMatchObject([underWay("NodePublishVolume"), undefined]);
    await world.runFor(10_000);
    expect(waits()).toEqual([undefined, undefined]);

    await world.removePod("web");
    await world.runFor(5_000);
    expect(waits()).toMatchObject([underWay("NodeUnpublishVolume"), undefined]);
    await world.runFor(10_000);
    expect(waits()).toMatchObject([underWay("NodeUnstageVolume")]);
  });

  test("scenario 12: twenty pods that do not let go: one timeout for all, one error for each", async () => {
    const names = Array.from({ length: 20 }, (_, at) => `p${at}`);
    const world = await given({
      volumes: { v: { modes: ["ReadWriteMany"] } },
      pods: Object.fromEntries(names.map((name) => [name, { uses: ["v"] }])),
    });
    const pods = names.map((name) => world.pod(name)!);

    const stuck = world.manager.waitForAllPodsUnmount(pods, SIGNAL).catch((error: unknown) => error);
    await world.runFor(124_000);

    const error = (await stuck) as AggregateError;
    expect(error.errors).toHaveLength(20);
    await expect(world.manager.waitForAllPodsUnmount([], SIGNAL)).resolves.toBeUndefined();
  });

  test("scenario 13: mounted, but not wanted any more: not among the pod's volumes", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    const uid = world.uidOf("web");
    world.driver.fail("unpublish", "INTERNAL", { times: 99 });
    expect(world.manager.getMountedVolumesForPod(uid).size).toBe(1);

    await world.removePod("web");
    await world.settle();

    expect(world.manager.getMountedVolumesForPod(uid).size).toBe(0);
    expect(world.manager.hasPossiblyMountedVolumesForPod(uid)).toBe(true);
  });

  test("scenario 14: groups of volumes: distinct, readable, and not the pod's own", async () => {
    const world = await given({ volumes: { a: {}, b: {}, c: {}, d: {} } });
    for (const [label, gid] of [
      ["a", "1234"],
      ["b", "77"],
      ["c", "77"],
      ["d", "abc"],
    ] as const)
      await world.patchPersistentVolume(label, {
        metadata: { annotations: { "pv.beta.kubernetes.io/gid": gid } },
      });

    const pod = await world.startPod("web", {
      uses: ["a", "b", "c", "d"],
      spec: { securityContext: { supplementalGroups: [1234] } },
    });
    await world.settle();

    expect(world.manager.getExtraSupplementalGroupsForPod(pod)).toEqual([77]);
  });

  for (const [name, driver, errorCode, limit] of [
    [
      "scenario 15: full, and the driver says how that changes",
      { nodeAllocatableUpdatePeriodSeconds: 60 },
      8,
      true,
    ],
    ["scenario 16: the driver does not say how that changes", {}, 8, false],
    ["scenario 16: no code", { nodeAllocatableUpdatePeriodSeconds: 60 }, undefined, false],
  ] as const)
    test(`${name}: ${limit ? "the pod should fail" : "an ordinary error"}`, async () => {
      const world = await given({
        pods: { web: { uses: ["v"] } },
        attached: false,
        driver: driver as CSIDriver["spec"] & object,
      });
      const ref = { name: world.attachmentOf("v") };
      await world.client.create(volumeAttachments, {
        metadata: ref,
        spec: { attacher: "csi.example.com", nodeName: "n1", source: { persistentVolumeName: "pv-v" } },
      });
      const attachError = { message: "full", ...(errorCode !== undefined && { errorCode }) };
      const value = { status: { attached: false, attachError } };
      await world.client.patch(volumeAttachments, ref, { type: "merge", value }, { subresource: "status" });

      const said = waitFor(world, "web");
      await world.runFor(124_000);

      expect((await said)?.startsWith("Node has reached its volume attachment limit, rejecting pod. ")).toBe(
        limit,
      );
      expect(world.refreshed).toBe(limit ? 2 : 0);
    });
});
