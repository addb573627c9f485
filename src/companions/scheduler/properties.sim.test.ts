import { expect, test } from "vitest";
import { pick, type Random } from "../../base/random.ts";
import { nodes } from "../../kube/api/node.ts";
import { csiNodes } from "../../kube/api/csi-node.ts";
import { persistentVolumeClaims } from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../../kube/api/persistent-volume.ts";
import { pods, type Pod } from "../../kube/api/pod.ts";
import { isKubeError } from "../../kube/errors.ts";
import { NO_FAULTS, type NetworkFaults } from "../../sim/faulty-transport.ts";
import { forSeeds } from "../../sim/seeds.ts";
import { storageClasses } from "../kinds.ts";
import { SELECTED_NODE } from "../names.ts";
import { limitsOf, presentOn } from "./limits.ts";
import { planPod } from "./plan.ts";
import { given, type SchedulerWorld } from "./stage.testing.ts";
import { reachableFrom, using, viewOf, type NodeRow, type Table } from "./view.testing.ts";

const NODES = ["a", "b", "c"] as const;
const CLAIMS = ["c-0", "c-1", "c-2", "c-3", "c-4", "c-5", "c-6", "c-7"] as const;
const PODS = ["p-0", "p-1", "p-2", "p-3", "p-4", "p-5", "p-6", "p-7", "p-8", "p-9"] as const;
const LIMIT = 2;
const DEDICATED = { key: "dedicated", effect: "NoSchedule" };

/**
 * Pods, claims and nodes come and go while requests fail, watches break and the scheduler is killed. Another part plays the
 * binder: sometimes quickly, sometimes not at all, sometimes it gives the node back.
 */
test("every pod that can have a node gets one node, none more than it takes, and who waits says why", async () => {
  let [bindings, runs] = [0, 0];
  await forSeeds(6, async (random, seed) => {
    let faults: NetworkFaults = STORM;
    const world = await given({ seed, network: () => faults });
    // One node is for those who tolerate it, so that some pods have fewer to choose from.
    for (const name of NODES)
      await world.createNode(name, { limit: LIMIT, ...(name === "c" && { taints: [DEDICATED] }) });
    for (const claim of CLAIMS) await createClaim(world, claim, random);
    const watch = new Watch(world);
    world.start();

    for (let round = 0; round < 80; round++) {
      await happen(world, random);
      watch.look();
      if (random.int(20) === 0) {
        world.kill();
        world.start();
      }
      await world.advance(random.int(400));
      watch.look();
    }
    faults = NO_FAULTS;
    // A request that was swallowed is given up after 30 s.
    await world.advance(35_000);
    for (let round = 0; round < 3; round++) {
      await playBinder(world, random, { always: true });
      await world.advance(11_000);
      watch.look();
    }

    expect(unexplained(world)).toEqual([]);
    expect(forgotten(world)).toEqual([]);
    bindings += watch.bindings;
    runs++;
  });
  expect(bindings / runs).toBeGreaterThan(8);
});

const STORM: NetworkFaults = {
  ...NO_FAULTS,
  unreachable: 0.04,
  lostRequest: 0.01,
  lostAnswer: 0.12,
  tooMany: 0.03,
  serverError: 0.04,
  cut: 0.02,
  repeated: 0.05,
};

async function happen(world: SchedulerWorld, random: Random): Promise<void> {
  const [pod, node] = [pick(random, PODS), pick(random, NODES)];
  switch (random.int(8)) {
    case 0:
    case 1:
    case 2: {
      const claims = CLAIMS.filter(() => random.int(8) === 0).slice(0, 2);
      const tolerations = random.int(3) === 0 ? [{ operator: "Exists" }] : [];
      await ignoring(world.createPod(pod, { ...using(...claims), tolerations }));
      return;
    }
    case 3:
    case 4:
      await world.removePod(pod);
      return;
    case 5:
      if (world.read(nodes, { name: node }))
        await world.patchNode(node, { spec: { unschedulable: random.int(2) === 0 || null } });
      return;
    default:
      await playBinder(world, random, { always: false });
  }
}

async function createClaim(world: SchedulerWorld, name: string, random: Random): Promise<void> {
  const storageClass = pick(random, ["now", "later", "later"]);
  const modes = pick(random, [["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteOncePod"]]);
  await world.createClaim(name, { storageClass, modes });
}

/** Makes volumes for claims that may have one; half of them can be reached from the node of their pod only. */
async function playBinder(
  world: SchedulerWorld,
  random: Random,
  { always }: { readonly always: boolean },
): Promise<void> {
  for (const name of CLAIMS) {
    const claim = world.claim(name);
    if (!claim || claim.status?.phase === "Bound" || (!always && random.int(3) !== 0)) continue;
    const node = claim.metadata.annotations?.[SELECTED_NODE];
    if (claim.spec?.storageClassName === "later" && node === undefined) continue;
    if (node !== undefined && !always && random.int(4) === 0) await world.deselect(name);
    else
      await world.provision(
        name,
        node !== undefined && random.int(2) === 0 ? reachableFrom(node) : undefined,
      );
  }
}

async function ignoring(creation: Promise<void>): Promise<void> {
  await creation.catch((error: unknown) => {
    if (!isKubeError(error, "AlreadyExists")) throw error;
  });
}

/** What may never be seen at any moment, whatever else goes wrong. */
class Watch {
  bindings = 0;
  readonly #world: SchedulerWorld;
  readonly #nodeOf = new Map<string, string>();

  constructor(world: SchedulerWorld) {
    this.#world = world;
  }

  look(): void {
    const table = tableOf(this.#world);
    const view = viewOf(table);
    for (const { metadata, spec } of table.pods ?? []) {
      const [uid, node] = [metadata.uid ?? "", spec?.nodeName ?? ""];
      if (!node) continue;
      if (!this.#nodeOf.has(uid)) this.bindings++;
      expect(this.#nodeOf.get(uid) ?? node, `${metadata.name} has moved`).toBe(node);
      this.#nodeOf.set(uid, node);
      const tolerates = (spec?.tolerations ?? []).some(({ operator, key }) => operator === "Exists" && !key);
      expect(node === "c" && !tolerates, `${metadata.name} is on a node that is not for it`).toBe(false);
    }
    for (const nodeView of view.nodes)
      for (const [driver, limit] of limitsOf(nodeView))
        expect(
          presentOn(nodeView, view).get(driver)?.size ?? 0,
          `volumes on ${nodeView.name}`,
        ).toBeLessThanOrEqual(limit);
  }
}

/** Pods without a node that do not say why. */
function unexplained(world: SchedulerWorld): string[] {
  const nameless = world
    .list(pods)
    .filter(({ spec }) => !spec?.nodeName)
    .map(({ metadata }) => metadata.name ?? "");
  return nameless.filter((name) => (world.whyNot(name) ?? "") === "");
}

/** Pods without a node for which a look at the cluster as it is now would find something to do. */
function forgotten(world: SchedulerWorld): string[] {
  const table = tableOf(world);
  const waiting = (table.pods ?? []).filter(({ spec }) => !spec?.nodeName);
  return waiting.flatMap((pod: Pod) => {
    const plan = planPod(pod, viewOf(table), { schedulerName: "default-scheduler" });
    return plan.kind === "unschedulable" ? [] : [`${pod.metadata.name}: ${plan.kind}`];
  });
}

function tableOf(world: SchedulerWorld): Table {
  const rows: Record<string, NodeRow> = {};
  for (const { metadata, spec } of world.list(nodes)) {
    const found = world.read(csiNodes, { name: metadata.name ?? "" })?.spec.drivers ?? [];
    const drivers = Object.fromEntries(found.map((one) => [one.name, one.allocatable?.count]));
    rows[metadata.name ?? ""] = { ...spec, labels: metadata.labels ?? {}, drivers };
  }
  return {
    nodes: rows,
    pods: world.list(pods),
    claims: world.list(persistentVolumeClaims),
    volumes: world.list(persistentVolumes),
    classes: world.list(storageClasses),
  };
}
