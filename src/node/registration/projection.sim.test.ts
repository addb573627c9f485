import { describe, expect, test } from "vitest";
import { csiNodes, type CSINode } from "../../kube/api/csi-node.ts";
import { nodes } from "../../kube/api/node.ts";
import type { Client } from "../../kube/client/client.ts";
import { KubeError } from "../../kube/errors.ts";
import { driversOf, NODE_ID_ANNOTATION } from "./csi-node.ts";
import { givenRegistrar, plugin } from "./stage.testing.ts";

/** Whatever somebody takes away or changes of what the agent writes comes back: at once by watch, else within a minute. */

const SOCKET = "/registry/d-reg.sock";
const REF = { name: "n1" };
const WITHIN_MS = 1_000;
const WITHIN_UNWATCHED_MS = 95_000;

type Damage = readonly [what: string, damage: (client: Client) => Promise<unknown>];

const DAMAGES: readonly Damage[] = [
  ["the CSINode is deleted", (client) => client.delete(csiNodes, REF)],
  ["the driver's entry is taken out", (client) => changeCsiNode(client, { drivers: [] })],
  ["its node id is another", (client) => replaceEntry(client, { nodeID: "wrong" })],
  ["its topology keys are gone", (client) => replaceEntry(client, { topologyKeys: [] })],
  ["its count is another", (client) => replaceEntry(client, { allocatable: { count: 1 } })],
  ["its count is gone", (client) => replaceEntry(client, { allocatable: undefined })],
  ["the CSINode has no owner", (client) => patchCsiNode(client, { ownerReferences: null })],
  ["its annotation of migrated plugins is gone", (client) => patchCsiNode(client, { annotations: null })],
  ["the node's annotation is gone", (client) => patchNode(client, { annotations: null })],
  [
    "the node's annotation names another id",
    (client) => patchNode(client, { annotations: { [NODE_ID_ANNOTATION]: '{"d":"x"}' } }),
  ],
  [
    "the node's annotation is no JSON",
    (client) => patchNode(client, { annotations: { [NODE_ID_ANNOTATION]: "{" } }),
  ],
  ["a topology label is gone", (client) => patchNode(client, { labels: { zone: null } })],
  ["the Node is made again, its CSINode still there", (client) => makeNodeAgain(client)],
  [
    "the Node is made again after the garbage collector took its CSINode",
    async (client) => {
      await client.delete(csiNodes, REF);
      await makeNodeAgain(client);
    },
  ],
];

describe("what the cluster is told of a driver comes back", () => {
  for (const watched of [true, false])
    for (const [what, damage] of DAMAGES)
      test(`${what}${watched ? "" : ", with rights that let nobody watch CSINodes"}`, async () => {
        const world = await givenDriver(watched);
        const before = await told(world);

        await damage(world.client);
        expect(await told(world)).not.toEqual(before);
        await world.scheduler.runFor(watched ? WITHIN_MS : WITHIN_UNWATCHED_MS);

        expect(await told(world)).toEqual(before);
        await world.stop();
      });

  test("also after hours of reading it every minute, with rights that let nobody watch CSINodes", async () => {
    const world = await givenDriver(false);
    const before = await told(world);
    await world.scheduler.runFor(3 * 3_600_000);

    for (const [what, damage] of DAMAGES.filter(([name]) => name.includes("made again"))) {
      await damage(world.client);
      await world.scheduler.runFor(WITHIN_MS);
      expect(await told(world), what).toEqual(before);
      await world.scheduler.runFor(3_600_000);
    }
    await world.stop();
  });

  test("a Node that is gone is waited for, and nothing is written meanwhile", async () => {
    const world = await givenDriver(true);
    const before = await told(world);
    await world.client.delete(nodes, REF);
    await world.client.delete(csiNodes, REF);
    const lines = world.logs.length;

    await world.scheduler.runFor(600_000);
    expect(world.logs.slice(lines)).toEqual([]);
    await world.client.create(nodes, { metadata: REF });
    await world.scheduler.runFor(WITHIN_MS);

    expect(await told(world)).toEqual(before);
    await world.stop();
  });
});

describe("another writer", () => {
  test("that insists is not fought with: 20 writes in an hour, not 36,000", async () => {
    const world = await givenDriver(true);
    let writes = 0;
    for (let second = 0; second < 3_600; second++) {
      if (driversOf(await world.csiNodeObject()).length > 0) {
        await changeCsiNode(world.client, { drivers: [] });
        writes++;
      }
      await world.scheduler.runFor(1_000);
    }

    expect(writes).toBeGreaterThan(5);
    expect(writes).toBeLessThan(25);
    await world.stop();
  });

  test("that gave a topology label another value keeps it, and everything else comes back", async () => {
    const world = await givenDriver(true);

    await patchNode(world.client, { labels: { zone: "theirs" }, annotations: null });
    await world.scheduler.runFor(600_000);

    const { metadata } = await world.node();
    expect(metadata.labels?.["zone"]).toBe("theirs");
    expect(metadata.annotations?.[NODE_ID_ANNOTATION]).toBe('{"d":"id-1"}');
    expect(world.logs.filter((line) => line.includes("topology value collision"))).toHaveLength(1);
    await world.stop();
  });

  test("adds an entry of its own: it stays", async () => {
    const world = await givenDriver(true);
    const entry = { name: "foreign", nodeID: "f", topologyKeys: [] };
    await changeCsiNode(world.client, { drivers: [entry] });

    await world.scheduler.runFor(WITHIN_MS);

    expect((await world.entries()).map(({ name }) => name)).toEqual(["foreign", "d"]);
    await world.stop();
  });
});

test("a driver that leaves is not brought back, whatever happens to the objects on its way out", async () => {
  const world = await givenDriver(true);
  await world.vanishes(SOCKET);

  for (let second = 0; second < 70; second++) {
    await makeNodeAgain(world.client);
    await world.scheduler.runFor(1_000);
  }
  await world.scheduler.runFor(600_000);

  expect(await world.entries()).toEqual([]);
  expect((await world.node()).metadata.annotations?.[NODE_ID_ANNOTATION]).toBeUndefined();
  await world.stop();
});

type World = Awaited<ReturnType<typeof givenRegistrar>>;

async function givenDriver(watched: boolean): Promise<World> {
  const world = await givenRegistrar(watched ? {} : { behaves: withoutList });
  await world.appears(SOCKET, plugin({ topology: { zone: "z1" }, maxVolumes: 10n }));
  await world.scheduler.runFor(5_000);
  return world;
}

/** What NodeRestriction and the authorizer of nodes allow a kubelet. */
function withoutList(client: Client): Client {
  const refuse = async (): Promise<never> => {
    throw new KubeError("Forbidden", "can only get, create, update, patch, or delete a CSINode");
  };
  return {
    ...client,
    list: (resource, options) => (resource.plural === "csinodes" ? refuse() : client.list(resource, options)),
    watch: (resource, options) =>
      resource.plural === "csinodes" ? refuse() : client.watch(resource, options),
  };
}

/** Everything the agent wrote; an owner is told by whether it is the node of now. */
async function told(world: World) {
  const { metadata } = await world.node().catch(() => ({ metadata: { uid: "" } }) as never);
  const object: CSINode | undefined = await world.csiNodeObject().catch(() => undefined);
  return {
    labels: metadata.labels,
    annotations: metadata.annotations,
    drivers: object && driversOf(object),
    migrated: object?.metadata.annotations,
    isOwned: object?.metadata.ownerReferences?.map(({ uid }) => uid === metadata.uid),
  };
}

async function makeNodeAgain(client: Client): Promise<void> {
  await client.delete(nodes, REF);
  await client.create(nodes, { metadata: REF });
}

async function changeCsiNode(client: Client, spec: CSINode["spec"]): Promise<void> {
  await client.update(csiNodes, { ...(await client.get(csiNodes, REF)), spec });
}

/** A server lets nobody change an entry: out with it, then in again. */
async function replaceEntry(client: Client, fields: object): Promise<void> {
  const [entry] = driversOf(await client.get(csiNodes, REF));
  await changeCsiNode(client, { drivers: [] });
  await changeCsiNode(client, { drivers: [{ ...entry!, ...fields }] });
}

async function patchCsiNode(client: Client, metadata: object): Promise<void> {
  await client.patch(csiNodes, REF, { type: "merge", value: { metadata } });
}

async function patchNode(client: Client, metadata: object): Promise<void> {
  await client.patch(nodes, REF, { type: "merge", value: { metadata } });
}
