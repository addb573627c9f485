// What clients do to a server that is about to be killed, each story with objects of its own. A story knows how far it was
// acknowledged and whether one more step may have been carried out, and so what must be found after a restart.
import type { Random } from "../../src/base/random.ts";
import type { Cluster, Seen } from "./cluster.ts";

/** Every object of the resources below, by path. */
export type World = ReadonlyMap<string, Seen>;

export interface Story {
  readonly name: string;
  /** Until its end, or until a call fails because the server is gone. */
  run(cluster: Cluster): Promise<void>;
  /** What is not as it should be once controllers have settled; undefined if all is well. */
  problem(world: World): string | undefined;
}

/** Resources that stories use, as paths of their lists. */
export const LISTS = [
  "/api/v1/namespaces",
  "/api/v1/configmaps",
  "/api/v1/pods",
  "/api/v1/persistentvolumeclaims",
] as const;

/** A write that the server acknowledged, in the order of acknowledgement within a story. */
export interface Acknowledged {
  readonly path: string;
  readonly revision: number;
}

/** Told once, for all stories: revisions that clients were given. */
export type Tell = (write: Acknowledged) => void;

/** Where a step stands: never sent, sent without an answer, acknowledged. */
type Stage = "not sent" | "unknown" | "acknowledged";

/** Runs steps one after the other and remembers how far each came. */
class Steps {
  readonly #stages = new Map<string, Stage>();
  readonly #tell: Tell;

  constructor(tell: Tell) {
    this.#tell = tell;
  }

  async take(name: string, path: string, send: () => Promise<{ status: number; body: Seen }>): Promise<Seen> {
    this.#stages.set(name, "unknown");
    const { status, body } = await send();
    if (status >= 300) throw new UnexpectedAnswer(`${name} ${path}: ${status} ${JSON.stringify(body)}`);
    this.#stages.set(name, "acknowledged");
    // A deletion may be answered with a Status, which has no version.
    const { resourceVersion } = body.metadata as { readonly resourceVersion?: string };
    if (resourceVersion !== undefined) this.#tell({ path, revision: Number(resourceVersion) });
    return body;
  }

  stage(name: string): Stage {
    return this.#stages.get(name) ?? "not sent";
  }
}

/** A refusal where the story had every right; a failure of the test and not of the connection. */
export class UnexpectedAnswer extends Error {}

const NAMESPACED = "/api/v1/namespaces/default";
const MERGE = "application/merge-patch+json";

export function createStory(random: Random, id: string, tell: Tell): Story {
  const steps = new Steps(tell);
  const make = [namespaceStory, ownedStory, ownedStory, orphanStory, finalizerStory, claimStory, patchStory];
  return (make[random.int(make.length)] ?? patchStory)(random, id, steps);
}

function create(cluster: Cluster, steps: Steps, step: string, list: string, object: object): Promise<Seen> {
  const { name } = (object as { metadata: { name: string } }).metadata;
  return steps.take(step, `${list}/${name}`, () => cluster.call("POST", list, object));
}

/** A namespace with things in it, deleted: the controller is in the middle of emptying it when the server goes. */
function namespaceStory(random: Random, id: string, steps: Steps): Story {
  const path = `/api/v1/namespaces/${id}`;
  const count = 1 + random.int(4);
  return {
    name: `namespace ${id}`,
    async run(cluster) {
      await create(cluster, steps, "namespace", "/api/v1/namespaces", { metadata: { name: id } });
      for (let item = 0; item < count; item++)
        await create(cluster, steps, `item ${item}`, `${path}/configmaps`, {
          metadata: { name: `m${item}` },
        });
      await steps.take("delete", path, () => cluster.call("DELETE", path));
    },
    problem(world) {
      const namespace = world.get(path);
      const inside = [...world.keys()].filter((key) => key.startsWith(`${path}/`));
      if (namespace?.metadata.deletionTimestamp !== undefined) return "stuck Terminating";
      if (steps.stage("delete") === "acknowledged" && namespace !== undefined)
        return "deleted and still there";
      if (namespace === undefined && inside.length > 0) return `gone, and left ${inside.join(", ")}`;
      if (steps.stage("delete") !== "not sent" && namespace === undefined) return undefined;
      if (steps.stage("namespace") !== "acknowledged") return undefined;
      if (namespace === undefined) return "lost";
      for (let item = 0; item < count; item++) {
        const isThere = world.has(`${path}/configmaps/m${item}`);
        if (steps.stage(`item ${item}`) === "acknowledged" && !isThere) return `lost m${item}`;
      }
      return undefined;
    },
  };
}

/** An owner, two it owns, and one that these own; deleted from the top. */
function ownedStory(random: Random, id: string, steps: Steps): Story {
  const policy = random.int(2) === 0 ? "Background" : "Foreground";
  const list = `${NAMESPACED}/configmaps`;
  const names = ["owner", "child-0", "child-1", "grandchild"];
  return {
    name: `${policy} ${id}`,
    async run(cluster) {
      const owner = await create(cluster, steps, "owner", list, owned(`${id}-owner`, []));
      const children: Seen[] = [];
      for (const child of ["child-0", "child-1"])
        children.push(await create(cluster, steps, child, list, owned(`${id}-${child}`, [owner])));
      await create(cluster, steps, "grandchild", list, owned(`${id}-grandchild`, children));
      await remove(cluster, steps, `${list}/${id}-owner`, policy);
    },
    problem(world) {
      const found = names.filter((name) => world.has(`${list}/${id}-${name}`));
      const sure = names.filter((name) => steps.stage(name) === "acknowledged");
      const lost = sure.filter((name) => !found.includes(name));
      switch (steps.stage("delete")) {
        case "not sent":
          return lost.length > 0 ? `lost ${lost.join(", ")}` : undefined;
        case "acknowledged":
          return found.length > 0 ? `deleted, and ${found.join(", ")} still there` : undefined;
        case "unknown":
          return found.length > 0 && lost.length > 0 ? `${found.join(", ")} left of all` : undefined;
      }
    },
  };
}

/** An owner that leaves behind what it owned. */
function orphanStory(_random: Random, id: string, steps: Steps): Story {
  const list = `${NAMESPACED}/configmaps`;
  return {
    name: `Orphan ${id}`,
    async run(cluster) {
      const owner = await create(cluster, steps, "owner", list, owned(`${id}-owner`, []));
      await create(cluster, steps, "child", list, owned(`${id}-child`, [owner]));
      await remove(cluster, steps, `${list}/${id}-owner`, "Orphan");
    },
    problem(world) {
      const [owner, child] = [world.get(`${list}/${id}-owner`), world.get(`${list}/${id}-child`)];
      if (steps.stage("child") === "acknowledged" && child === undefined) return "the orphan was collected";
      const deletion = steps.stage("delete");
      if (deletion === "acknowledged" && owner !== undefined) return "the owner is still there";
      const owners = child?.metadata.ownerReferences?.length ?? 0;
      if (owner === undefined && child !== undefined && owners > 0) return "the orphan names its owner";
      if (deletion === "not sent" && steps.stage("owner") === "acknowledged" && owner === undefined)
        return "lost the owner";
      return undefined;
    },
  };
}

/** Something that waits for its finalizer. */
function finalizerStory(random: Random, id: string, steps: Steps): Story {
  const list = `${NAMESPACED}/configmaps`;
  const path = `${list}/${id}`;
  const isReleased = random.int(3) > 0;
  return {
    name: `finalizer ${id}`,
    async run(cluster) {
      const metadata = { name: id, finalizers: ["example.com/hold"] };
      await create(cluster, steps, "create", list, { metadata });
      await steps.take("delete", path, () => cluster.call("DELETE", path));
      if (!isReleased) return;
      const patch = { metadata: { finalizers: null } };
      await steps.take("release", path, () => cluster.call("PATCH", path, patch, MERGE));
    },
    problem(world) {
      const object = world.get(path);
      if (steps.stage("release") === "acknowledged")
        return object === undefined ? undefined : "released and still there";
      if (steps.stage("release") === "unknown" || steps.stage("create") !== "acknowledged") return undefined;
      if (object === undefined) return "gone before its finalizer";
      const isMarked = object.metadata.deletionTimestamp !== undefined;
      return steps.stage("delete") === "acknowledged" && !isMarked ? "the deletion was forgotten" : undefined;
    },
  };
}

/** A claim that a pod uses: deleted, it stays until the pod has gone. */
function claimStory(random: Random, id: string, steps: Steps): Story {
  const [claims, pods] = [`${NAMESPACED}/persistentvolumeclaims`, `${NAMESPACED}/pods`];
  const isReleased = random.int(2) === 0;
  return {
    name: `claim ${id}`,
    async run(cluster) {
      await create(cluster, steps, "claim", claims, claim(id));
      await create(cluster, steps, "pod", pods, podUsing(id));
      await steps.take("delete claim", `${claims}/${id}`, () => cluster.call("DELETE", `${claims}/${id}`));
      if (!isReleased) return;
      const now = { gracePeriodSeconds: 0 };
      await steps.take("delete pod", `${pods}/${id}`, () => cluster.call("DELETE", `${pods}/${id}`, now));
    },
    problem(world) {
      const [found, pod] = [world.get(`${claims}/${id}`), world.get(`${pods}/${id}`)];
      if (
        steps.stage("pod") === "acknowledged" &&
        pod === undefined &&
        steps.stage("delete pod") === "not sent"
      )
        return "lost the pod";
      if (pod !== undefined && found === undefined) return "lost the claim of a pod";
      if (
        steps.stage("claim") === "acknowledged" &&
        found === undefined &&
        steps.stage("delete claim") === "not sent"
      )
        return "lost the claim";
      if (steps.stage("delete pod") === "acknowledged" && pod !== undefined) return "the pod is still there";
      if (pod === undefined && steps.stage("delete claim") === "acknowledged" && found !== undefined)
        return "a claim that nobody uses is still there";
      return undefined;
    },
  };
}

/** Changes one after the other: the last acknowledged is there, or the one whose answer was lost. */
function patchStory(random: Random, id: string, steps: Steps): Story {
  const list = `${NAMESPACED}/configmaps`;
  const path = `${list}/${id}`;
  const count = 1 + random.int(12);
  let [sent, last] = [-1, { n: -1, revision: "" }];
  return {
    name: `patches ${id}`,
    async run(cluster) {
      await create(cluster, steps, "create", list, { metadata: { name: id } });
      for (sent = 0; sent < count; sent++) {
        const patch = { data: { n: String(sent) } };
        const { metadata } = await steps.take(`patch ${sent}`, path, () =>
          cluster.call("PATCH", path, patch, MERGE),
        );
        last = { n: sent, revision: metadata.resourceVersion };
      }
    },
    problem(world) {
      const object = world.get(path);
      if (object === undefined) return steps.stage("create") === "acknowledged" ? "lost" : undefined;
      const n = Number((object["data"] as { n?: string } | undefined)?.n ?? -1);
      const isLast =
        n === last.n && (last.revision === "" || object.metadata.resourceVersion === last.revision);
      return isLast || n === sent ? undefined : `at ${n}, acknowledged ${last.n}, sent ${sent}`;
    },
  };
}

async function remove(
  cluster: Cluster,
  steps: Steps,
  path: string,
  propagationPolicy: string,
): Promise<void> {
  await steps.take("delete", path, () => cluster.call("DELETE", path, { propagationPolicy }));
}

function owned(name: string, owners: readonly Seen[]): object {
  const ownerReferences = owners.map(({ metadata }) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    name: metadata.name,
    uid: metadata.uid,
    blockOwnerDeletion: true,
  }));
  return { metadata: { name, ownerReferences } };
}

function claim(name: string): object {
  const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
  return { metadata: { name }, spec };
}

function podUsing(name: string): object {
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: name } }];
  // On a node: a pod that has none does not keep its claim.
  return { metadata: { name }, spec: { nodeName: "n", containers: [{ name: "c", image: "i" }], volumes } };
}
