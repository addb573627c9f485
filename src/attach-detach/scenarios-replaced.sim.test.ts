import { expect, test } from "vitest";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import { persistentVolumeClaims } from "../kube/api/persistent-volume-claim.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { DRIVER, OUT_OF_SERVICE, volumeObject } from "../sim/cluster-objects.ts";
import { HANDLE_ANNOTATION } from "../volumes/names.ts";

/**
 * What a pod's volume leads to is replaced under the pod: sections 10 to 12 of the specification. A pod that waits is followed
 * to the new volume. The disk that a pod runs on stays where it is for as long as the pod is there, whatever becomes of the
 * objects that led to it.
 */

const MINUTE = 60_000;
const RUNNING = {
  phase: "Running",
  containerStatuses: [
    {
      name: "app",
      image: "",
      imageID: "",
      ready: true,
      restartCount: 0,
      state: { running: { startedAt: "2026-01-01T00:00:00Z" } },
    },
  ],
};

/** The new volume behind a replaced one goes by the label `w`. */
async function replaceClaim(world: AttachDetachWorld): Promise<void> {
  await world.deleteClaim("v");
  await world.createClaim("default/claim-v", { volumeName: "pv-w", bound: true });
  await world.createPersistentVolume("w", "default/claim-v");
}

const REPLACEMENTS: Readonly<Record<string, (world: AttachDetachWorld) => Promise<void>>> = {
  "the claim, by one of another PersistentVolume": replaceClaim,
  "the claim, and later some CSIDriver by one that needs no attaching": async (world) => {
    await replaceClaim(world);
    await world.settle();
    await world.setDriver("other.example.com", { attachRequired: false });
  },
};

/** By another disk of the same name. */
async function replacePersistentVolume(world: AttachDetachWorld): Promise<void> {
  await world.deletePersistentVolume("v");
  await createForAnotherDisk(world);
}

async function createForAnotherDisk(world: AttachDetachWorld): Promise<void> {
  const claim = world.read(persistentVolumeClaims, { namespace: "default", name: "claim-v" });
  const source = { csi: { driver: DRIVER, volumeHandle: "w" } };
  await world.client.create(
    persistentVolumes,
    volumeObject("pv-v", { source, modes: ["ReadWriteOnce"], claim }),
  );
}

const DRIVER_FLIPPED = (world: AttachDetachWorld) => world.setDriver(DRIVER, { attachRequired: false });

async function withPod(phase: "waiting" | "running" | "terminating", attached: boolean) {
  const world = await given({
    nodes: ["n1"],
    volumes: { v: {}, w: { claim: "missing", volume: "missing" } },
    pods: { web: { on: "n1", uses: ["v"] } },
    attacher: attached ? "auto" : "by-hand",
  });
  if (phase === "waiting") return world;
  await world.setInUse("n1", ["v"]);
  await world.setPodStatus("web", RUNNING);
  if (phase === "terminating") await world.deletePod("web");
  await world.settle();
  return world;
}

/** With the controller that saw it, and with one that only sees what is left. */
async function replace(
  world: AttachDetachWorld,
  how: (world: AttachDetachWorld) => Promise<void>,
  restarted: boolean,
) {
  if (restarted) world.controller.kill();
  await how(world);
  if (restarted) world.startController();
  await world.settle();
}

for (const restarted of [false, true]) {
  const seen = restarted ? "by a controller that was not there" : "by the controller";
  for (const [what, how] of Object.entries(REPLACEMENTS)) {
    for (const attached of [false, true])
      test(`${what}, under a pod that waits ${attached ? "with" : "without"} the old one attached, seen ${seen}: it gets the new one`, async () => {
        const world = await withPod("waiting", attached);

        await replace(world, how, restarted);
        await world.settle();
        if (!attached) await world.hand.attach("w", "n1");
        await world.advance(MINUTE);

        expect(world.volumesAttached("n1")).toEqual(["w"]);
        const left = world.attachmentOf("v", "n1");
        expect(left === undefined || left.metadata.deletionTimestamp !== undefined).toBe(true);
      });
  }
  for (const phase of ["running", "terminating"] as const)
    for (const [what, how] of [
      ...Object.entries(REPLACEMENTS),
      ["its CSIDriver, by one that needs no attaching", DRIVER_FLIPPED] as const,
    ])
      test(`${what}, under a ${phase} pod, seen ${seen}: the disk it runs on stays until it is gone`, async () => {
        const world = await withPod(phase, true);
        world.forget();

        await replace(world, how, restarted);
        await world.setReady("n1", "Unknown");
        await world.advance(10 * MINUTE);
        await world.setTaints("n1", [{ key: OUT_OF_SERVICE, effect: "NoExecute" }]);
        await world.advance(MINUTE);
        expect(world.requests().filter((line) => line.startsWith("DELETE"))).toEqual([]);
        expect(world.volumesAttached("n1")).toContain("v");
        await world.setTaints("n1", []);
        await world.setReady("n1", "True");
        await world.removePod("web");
        await world.setInUse("n1", []);
        await world.settle();

        expect(world.requests()).toContain("DELETE va v@n1");
        expect(world.volumesAttached("n1")).toEqual([]);
      });
}

for (const phase of ["waiting", "running", "terminating"] as const)
  for (const restarted of [false, true])
    // A stock attacher detaches what the PersistentVolume says now: it would take the new disk off, and leave the old one.
    test(`the PersistentVolume, by another disk of the same name, under a ${phase} pod${restarted ? ", seen by a controller that was not there" : ""}: the old one's VolumeAttachment is left alone, also after the pod, and a pod that waits gets the new one`, async () => {
      const world = await withPod(phase, true);
      world.forget();

      await replace(world, replacePersistentVolume, restarted);
      await world.setReady("n1", "Unknown");
      await world.advance(10 * MINUTE);
      await world.setReady("n1", "True");
      if (phase === "waiting") expect(world.volumesAttached("n1")).toContain("w");
      await world.removePod("web");
      await world.setInUse("n1", []);
      await world.advance(10 * MINUTE);

      expect(world.requests()).not.toContain("DELETE va v@n1");
      expect(world.volumesAttached("n1")).toContain("v");
      const old = world.controller.controller.report().volumes.find(({ volume }) => volume.endsWith("^v"));
      expect(old?.waitingFor).toMatchObject({ reason: "attachment-mismatch" });
    });

for (const phase of ["running", "terminating"] as const)
  for (const restarted of [false, true])
    test(`the PersistentVolume, by another disk of the same name, under a ${phase} pod${restarted ? ", seen by a controller that was not there" : ""}, with the old handle recorded by an attacher of ours: the old disk goes after the pod, and the new one is free for another node`, async () => {
      const world = await withPod(phase, true);
      const { name = "" } = world.attachmentOf("v", "n1")?.metadata ?? {};
      const value = { metadata: { annotations: { [HANDLE_ANNOTATION]: "v" } } };
      await world.client.patch(volumeAttachments, { name }, { type: "merge", value });
      world.forget();

      await replace(world, replacePersistentVolume, restarted);
      await world.setReady("n1", "Unknown");
      await world.advance(10 * MINUTE);
      await world.setReady("n1", "True");
      expect(world.requests()).not.toContain("DELETE va v@n1");
      expect(world.volumesAttached("n1")).toContain("v");
      await world.removePod("web");
      await world.setInUse("n1", []);
      await world.advance(MINUTE);

      expect(world.requests()).toContain("DELETE va v@n1");
      expect(world.volumesAttached("n1")).toEqual([]);
      expect(world.controller.controller.report().volumes).toEqual([]);
    });

const deletes = (world: AttachDetachWorld) =>
  world.requests().filter((line) => line.startsWith("DELETE va v@n1"));

for (const [what, how, restarted] of [
  ["its claim was replaced", replaceClaim, false],
  ["its claim was replaced, and the controller", replaceClaim, true],
  [
    "its claim is gone, and the controller was replaced",
    (world: AttachDetachWorld) => world.deleteClaim("v"),
    true,
  ],
] as const)
  for (const end of ["is removed", "has failed"] as const)
    test(`a pod that may have run on it although ${what}: once it ${end}, a dead node keeps the disk for the full time`, async () => {
      const world = await withPod("running", true);
      await replace(world, how, restarted);
      await world.setReady("n1", "Unknown");
      await world.advance(10 * MINUTE);
      world.forget();

      if (end === "is removed") await world.removePod("web");
      else await world.setPodStatus("web", { phase: "Failed", containerStatuses: [] });
      await world.advance(6 * MINUTE);
      expect(deletes(world)).toEqual([]);
      await world.advance(2_000);

      expect(deletes(world)).toHaveLength(1);
    });

test("a disk that stays for a pod says for which, and why", async () => {
  const world = await withPod("running", true);

  await replace(world, replaceClaim, false);

  const old = world.controller.controller.report().volumes.find(({ volume }) => volume.endsWith("^v"));
  expect(old?.waitingFor).toMatchObject({
    reason: "unresolved-pod",
    object: { kind: "Pod", namespace: "default", name: "web" },
  });
  expect(old?.waitingFor?.message).toContain("claim default/claim-v");
});

/** No attacher has begun with it, and somebody deletes it. */
async function loseAttachment(world: AttachDetachWorld): Promise<void> {
  const { name = "" } = world.attachmentOf("v", "n1")?.metadata ?? {};
  await world.client.delete(volumeAttachments, { name });
  await world.settle();
}

for (const when of ["after", "before"] as const)
  test(`the PersistentVolume, by another disk of the same name, and the VolumeAttachment is deleted by hand ${when} that: none is made for the old disk by the new one's PersistentVolume, and the pod gets the new one`, async () => {
    const world = await withPod("waiting", false);
    await world.loseClaim("v");
    if (when === "after") await replacePersistentVolume(world);
    else await world.deletePersistentVolume("v");
    await world.settle();
    world.forget();

    await loseAttachment(world);
    await world.advance(5 * MINUTE);
    expect(world.requests().filter((line) => line.startsWith("POST va"))).toEqual([]);
    if (when === "before") await createForAnotherDisk(world);
    await world.bindClaim("v");
    await world.settle();
    await world.hand.attach("w", "n1");
    await world.settle();
    expect(world.volumesAttached("n1")).toEqual(["w"]);
    await world.removePod("web");
    await world.settle();
    await world.hand.release("w", "n1");
    await world.settle();

    expect(world.list(volumeAttachments)).toEqual([]);
    expect(world.controller.controller.report().volumes).toEqual([]);
  });

test("the PersistentVolume, by one for the same disk, and the VolumeAttachment is deleted by hand in between: it is made anew at once when the new one comes", async () => {
  const world = await withPod("waiting", false);
  await world.loseClaim("v");
  await world.deletePersistentVolume("v");
  await loseAttachment(world);
  await world.advance(10 * MINUTE);
  const { waitingFor } = world.controller.controller.report().volumes[0] ?? {};
  expect(waitingFor).toMatchObject({ reason: "backoff" });
  expect(waitingFor?.message).toContain("PersistentVolume pv-v is gone or is another disk by now");

  await world.createPersistentVolume("v");
  await world.bindClaim("v");
  await world.settle();

  expect(world.attachmentOf("v", "n1")).toBeDefined();
});
