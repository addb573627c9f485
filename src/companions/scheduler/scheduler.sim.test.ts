import { describe, expect, test } from "vitest";
import { nodes } from "../../kube/api/node.ts";
import { persistentVolumes } from "../../kube/api/persistent-volume.ts";
import { pods } from "../../kube/api/pod.ts";
import { volumeAttachments } from "../../kube/api/volume-attachment.ts";
import { DRIVER, given } from "./stage.testing.ts";
import { reachableFrom, using } from "./view.testing.ts";

describe("a pod gets a node", () => {
  test("one that is ready; it is bound once, and told", async () => {
    const world = await given();
    await world.createNode("a", { ready: "False" });
    await world.createNode("b");
    world.start();

    await world.createPod("web");
    await world.settle();

    expect(world.nodeOf("web")).toBe("b");
    expect(world.writes()).toEqual(["POST pods/binding web"]);
    expect(world.told()).toEqual(["Scheduled: Successfully assigned default/web to b"]);
  });

  test("pods spread over nodes, also when they all come at once", async () => {
    const world = await given();
    for (const name of ["a", "b", "c"]) await world.createNode(name);
    for (let index = 0; index < 9; index++) await world.createPod(`web-${index}`);
    world.start();

    await world.settle();

    expect(world.podsByNode()).toEqual({ a: 3, b: 3, c: 3 });
  });

  test("a pod without a chance says why once, and goes as soon as it has one", async () => {
    const world = await given();
    await world.createNode("a", { labels: { disk: "slow" } });
    world.start();
    await world.createPod("web", { nodeSelector: { disk: "fast" } });
    await world.settle();
    const why = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
    expect(world.whyNot("web")).toBe(`Unschedulable: ${why}`);
    expect(world.told()).toEqual([`FailedScheduling: ${why}`]);

    await world.advance(600_000);
    expect(world.writes()).toEqual(["PATCH pods/status web"]);

    await world.patchNode("a", { metadata: { labels: { disk: "fast" } } });
    await world.settle();
    expect(world.nodeOf("web")).toBe("a");
  });

  test("a heartbeat of a node is no reason to look at the pods that wait", async () => {
    const world = await given();
    await world.createNode("a", { ready: "False" });
    world.start();
    await world.createPod("web");
    await world.settle();
    const before = await world.plans();

    await world.patchNodeStatus("a", { volumesInUse: ["kubernetes.io/csi/x^y"] });
    await world.settle();
    expect(await world.plans()).toBe(before);

    await world.setReady("a", "True");
    await world.settle();
    expect(world.nodeOf("web")).toBe("a");
  });

  test("gates hold a pod, and its condition says so; the last one that opens lets it go where it then may", async () => {
    const world = await given();
    await world.createNode("a");
    await world.createNode("b", { labels: { disk: "fast" } });
    world.start();
    const open = (spec: object) =>
      world.client.patch(pods, { name: "web", namespace: "default" }, { type: "merge", value: { spec } });

    const gates = [{ name: "example.com/quota" }, { name: "example.com/place" }];
    await world.createPod("web", { schedulingGates: gates });
    await world.settle();
    expect(world.whyNot("web")).toMatch(/^SchedulingGated: /);

    await open({ schedulingGates: gates.slice(1) });
    await world.settle();
    expect(world.whyNot("web")).toMatch(/^SchedulingGated: /);

    await open({ schedulingGates: null, nodeSelector: { disk: "fast" } });
    await world.settle();
    expect(world.nodeOf("web")).toBe("b");
  });

  test("an object that makes no sense stops nobody else", async () => {
    const world = await given();
    await world.createNode("a");
    const odd = { labelSelector: { matchExpressions: [{ key: "x", operator: "In", values: [] }] } };
    world.start();

    await world
      .createPod("odd", {
        topologySpreadConstraints: [
          { maxSkew: 1, topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "ScheduleAnyway", ...odd },
        ],
      })
      .catch(() => undefined);
    await world.createPod("web");
    await world.settle();

    expect(world.nodeOf("web")).toBe("a");
  });
});

describe("what the last place is worth", () => {
  test("volumes of pods that are on their way count, and a place that becomes free is given on", async () => {
    const world = await given();
    for (const name of ["a", "b"]) await world.createNode(name, { limit: 1 });
    for (const name of ["one", "two", "three"]) await world.createBoundClaim(name);
    world.start();
    for (const name of ["one", "two", "three"]) await world.createPod(`user-of-${name}`, using(name));
    await world.settle();
    expect(world.podsByNode()).toEqual({ a: 1, b: 1 });
    const waiting = ["one", "two", "three"].filter((name) => !world.nodeOf(`user-of-${name}`));
    expect(waiting.map((name) => world.whyNot(`user-of-${name}`))).toEqual([
      "Unschedulable: 0/2 nodes are available: 2 node(s) exceed max volume count.",
    ]);

    const leaver = ["one", "two", "three"].find((name) => world.nodeOf(`user-of-${name}`)) ?? "";
    await world.removePod(`user-of-${leaver}`);
    await world.settle();
    expect(world.nodeOf(`user-of-${waiting[0] ?? ""}`)).toBeDefined();
  });

  test("a volume that is still attached keeps its place until it is detached", async () => {
    const world = await given();
    await world.createNode("a", { limit: 1 });
    for (const name of ["one", "two"]) await world.createBoundClaim(name);
    const source = { persistentVolumeName: "pv-one" };
    await world.client.create(volumeAttachments, {
      metadata: { name: "va" },
      spec: { attacher: DRIVER, nodeName: "a", source },
    });
    world.start();
    await world.createPod("web", using("two"));
    await world.settle();
    expect(world.whyNot("web")).toContain("exceed max volume count");

    await world.client.delete(volumeAttachments, { name: "va" });
    await world.settle();
    expect(world.nodeOf("web")).toBe("a");
  });

  test("a claim for one pod at a time goes from one to the next", async () => {
    const world = await given();
    for (const name of ["a", "b"]) await world.createNode(name);
    await world.createBoundClaim("data", { modes: ["ReadWriteOncePod"] });
    world.start();
    await world.createPod("first", using("data"));
    await world.settle();
    await world.createPod("second", using("data"));
    await world.settle();
    expect(world.whyNot("second")).toContain("ReadWriteOncePod access mode");

    await world.removePod("first");
    await world.settle();
    expect(world.nodeOf("second")).toBeDefined();
  });
});

describe("claims that wait for their first pod", () => {
  test("the claim is told the node, and the pod is bound once it has its volume", async () => {
    const world = await given();
    await world.createNode("a");
    await world.createClaim("data", { storageClass: "later" });
    world.start();

    await world.createPod("web", using("data"));
    await world.settle();
    expect(world.selectedNodeOf("data")).toBe("a");
    expect(world.nodeOf("web")).toBeUndefined();
    expect(world.whyNot("web")).toBe(
      "WaitingForVolumes: waiting on node a for volumes of claims data to be bound",
    );

    await world.provision("data", reachableFrom("a"));
    await world.settle();
    expect(world.nodeOf("web")).toBe("a");
  });

  test("the place of a pod that waits for its volume is not given away", async () => {
    const world = await given();
    await world.createNode("a", { limit: 1 });
    await world.createClaim("data", { storageClass: "later" });
    await world.createBoundClaim("other");
    world.start();
    await world.createPod("first", using("data"));
    await world.settle();

    await world.createPod("second", using("other"));
    await world.settle();
    expect(world.whyNot("second")).toContain("exceed max volume count");
    await world.provision("data", reachableFrom("a"));
    await world.settle();

    expect(world.nodeOf("first")).toBe("a");
    expect(world.nodeOf("second")).toBeUndefined();
  });

  test("after a restart too", async () => {
    const world = await given();
    await world.createNode("a", { limit: 1 });
    await world.createClaim("data", { storageClass: "later" });
    await world.createBoundClaim("other");
    world.start();
    await world.createPod("zz-first", using("data"));
    await world.settle();

    world.kill();
    await world.createPod("aa-second", using("other"));
    world.start();
    await world.settle();
    await world.provision("data", reachableFrom("a"));
    await world.settle();

    expect(world.nodeOf("zz-first")).toBe("a");
    expect(world.nodeOf("aa-second")).toBeUndefined();
  });

  test("a volume that exists is promised to the claim, and is not promised twice", async () => {
    const world = await given();
    for (const name of ["a", "b"]) await world.createNode(name);
    await world.createClass("by-hand", "WaitForFirstConsumer", {
      provisioner: "kubernetes.io/no-provisioner",
    });
    for (const name of ["one", "two"]) await world.createClaim(name, { storageClass: "by-hand" });
    await world.createVolume("disk", { storageClassName: "by-hand", nodeAffinity: reachableFrom("b") });
    world.start();

    await world.createPod("web-one", using("one"));
    await world.createPod("web-two", using("two"));
    await world.settle();

    const claimRef = world.read(persistentVolumes, { name: "disk" })?.spec?.claimRef;
    const [winner, loser] = claimRef?.name === "one" ? ["one", "two"] : ["two", "one"];
    expect(claimRef?.uid).toBe(world.claim(winner)?.metadata.uid);
    expect(world.whyNot(`web-${loser}`)).toContain("didn't find available persistent volumes to bind");

    await world.bind(winner, "disk");
    await world.settle();
    expect(world.nodeOf(`web-${winner}`)).toBe("b");
  });

  test("whoever cannot make the volume there gives the node back, and another is chosen", async () => {
    const world = await given();
    for (const name of ["a", "b"]) await world.createNode(name);
    await world.createClaim("data", { storageClass: "later" });
    world.start();
    await world.createPod("web", using("data"));
    await world.settle();
    expect(world.selectedNodeOf("data")).toBe("a");

    await world.patchNode("a", { spec: { unschedulable: true } });
    await world.deselect("data");
    await world.settle();

    expect(world.selectedNodeOf("data")).toBe("b");
  });

  test("a node that is deleted meanwhile is forgotten", async () => {
    const world = await given();
    for (const name of ["a", "b"]) await world.createNode(name);
    await world.createClaim("data", { storageClass: "later" });
    world.start();
    await world.createPod("web", using("data"));
    await world.settle();

    await world.client.delete(nodes, { name: "a" });
    await world.settle();

    expect(world.selectedNodeOf("data")).toBe("b");
  });

  test("an ephemeral volume gets a claim of its pod, which then waits for it", async () => {
    const world = await given();
    await world.createNode("a");
    const spec = {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "later",
      resources: { requests: { storage: "1Gi" } },
    };
    const volumeClaimTemplate = { metadata: { labels: { app: "web" } }, spec };
    world.start();

    await world.createPod("web", { volumes: [{ name: "scratch", ephemeral: { volumeClaimTemplate } }] });
    await world.settle();
    expect(world.claim("web-scratch")?.metadata).toMatchObject({
      labels: { app: "web" },
      ownerReferences: [{ kind: "Pod", name: "web", uid: world.pod("web")?.metadata.uid, controller: true }],
    });

    await world.provision("web-scratch");
    await world.settle();
    expect(world.nodeOf("web")).toBe("a");
  });

  test("a claim of that name which belongs to nobody is not taken", async () => {
    const world = await given();
    await world.createNode("a");
    await world.createBoundClaim("web-scratch");
    const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
    world.start();

    await world.createPod("web", {
      volumes: [{ name: "scratch", ephemeral: { volumeClaimTemplate: { spec } } }],
    });
    await world.settle();

    expect(world.whyNot("web")).toContain("(pod is not owner)");
    expect(world.told()).toContain(
      "FailedBinding: ephemeral volume scratch: PVC default/web-scratch was not created for pod default/web (pod is not owner)",
    );
  });
});

describe("requests that go wrong", () => {
  test("a binding that was carried out and not answered is found, and not repeated", async () => {
    const world = await given();
    await world.createNode("a", { limit: 1 });
    for (const name of ["one", "two"]) await world.createBoundClaim(name);
    world.start();
    world.transport.spoil("POST pods/binding first", { kind: "answer-lost" }, 1);

    await world.createPod("first", using("one"));
    await world.createPod("second", using("two"));
    await world.advance(2_000);

    expect(world.nodeOf("first")).toBe("a");
    expect(world.whyNot("second")).toContain("exceed max volume count");
    expect(world.writes().filter((line) => line.startsWith("POST pods/binding first"))).toHaveLength(1);
  });

  test("while nobody knows whether a pod was bound, its place is not given away", async () => {
    const world = await given();
    for (const name of ["one", "two"]) await world.createBoundClaim(name);
    await world.createNode("a", { limit: 1 });
    await world.patchNode("a", { spec: { unschedulable: true } });
    world.start();
    for (const name of ["one", "two"]) await world.createPod(`user-of-${name}`, using(name));
    await world.settle();
    world.held.add("pods");
    world.transport.spoil("POST pods/binding", { kind: "answer-lost" }, 1);
    world.transport.spoil("GET pods", { kind: "status", status: 500 }, 5);

    await world.patchNode("a", { spec: { unschedulable: null } });
    await world.advance(30_000);
    expect(world.podsByNode()).toEqual({ a: 1 });

    world.held.clear();
    await world.advance(30_000);
    expect(world.podsByNode()).toEqual({ a: 1 });
  });

  test("a binding that arrives after its place was given away is void", async () => {
    const world = await given();
    await world.createNode("a", { limit: 1 });
    for (const name of ["one", "two"]) await world.createBoundClaim(name);
    world.start();
    world.transport.spoil("POST pods/binding first", { kind: "late", ms: 30_000 }, 1);

    await world.createPod("first", using("one"), { labels: { app: "first" } });
    await world.advance(5);
    // It is not to be scheduled any more, so its place goes to the next.
    await world.patchNode("a", { spec: { taints: [{ key: "team", effect: "NoSchedule" }] } });
    await world.advance(2_000);
    await world.createPod("second", { ...using("two"), tolerations: [{ operator: "Exists" }] });
    await world.advance(60_000);

    expect(world.nodeOf("second")).toBe("a");
    expect(world.nodeOf("first")).toBeUndefined();
    expect(world.whyNot("first")).toContain("untolerated taint");
  });

  test("one that the server refuses is said, and tried again", async () => {
    const world = await given();
    await world.createNode("a");
    world.start();
    world.transport.spoil("POST pods/binding web", { kind: "status", status: 403 }, 4);

    await world.createPod("web");
    await world.advance(30);
    expect(world.whyNot("web")).toMatch(/^SchedulerError: Forbidden/);

    await world.advance(10_000);
    expect(world.nodeOf("web")).toBe("a");
  });

  /** Choosing, saying so, binding. */
  const REQUESTS = 3;

  for (const carriedOut of [true, false])
    test(`killed at any request, ${carriedOut ? "after" : "before"} it was carried out, the next one goes on`, async () => {
      for (let fatal = 1; fatal <= REQUESTS; fatal++) {
        const world = await given();
        await world.createNode("a");
        await world.createClaim("data", { storageClass: "later" });
        let count = 0;
        world.onRequest = () => {
          if (++count !== fatal) return;
          if (!carriedOut) world.transport.spoil("", { kind: "hang" });
          world.kill();
          world.clock.after(20, () => world.start());
        };
        world.start();

        await world.createPod("web", using("data"));
        await world.advance(1_000);
        await world.provision("data");
        await world.advance(1_000);

        expect(world.nodeOf("web"), `at request ${fatal}`).toBe("a");
        expect(count).toBeGreaterThanOrEqual(REQUESTS);
      }
    });
});
