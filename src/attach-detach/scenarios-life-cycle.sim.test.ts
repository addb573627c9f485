import { expect, test } from "vitest";
import { given } from "../sim/attach-detach-world.ts";
import { DRIVER } from "../sim/cluster-objects.ts";

/** Scenarios 1 to 16 of the specification. */

const DETACH = ["PATCH node n1 []", "GET node n1", "DELETE va v@n1"];

const withPod = () => given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } } });

const running = (state: object) => ({
  phase: "Running",
  containerStatuses: [{ name: "app", image: "", imageID: "", ready: true, restartCount: 0, state }],
});

test("1: without pods and attachments nothing is written", async () => {
  const world = await given({ nodes: ["n1", "n2"], volumes: { v: {} } });

  await world.advance(10 * 60_000);

  expect(world.requests()).toEqual([]);
  expect(world.otherRequests()).toEqual([]);
});

test("2: a pod scheduled to a node gets one VolumeAttachment, named and filled as everybody expects", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {} }, attacher: "by-hand" });

  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.settle();

  expect(world.requests()).toEqual(["POST va v@n1"]);
  const attachment = world.attachmentOf("v", "n1");
  expect(attachment?.spec).toEqual({
    attacher: DRIVER,
    nodeName: "n1",
    source: { persistentVolumeName: "pv-v" },
  });
  const { labels, annotations, ownerReferences, finalizers } = attachment?.metadata ?? {};
  expect([labels, annotations, ownerReferences, finalizers]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test("3: once the attacher says attached, the node is told", async () => {
  const world = await given({
    nodes: ["n1"],
    pods: { web: { on: "n1", uses: ["v"] } },
    attacher: "by-hand",
  });
  expect(world.volumesAttached("n1")).toEqual([]);
  world.forget();

  await world.hand.attach("v", "n1");
  await world.settle();

  expect(world.requests()).toEqual(["PATCH node n1 [v]"]);
  expect(world.attachedOf("n1")).toEqual([{ name: world.labels.uniqueName("v"), devicePath: "" }]);
});

test("4: and the pod gets its event", async () => {
  const world = await withPod();

  expect(world.eventsOf("web")).toEqual([
    {
      type: "Normal",
      reason: "SuccessfulAttachVolume",
      message: 'AttachVolume.Attach succeeded for volume "pv-v" ',
      count: 1,
    },
  ]);
});

test("5: a volume leaves volumesAttached before its attachment is deleted", async () => {
  const world = await withPod();
  world.forget();

  await world.removePod("web");
  await world.settle();

  expect(world.requests()).toEqual(DETACH);
  expect(world.attachmentOf("v", "n1")).toBeUndefined();
});

test("6, 7: in use on a healthy node it stays for as long as it takes, and goes when it is unmounted", async () => {
  const world = await withPod();
  await world.setInUse("n1", ["v"]);
  await world.settle();
  world.forget();

  await world.removePod("web");
  await world.advance(2 * 3_600_000);
  expect(world.requests()).toEqual([]);
  await world.setInUse("n1", []);
  await world.settle();

  expect(world.requests()).toEqual(DETACH);
});

test("8: of two pods that use a volume the last one takes it along", async () => {
  const world = await given({
    nodes: ["n1"],
    pods: { one: { on: "n1", uses: ["v"] }, two: { on: "n1", uses: ["v"] } },
  });
  world.forget();

  await world.removePod("one");
  await world.settle();
  expect(world.requests()).toEqual([]);
  await world.removePod("two");
  await world.settle();

  expect(world.requests()).toEqual(DETACH);
});

test("9: a later pod gets a new attachment of the same name", async () => {
  const world = await withPod();
  const first = world.attachmentOf("v", "n1");
  await world.removePod("web");
  await world.settle();

  await world.createPod("later", { on: "n1", uses: ["v"] });
  await world.settle();

  const second = world.attachmentOf("v", "n1");
  expect(second?.metadata.name).toBe(first?.metadata.name);
  expect(second?.metadata.uid).not.toBe(first?.metadata.uid);
  expect(world.volumesAttached("n1")).toEqual(["v"]);
});

test("10: an unscheduled pod gets nothing until it has a node", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { uses: ["v"] } } });
  expect(world.requests()).toEqual([]);

  await world.bindPod("web", "n1");
  await world.settle();

  expect(world.requests()).toEqual(["POST va v@n1", "PATCH node n1 [v]"]);
});

test("11: volumes that live on the node concern nobody", async () => {
  const inline = [
    { name: "a", emptyDir: {} },
    { name: "b", configMap: { name: "settings" } },
    { name: "c", hostPath: { path: "/var/log" } },
    { name: "d", nfs: { server: "10.0.0.1", path: "/exports" } },
  ];
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", inline } } });

  await world.removePod("web");
  await world.settle();

  expect(world.requests()).toEqual([]);
});

for (const phase of ["Succeeded", "Failed"]) {
  test(`12: a pod that is ${phase} still exists, but needs its volumes no longer`, async () => {
    const world = await withPod();
    await world.setInUse("n1", ["v"]);
    await world.settle();
    world.forget();

    await world.setPodStatus("web", { phase });
    await world.settle();
    expect(world.requests()).toEqual([]);
    await world.setInUse("n1", []);
    await world.settle();

    expect(world.requests()).toEqual(DETACH);
    expect(world.pod("web")).toBeDefined();
  });
}

test("13: a pod being deleted needs its volumes while a container runs", async () => {
  const world = await withPod();
  await world.setPodStatus("web", running({ running: {} }));
  await world.settle();
  world.forget();

  await world.deletePod("web");
  await world.settle();
  expect(world.requests()).toEqual([]);
  await world.setPodStatus("web", running({ terminated: { exitCode: 0 } }));
  await world.settle();

  expect(world.requests()).toEqual(DETACH);
  expect(world.pod("web")?.metadata.deletionTimestamp).toBeDefined();
});

test("14, 15: a node that manages its volumes itself is left alone until it no longer does", async () => {
  const world = await given({
    nodes: { n1: { managed: false } },
    pods: { web: { on: "n1", uses: ["v"] } },
  });
  expect(world.requests()).toEqual([]);

  await world.setManaged("n1", true);
  await world.settle();

  expect(world.requests()).toEqual(["POST va v@n1", "PATCH node n1 [v]"]);
});

test("16: a node that was managed once is served until a restart", async () => {
  const world = await withPod();
  await world.setManaged("n1", false);
  await world.settle();
  world.forget();

  await world.createVolume("w");
  await world.createPod("other", { on: "n1", uses: ["w"] });
  await world.settle();
  expect(world.requests()).toEqual(["POST va w@n1", "PATCH node n1 [v w]"]);
  await world.restartController();
  world.forget();
  await world.removePod("other");
  await world.advance(5_000);

  expect(world.requests()).toEqual([]);
});
