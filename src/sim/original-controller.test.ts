import { setMaxListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import type { Client } from "../kube/client/client.ts";
import type { KubeObject, ObjectRef, Resource } from "../kube/object.ts";
import { given, type WorldSketch } from "./attach-detach-world.ts";
import { DRIVER, OUT_OF_SERVICE } from "./cluster-objects.ts";
import { OriginalController } from "./original-controller.ts";

const MINUTE = 60_000;
const ON_N1 = { web: { on: "n1", uses: ["v"] } };
const ATTACHED = [{ volume: "v", node: "n1", attached: true }];
const TAINT = { key: OUT_OF_SERVICE, value: "nodeshutdown", effect: "NoExecute" };

/** A cluster in which upstream's controller runs instead of ours. */
async function givenOriginal(sketch: WorldSketch) {
  const world = await given({ nodes: ["n1", "n2"], ...sketch, started: false });
  const asked: string[] = [];
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const deps = { client: noted(world.client, asked), clock: world.clock, random: createSeededRandom(1) };
  void new OriginalController(deps, { forceAfterMs: 6 * MINUTE }).run(stop.signal);
  await world.advance(10_000);
  return { world, asked, stop: () => stop.abort(new Error("SIGTERM")) };
}

/** What it asks of VolumeAttachments and nodes, a word for each request. */
function noted(client: Client, asked: string[]): Client {
  const note = (verb: string, { kind }: Resource) => void asked.push(`${verb} ${kind}`);
  return {
    ...client,
    get: <T extends KubeObject>(resource: Resource<T>, ref: ObjectRef) => {
      note("get", resource);
      return client.get(resource, ref);
    },
    create: (resource, object, options) => {
      note("create", resource);
      return client.create(resource, object, options);
    },
    patch: (resource, ref, patch, options) => {
      note("patch", resource);
      return client.patch(resource, ref, patch, options);
    },
    delete: (resource, ref, options) => {
      note("delete", resource);
      return client.delete(resource, ref, options);
    },
  };
}

describe("upstream's controller, as a model", () => {
  test("attaches what a pod needs, and lists it once it is attached", async () => {
    const { world, asked } = await givenOriginal({ pods: ON_N1 });

    expect(world.attachmentOf("v", "n1")?.spec).toEqual({
      ...{ attacher: DRIVER, nodeName: "n1", source: { persistentVolumeName: "pv-v" } },
    });
    expect(world.volumesAttached("n1")).toEqual(["v"]);
    expect(asked).toEqual(["create VolumeAttachment", "patch Node"]);
  });

  test("unlists what no pod needs, asks the node, and only then deletes the attachment", async () => {
    const { world, asked } = await givenOriginal({ pods: ON_N1 });
    asked.length = 0;

    await world.removePod("web");
    await world.advance(10_000);

    expect(asked).toEqual(["patch Node", "get Node", "delete VolumeAttachment"]);
    expect(world.attachmentOf("v", "n1")).toBeUndefined();
  });

  test("leaves to a healthy node what it uses, and forces it from one that has not been healthy for 6 minutes", async () => {
    const nodes = { n1: { attached: ["v"], inUse: ["v"] } };
    const { world } = await givenOriginal({ nodes, attachments: ATTACHED });
    await world.advance(5 * MINUTE);
    await world.setReady("n1", "Unknown");
    await world.advance(30_000);
    expect(world.attachmentOf("v", "n1")).toBeDefined();

    await world.advance(MINUTE);

    expect(world.attachmentOf("v", "n1")).toBeUndefined();
  });

  test("the time begins anew with every pod, also with one that was there for a moment", async () => {
    const nodes = { n1: { attached: ["v"], inUse: ["v"], ready: "Unknown" } } as const;
    const { world } = await givenOriginal({ nodes, attachments: ATTACHED });
    await world.advance(5 * MINUTE);

    await world.createPod("web", ON_N1.web);
    await world.advance(300);
    await world.removePod("web");
    await world.advance(5 * MINUTE);
    expect(world.attachmentOf("v", "n1")).toBeDefined();

    await world.advance(2 * MINUTE);
    expect(world.attachmentOf("v", "n1")).toBeUndefined();
  });

  test("takes everything at once from a node out of service", async () => {
    const nodes = { n1: { attached: ["v"], inUse: ["v"], taints: [TAINT] } };
    const { world } = await givenOriginal({ nodes, attachments: ATTACHED });

    expect(world.attachmentOf("v", "n1")).toBeUndefined();
  });

  test("goes on where another controller has ended", async () => {
    const { world, asked } = await givenOriginal({
      nodes: { n1: { attached: ["v"] }, n2: {} },
      volumes: { v: {}, begun: {}, left: {} },
      attachments: [
        ...ATTACHED,
        { volume: "begun", node: "n1", attached: true },
        { volume: "left", node: "n2", attached: true },
      ],
      pods: { web: { on: "n1", uses: ["v", "begun"] } },
    });

    expect(world.volumesAttached("n1")).toEqual(["begun", "v"]);
    expect(world.attachmentOf("left", "n2")).toBeUndefined();
    expect(asked).not.toContain("create VolumeAttachment");
  });

  test("makes again what somebody has deleted, at its next check", async () => {
    const { world } = await givenOriginal({ pods: ON_N1 });
    const { uid } = world.attachmentOf("v", "n1")?.metadata ?? {};

    await world.hand.removeByHand("v", "n1");
    await world.advance(2 * MINUTE);

    expect(world.attachmentOf("v", "n1")?.metadata.uid).not.toBe(uid);
    expect(world.volumesAttached("n1")).toEqual(["v"]);
  });

  test("W-1: an attachment that it is not sure of keeps no other node from being tried", async () => {
    const { world } = await givenOriginal({
      nodes: { n1: { inUse: ["v"] }, n2: {} },
      attachments: ATTACHED,
      pods: { web: { on: "n2", uses: ["v"] } },
      attacher: "by-hand",
    });

    expect(world.attachmentOf("v", "n1")).toBeDefined();
    expect(world.attachmentOf("v", "n2")).toBeDefined();
  });

  test("a node that was made again under its machine has not unmounted anything", async () => {
    const nodes = { n1: { attached: ["v"], inUse: ["v"] } };
    const { world } = await givenOriginal({ nodes, attachments: ATTACHED });

    await world.deleteNode("n1");
    await world.advance(MINUTE);
    await world.createNode("n1");
    await world.advance(MINUTE);

    expect(world.attachmentOf("v", "n1")).toBeDefined();
  });

  test("an attachment of the volume's name for another node is neither the volume's nor deleted", async () => {
    const nodes = { n1: { attached: ["v"], inUse: ["v"] }, n2: {} };
    const { world } = await givenOriginal({ nodes, volumes: { v: {} }, attacher: "by-hand" });
    const name = world.labels.attachmentName("v", "n1");
    const spec = { attacher: DRIVER, nodeName: "n2", source: { persistentVolumeName: "pv-v" } };
    await world.client.create(volumeAttachments, { metadata: { name }, spec });

    await world.setInUse("n1", []);
    await world.advance(MINUTE);

    expect(world.volumesAttached("n1")).toEqual([]);
    expect(world.attachmentOf("v", "n1")).toBeDefined();
  });

  test("after SIGTERM it asks for nothing any more", async () => {
    const { world, asked, stop } = await givenOriginal({ pods: ON_N1 });
    stop();
    asked.length = 0;

    await world.removePod("web");
    await world.advance(MINUTE);

    expect(asked).toEqual([]);
  });
});
