import { describe, expect, test } from "vitest";
import { persistentVolumeClaims } from "../kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import { KubeError } from "../kube/errors.ts";
import { volumeAttachments, type VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { DRIVER, OUT_OF_SERVICE, type NodeSketch } from "../sim/cluster-objects.ts";
import type { AttachablePlugin } from "../volumes/plugin.ts";
import { createIscsiPlugin } from "../volumes/plugins/iscsi.ts";
import { volumeAttachmentName } from "../volumes/names.ts";
import type { WaitingReason } from "./waiting.ts";

/**
 * Every wait of the closed union has an event that ends it: once the obstacle is gone the volume goes on within a second, not
 * at the next sweep (a minute) nor at the end of a back-off (up to two). The table is a record of the union, so a new reason
 * does not compile without its obstacle.
 */
interface Obstacle {
  readonly what: string;
  readonly given: () => Promise<AttachDetachWorld>;
  readonly remove: (world: AttachDetachWorld) => Promise<void>;
  /** `v` is attached to this node, or off it, when all is well. */
  readonly then: { readonly attached: string } | { readonly detached: string };
  /** Longer only where nothing tells the end of the obstacle. */
  readonly withinMs?: number;
}

const POD = { web: { on: "n1", uses: ["v"] } };
const V_N1 = volumeAttachmentName({ driver: DRIVER, volumeHandle: "v" }, "n1");
const LUN = "kubernetes.io/iscsi/10.0.0.9:3260:iqn.2025-01.example:store:1";
const OTHER_LUN = "kubernetes.io/iscsi/10.0.0.9:3260:iqn.2025-01.example:store:2";
const N1 = { attached: "n1" } as const;
const OFF_N1 = { detached: "n1" } as const;

/** `v` is attached to n1, and the pod that used it is gone. */
async function unwanted(
  sketch: Parameters<typeof given>[0] = {},
  before: (world: AttachDetachWorld) => Promise<void> = (world) => world.setInUse("n1", ["v"]),
): Promise<AttachDetachWorld> {
  const world = await given({ nodes: ["n1"], pods: POD, ...sketch });
  await before(world);
  await world.settle();
  await world.removePod("web");
  return world;
}

async function remakeNode(world: AttachDetachWorld, sketch: NodeSketch = {}): Promise<void> {
  await world.deleteNode("n1");
  await world.settle();
  await world.createNode("n1", sketch);
}

/** Somebody with kubectl. */
async function make(
  world: AttachDetachWorld,
  { name = "by-hand", ...spec }: { name?: string } & Partial<VolumeAttachment["spec"]> = {},
): Promise<void> {
  const source = { persistentVolumeName: "pv-v" };
  await world.client.create(volumeAttachments, {
    metadata: { name },
    spec: { attacher: DRIVER, nodeName: "n1", source, ...spec },
  });
}

async function remove(world: AttachDetachWorld, name: string): Promise<void> {
  const value = { metadata: { finalizers: null } };
  await world.client.patch(volumeAttachments, { name }, { type: "merge", value });
  await world.client.delete(volumeAttachments, { name });
}

/** A VolumeAttachment of the name that `v` on n1 would have, made for something else before a pod came. */
const colliding = (what: string, spec: Partial<VolumeAttachment["spec"]>): Obstacle => ({
  what,
  async given() {
    const world = await given({ nodes: ["n1", "n2"], volumes: { v: {}, w: {} }, attacher: "by-hand" });
    await make(world, { name: V_N1, source: { persistentVolumeName: "pv-w" }, ...spec });
    await world.createPod("web", { on: "n1", uses: ["v"] });
    return world;
  },
  async remove(world) {
    await remove(world, V_N1);
    await world.settle();
    await world.hand.attach("v", "n1");
  },
  then: N1,
});

const never = [{ match: { kind: "driver", driver: DRIVER }, force: { kind: "never" } }] as const;
const plugins: AttachablePlugin[] = [];

const OBSTACLES: Readonly<Record<WaitingReason, readonly Obstacle[]>> = {
  "claim-missing": [
    {
      what: "the claim comes, bound",
      given: () =>
        given({ nodes: ["n1"], volumes: { v: { claim: "missing", volume: "missing" } }, pods: POD }),
      async remove(world) {
        await world.createClaim("default/claim-v", { volumeName: "pv-v", bound: true });
        await world.createPersistentVolume("v");
      },
      then: N1,
    },
  ],
  "claim-unbound": [
    {
      what: "it is bound",
      given: () => given({ nodes: ["n1"], volumes: { v: { claim: "pending" } }, pods: POD }),
      remove: (world) => world.bindClaim("v"),
      then: N1,
    },
  ],
  "claim-not-owned": [
    {
      what: "it is replaced by the pod's own",
      async given() {
        const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
        const ephemeral = { volumeClaimTemplate: { spec } };
        const world = await given({
          nodes: ["n1"],
          volumes: { v: { claim: "missing", volume: "missing" } },
          pods: { web: { on: "n1", inline: [{ name: "data", ephemeral }] } },
        });
        await world.createClaim("default/web-data", { volumeName: "pv-v", bound: true });
        return world;
      },
      async remove(world) {
        const ref = { namespace: "default", name: "web-data" };
        const value = { metadata: { finalizers: null } };
        await world.client.patch(persistentVolumeClaims, ref, { type: "merge", value });
        await world.client.delete(persistentVolumeClaims, ref);
        const owner = world.pod("web");
        await world.createClaim("default/web-data", {
          volumeName: "pv-v",
          bound: true,
          ...(owner && { owner }),
        });
        await world.createPersistentVolume("v", "default/web-data");
      },
      then: N1,
    },
  ],
  "volume-missing": [
    {
      what: "the PersistentVolume comes",
      given: () => given({ nodes: ["n1"], volumes: { v: { volume: "missing" } }, pods: POD }),
      remove: (world) => world.createPersistentVolume("v"),
      then: N1,
    },
  ],
  "volume-not-bound-back": [
    {
      what: "the PersistentVolume names its claim",
      given: () => given({ nodes: ["n1"], volumes: { v: { volume: "unclaimed" } }, pods: POD }),
      remove: (world) => world.bindClaim("v"),
      then: N1,
    },
  ],
  untranslatable: [
    {
      what: "the PersistentVolume is replaced by one of a driver",
      given: () =>
        given({
          nodes: ["n1"],
          volumes: { v: { source: { awsElasticBlockStore: { volumeID: "aws://a/bad/id" } } } },
          pods: POD,
        }),
      async remove(world) {
        const claimRef = world.read(persistentVolumes, { name: "pv-v" })?.spec?.claimRef;
        await world.deletePersistentVolume("v");
        const csi = { driver: DRIVER, volumeHandle: "v" };
        const capacity = { storage: "1Gi" };
        await world.client.create(persistentVolumes, {
          metadata: { name: "pv-v" },
          spec: { accessModes: ["ReadWriteOnce"], capacity, csi, ...(claimRef && { claimRef }) },
        });
      },
      then: N1,
    },
  ],
  "node-missing": [
    {
      what: "the node comes",
      given: () => given({ pods: POD }),
      remove: (world) => world.createNode("n1"),
      then: N1,
    },
  ],
  "node-not-managed": [
    {
      what: "the node is given the annotation",
      given: () => given({ nodes: { n1: { managed: false } }, pods: POD }),
      remove: (world) => world.setManaged("n1", true),
      then: N1,
    },
  ],
  "held-by-other-node": [
    {
      what: "the other node has unmounted it",
      async given() {
        const world = await unwanted({ nodes: ["n1", "n2"] });
        await world.createPod("web", { on: "n2", uses: ["v"] });
        return world;
      },
      remove: (world) => world.setInUse("n1", []),
      then: { attached: "n2" },
    },
    {
      what: "somebody's VolumeAttachment for the other node goes",
      async given() {
        const world = await given({ nodes: ["n1", "n2"], volumes: { v: {} } });
        await make(world, { nodeName: "n2" });
        await world.createPod("web", { on: "n1", uses: ["v"] });
        return world;
      },
      remove: (world) => world.client.delete(volumeAttachments, { name: "by-hand" }),
      then: N1,
    },
    {
      what: "a node that attaches for itself lists it no longer",
      given: () =>
        given({ nodes: { n1: {}, n2: { managed: false, attached: ["v"] } }, volumes: { v: {} }, pods: POD }),
      remove: (world) => world.setAttached("n2", []),
      then: N1,
    },
    {
      what: "a shared PersistentVolume of the same disk leaves the other node",
      async given() {
        const volumes = { v: {}, shared: { handle: "v", modes: ["ReadWriteMany"] } };
        const world = await given({
          nodes: ["n1", "n2"],
          volumes,
          pods: { other: { on: "n2", uses: ["shared"] } },
        });
        await world.createPod("web", { on: "n1", uses: ["v"] });
        return world;
      },
      remove: (world) => world.removePod("other"),
      then: N1,
    },
  ],
  "api-request": [
    {
      what: "the server answers",
      async given() {
        const world = await given({ nodes: ["n1"], volumes: { v: {} } });
        world.spoil("POST va v@n1", { kind: "delay", ms: 20_900 }, 1);
        await world.createPod("web", { on: "n1", uses: ["v"] });
        return world;
      },
      remove: () => Promise.resolve(),
      then: N1,
    },
  ],
  "driver-attaching": [
    {
      what: "the attacher answers",
      given: () => given({ nodes: ["n1"], pods: POD, attacher: "by-hand" }),
      remove: (world) => world.hand.attach("v", "n1"),
      then: N1,
    },
    {
      what: "somebody deletes the VolumeAttachment, and the attacher answers to the next",
      given: () => given({ nodes: ["n1"], pods: POD, attacher: "by-hand" }),
      async remove(world) {
        await world.hand.removeByHand("v", "n1");
        await world.settle();
        await world.hand.attach("v", "n1");
      },
      then: N1,
    },
  ],
  "driver-detaching": [
    {
      what: "the attacher answers",
      given: () => unwanted({ attacher: "by-hand" }, (world) => world.hand.attach("v", "n1")),
      remove: (world) => world.hand.release("v", "n1"),
      then: OFF_N1,
    },
  ],
  backoff: [
    {
      what: "the attacher gets it done by itself",
      async given() {
        const world = await given({ nodes: ["n1"], pods: POD, attacher: "by-hand" });
        for (let failures = 0; failures < 6; failures++) {
          await world.hand.failAttach("v", "n1", `failure ${failures}`);
          await world.advance(2 ** failures * 500 + 10);
        }
        await world.hand.failAttach("v", "n1", "the last");
        return world;
      },
      remove: (world) => world.hand.attach("v", "n1"),
      then: N1,
    },
    {
      what: "the VolumeAttachment whose detach failed goes",
      async given() {
        const world = await unwanted({ attacher: "by-hand" }, (world) => world.hand.attach("v", "n1"));
        await world.settle();
        for (let failures = 0; failures < 6; failures++) {
          await world.hand.failDetach("v", "n1", `failure ${failures}`);
          await world.advance(2 ** failures * 500 + 10);
        }
        await world.hand.failDetach("v", "n1", "the last");
        return world;
      },
      remove: (world) => world.hand.release("v", "n1"),
      then: OFF_N1,
    },
  ],
  "node-status": [
    {
      what: "the server answers",
      async given() {
        const world = await given({ nodes: ["n1"], volumes: { v: {} } });
        world.spoil("PATCH node n1", { kind: "delay", ms: 20_900 }, 1);
        await world.createPod("web", { on: "n1", uses: ["v"] });
        return world;
      },
      remove: () => Promise.resolve(),
      then: N1,
    },
    {
      what: "somebody else writes the list",
      async given() {
        const world = await given({ nodes: ["n1"], volumes: { v: {} } });
        world.spoil("PATCH node n1", { kind: "status", status: 500 });
        await world.createPod("web", { on: "n1", uses: ["v"] });
        return world;
      },
      remove: (world) => world.setAttached("n1", ["v"]),
      then: N1,
    },
  ],
  "still-mounted": [
    {
      what: "the node has unmounted it",
      given: () => unwanted(),
      remove: (world) => world.setInUse("n1", []),
      then: OFF_N1,
    },
    {
      what: "the node is out of service",
      given: () => unwanted(),
      remove: (world) => world.setTaints("n1", [{ key: OUT_OF_SERVICE, effect: "NoExecute" }]),
      then: OFF_N1,
    },
    {
      what: "the node is made anew, of another boot",
      given: () => unwanted({ nodes: { n1: { bootId: "1" } } }),
      remove: (world) => remakeNode(world, { bootId: "2" }),
      then: OFF_N1,
    },
    {
      what: "the node was made anew and has said which volumes it uses",
      async given() {
        const world = await unwanted();
        await remakeNode(world);
        return world;
      },
      remove: (world) => world.setInUse("n1", ["w"]),
      then: OFF_N1,
    },
    {
      what: "the node is made anew, and has been ready for two minutes",
      given: () => unwanted(),
      remove: (world) => remakeNode(world),
      then: OFF_N1,
      withinMs: 121_000,
    },
  ],
  "foreign-attachment": [
    {
      what: "its owner deletes it",
      given: () => unwanted({}, (world) => make(world)),
      remove: (world) => remove(world, "by-hand"),
      then: OFF_N1,
    },
  ],
  "unknown-plugin": [
    {
      what: "the plugin comes",
      async given() {
        plugins.length = 0;
        // Since when it is attached nobody knows: what the node uses it has to have said.
        return given({ nodes: { n1: { attached: [LUN], inUse: [OTHER_LUN] } }, plugins });
      },
      async remove(world) {
        plugins.push(createIscsiPlugin());
        world.controller.controller.pluginsChanged();
      },
      then: OFF_N1,
    },
  ],
  "unresolved-pod": [
    {
      what: "the pod that may use it goes",
      // Claim and PersistentVolume are gone: any pod whose volumes cannot be followed may use it.
      given: () =>
        unwanted(
          {
            volumes: { v: {}, lost: { claim: "pending", volume: "missing" } },
            pods: { ...POD, other: { on: "n1", uses: ["lost"] } },
            attacher: "by-hand",
          },
          async (world) => {
            await world.hand.attach("v", "n1");
            await world.settle();
            await world.deleteClaim("v");
            await world.deletePersistentVolume("v");
            await world.restartController();
          },
        ),
      async remove(world) {
        await world.removePod("other");
        await world.settle();
        await world.hand.release("v", "n1");
      },
      then: OFF_N1,
    },
  ],
  "attachment-mismatch": [
    colliding("one for another volume goes", {}),
    colliding("one for another node goes", { nodeName: "n2" }),
    colliding("one of another driver goes", { attacher: "other.example.com" }),
    colliding("one for another node and driver goes", { attacher: "other.example.com", nodeName: "n2" }),
    {
      what: "one of our own for a volume with the same digest is detached",
      async given() {
        // Driver, handle and node are joined without a separator: `csi.example.com` + `n1` is `csi.example.comn` + `1`.
        const world = await given({
          nodes: ["n1", "1"],
          volumes: { v: {}, w: { driver: `${DRIVER}n`, handle: "v" } },
          attacher: "by-hand",
          pods: { other: { on: "1", uses: ["w"] } },
        });
        expect(world.labels.attachmentName("w", "1")).toBe(V_N1);
        await world.hand.attach("w", "1");
        await world.createPod("web", { on: "n1", uses: ["v"] });
        return world;
      },
      async remove(world) {
        await world.removePod("other");
        await world.settle();
        await world.hand.release("w", "1");
        await world.settle();
        await world.hand.attach("v", "n1");
      },
      then: N1,
    },
    {
      what: "the PersistentVolume that it names goes, which leaves the digest",
      async given() {
        const world = await given({ nodes: ["n1"], volumes: { v: {}, w: {} }, attacher: "by-hand" });
        await make(world, { name: V_N1, source: { persistentVolumeName: "pv-w" } });
        await world.hand.attach("v", "n1");
        await world.createPod("web", { on: "n1", uses: ["v"] });
        return world;
      },
      remove: (world) => world.deletePersistentVolume("w"),
      then: N1,
    },
  ],
  "stale-cache": [
    {
      what: "the server is heard of again",
      async given() {
        const world = await unwanted();
        await world.settle();
        world.cutOff();
        await world.setInUse("n1", []);
        await world.advance(250_000);
        return world;
      },
      remove: (world) => world.reconnect(),
      then: OFF_N1,
      // The reflectors come back with a pause of up to 30 s, and a silence that ends is no event: asked every 10 s.
      withinMs: 41_000,
    },
  ],
  "policy-never": [
    {
      what: "the node has unmounted it",
      given: () =>
        unwanted({ options: { detachPolicies: never } }, async (world) => {
          await world.setInUse("n1", ["v"]);
          await world.setReady("n1", "False");
        }),
      remove: (world) => world.setInUse("n1", []),
      then: OFF_N1,
    },
  ],
};

const reasons = (world: AttachDetachWorld) => {
  const { volumes, unresolved } = world.controller.controller.report({ waitingOnly: true });
  return [...volumes, ...unresolved].flatMap(({ waitingFor }) => waitingFor?.reason ?? []);
};

for (const [reason, obstacles] of Object.entries(OBSTACLES) as [WaitingReason, readonly Obstacle[]][])
  describe(`waiting for ${reason}`, () => {
    for (const { what, given: build, remove: removeObstacle, then, withinMs = 1_000 } of obstacles)
      test(`ends when ${what}`, async () => {
        const world = await build();
        // A third of a sweep's minute after the start, or after the last failure.
        await world.advance(20_000);
        expect(reasons(world)).toContain(reason);

        await removeObstacle(world);
        await world.advance(withinMs);

        if ("attached" in then) expect(world.volumesAttached(then.attached)).toContain("v");
        else expect(world.volumesAttached(then.detached)).toEqual([]);
        expect(reasons(world)).not.toContain(reason);
        expect(world.violations).toEqual([]);
      });
  });

/** Pods that are not told of are not known to be gone either. */
for (const plural of ["nodes", "volumeattachments"])
  test(`while nothing is heard of ${plural} nothing is detached; it goes on once they are heard of`, async () => {
    const world = await given({ nodes: ["n1"], pods: POD });
    const { transport } = world.controller;
    const request = transport.request.bind(transport);
    const isList = ({ method, path }: Parameters<typeof request>[0]) =>
      method === "GET" && path.includes(`/${plural}?`);
    transport.request = (call) =>
      isList(call) ? Promise.reject(new KubeError("Unreachable", "no list")) : request(call);
    world.held.add(plural);
    await world.advance(250_000);
    world.forget();

    await world.removePod("web");
    await world.advance(60_000);
    expect(world.requests()).toEqual([]);
    expect(reasons(world)).toEqual(["stale-cache"]);

    transport.request = request;
    world.held.clear();
    await world.advance(101_000);
    expect(world.volumesAttached("n1")).toEqual([]);
    expect(world.attachmentOf("v", "n1")).toBeUndefined();
  });
