import { expect, test } from "vitest";
import { chance, pick, type Random } from "../base/random.ts";
import type { ObjectStore } from "../apiserver/store/store.ts";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { forSeeds } from "../sim/seeds.ts";

/**
 * Objects that no API server would let through, written behind its back: fields missing, of the wrong type, or hostile.
 * Each is logged once and counted where it cannot be used; a volume beside them comes and goes as ever.
 */

const OBJECTS_A_WORLD = 20;
const WORLDS = 25;

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const HOSTILE: readonly Json[] = [
  null,
  0,
  -1,
  1e308,
  true,
  "",
  " ",
  "../../etc/passwd",
  "__proto__",
  "x".repeat(10_000),
  [],
  [null],
  [[]],
  {},
  { __proto__x: 1, constructor: { prototype: {} } },
  { length: 3 },
];

/** Whole objects, by resource; `bad-N` is put in for NAME. */
const GOOD: Readonly<Record<string, { readonly namespace: string; readonly object: Json }>> = {
  pods: {
    namespace: "default",
    object: {
      spec: {
        nodeName: "n1",
        containers: [{ name: "app", image: "x" }],
        volumes: [
          { name: "data", persistentVolumeClaim: { claimName: "NAME" } },
          { name: "disk", awsElasticBlockStore: { volumeID: "NAME" } },
          { name: "scratch", ephemeral: { volumeClaimTemplate: { spec: {} } } },
        ],
      },
      status: { phase: "Running", containerStatuses: [{ name: "app", state: { running: {} } }] },
    },
  },
  nodes: {
    namespace: "",
    object: {
      spec: { taints: [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }] },
      status: {
        conditions: [{ type: "Ready", status: "True" }],
        volumesInUse: ["kubernetes.io/csi/csi.example.com^NAME"],
        volumesAttached: [{ name: "kubernetes.io/csi/csi.example.com^NAME", devicePath: "" }],
      },
    },
  },
  persistentvolumeclaims: {
    namespace: "default",
    object: { spec: { volumeName: "NAME" }, status: { phase: "Bound" } },
  },
  persistentvolumes: {
    namespace: "",
    object: {
      spec: {
        accessModes: ["ReadWriteOnce"],
        claimRef: { namespace: "default", name: "NAME", uid: "uid-NAME" },
        csi: { driver: "csi.example.com", volumeHandle: "NAME" },
      },
    },
  },
  "volumeattachments.storage.k8s.io": {
    namespace: "",
    object: {
      spec: { attacher: "csi.example.com", nodeName: "n1", source: { persistentVolumeName: "NAME" } },
      status: { attached: true },
    },
  },
  "csidrivers.storage.k8s.io": { namespace: "", object: { spec: { attachRequired: true } } },
};

/** One to three places of the object spoiled; what remains is as it should be. */
function spoil(random: Random, object: Json): Json {
  const spoiled = structuredClone(object);
  for (let left = 1 + random.int(3); left > 0; left--) {
    const places = placesIn(spoiled);
    if (places.length === 0) break;
    const { holder, key } = pick(random, places);
    if (chance(random, 0.3)) Reflect.deleteProperty(holder, key);
    else holder[key] = structuredClone(pick(random, HOSTILE));
  }
  return spoiled;
}

interface Place {
  readonly holder: { [key: string]: Json };
  readonly key: string;
}

function placesIn(value: Json): Place[] {
  if (typeof value !== "object" || value === null) return [];
  const holder = value as { [key: string]: Json };
  return Object.keys(holder).flatMap((key) => [{ holder, key }, ...placesIn(holder[key] ?? null)]);
}

async function writeBad(store: ObjectStore, random: Random, serial: number): Promise<void> {
  const resource = pick(random, Object.keys(GOOD));
  const { namespace, object } = GOOD[resource] ?? { namespace: "", object: {} };
  const name = `bad-${serial}`;
  const text = JSON.stringify(spoil(random, object)).replaceAll("NAME", name);
  const annotations = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
  await store.create({ resource, namespace, name }, (revision) => {
    const metadata = { name, ...(namespace && { namespace }), uid: `uid-${name}`, annotations };
    const body = JSON.parse(text) as object;
    return JSON.stringify({ ...body, metadata: { ...metadata, resourceVersion: String(revision) } });
  });
}

test("500 objects that no server should have let through disturb nobody", async () => {
  let [serial, refused] = [0, 0];
  await forSeeds(WORLDS, async (random, seed) => {
    const world = await given({ seed, nodes: ["n1"], volumes: { v: {} }, started: false });
    const { store } = world.server;
    for (let left = OBJECTS_A_WORLD / 2; left > 0; left--) await writeBad(store, random, serial++);
    world.startController();
    await world.settle();
    for (let left = OBJECTS_A_WORLD / 2; left > 0; left--) await writeBad(store, random, serial++);
    await world.settle();

    world.forget();
    await world.createPod("web", { on: "n1", uses: ["v"] });
    await world.settle();
    expect(ours(world)).toEqual(["POST va v@n1", "listed"]);

    world.forget();
    await world.removePod("web");
    await world.settle();
    expect(ours(world)).toEqual(["unlisted", "DELETE va v@n1"]);

    // Half an hour of sweeps and retries: nothing falls over, and no complaint is repeated.
    await world.advance(30 * 60_000);
    const complaints = complaintsOf(world);
    expect(Math.max(0, ...complaints.values())).toBeLessThanOrEqual(1);
    refused += complaints.size;
  });
  // Most are read as far as they make sense; some cannot be used at all, and were said to be.
  expect(refused).toBeGreaterThan(0);
});

/** What concerns our own volume, once each; requests about bad objects may be anything. */
function ours(world: AttachDetachWorld): string[] {
  const lines = world.requests().flatMap((line) => {
    if (line.endsWith(" va v@n1")) return [line];
    const list = /^PATCH node n1 \[(.*)\]$/.exec(line)?.[1];
    if (list === undefined) return [];
    return [list.split(/[ ,]+/).includes("v") ? "listed" : "unlisted"];
  });
  return lines.filter((line, index) => line !== lines[index - 1]);
}

/** How often the same complaint about the same object was logged. */
function complaintsOf(world: AttachDetachWorld): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { message, fields } of world.log) {
    if (message !== "object left out of the cache" && message !== "informer handler failed; others were told")
      continue;
    const complaint = `${message} ${String(fields["resource"])} ${String(fields["key"])} ${String(fields["kind"])}`;
    counts.set(complaint, (counts.get(complaint) ?? 0) + 1);
  }
  return counts;
}
