import { expect, test } from "vitest";
import { chance, pick, type Random } from "../../base/random.ts";
import { forSeeds } from "../../sim/seeds.ts";
import { parseStored, type ApiObject } from "../objects.ts";
import type { ObjectStore, StoreKey } from "../store/store.ts";
import { resourceAccess } from "./attributes.ts";
import { createNodeAuthorizer } from "./node-authorizer.ts";
import { referencesOf, volumeSecretsOf } from "./pod-references.ts";
import { bareStore, nodeUser } from "./scenario.testing.ts";
import { textAt } from "./stored.ts";

const NODES = ["n1", "n2"];
const NAMES = ["x", "y", "z"];
const NAMESPACES = ["a", "b"];

test("a node reads exactly what its pods use, whatever was written and removed before", async () => {
  const answers = { allowed: 0, denied: 0 };
  await forSeeds(60, async (random) => {
    const { store } = bareStore();
    const authorizer = createNodeAuthorizer(store);

    for (let step = 0; step < 120; step++) {
      await writeSomething(store, random);
      if (chance(random, 0.3)) continue;
      for (let question = 0; question < 3; question++) {
        const asked = randomQuestion(random);
        const expected = naive(store, asked);
        const { allowed } = authorizer.authorize(
          nodeUser(asked.node),
          resourceAccess({ verb: "get", ...asked.object }),
        );
        expect(allowed, JSON.stringify({ step, asked })).toBe(expected);
        answers[expected ? "allowed" : "denied"]++;
      }
    }
  });
  expect(Math.min(answers.allowed, answers.denied)).toBeGreaterThan(0.1 * (answers.allowed + answers.denied));
});

interface Question {
  readonly node: string;
  readonly object: { readonly resource: string; readonly namespace: string; readonly name: string };
}

function randomQuestion(random: Random): Question {
  const resource = pick(random, ["secrets", "configmaps", "persistentvolumeclaims", "persistentvolumes"]);
  const namespace = resource === "persistentvolumes" ? "" : pick(random, NAMESPACES);
  return { node: pick(random, NODES), object: { resource, namespace, name: pick(random, NAMES) } };
}

async function writeSomething(store: ObjectStore, random: Random): Promise<void> {
  const isPod = chance(random, 0.6);
  const namespace = isPod ? pick(random, NAMESPACES) : "";
  const name = pick(random, NAMES);
  const key: StoreKey = { resource: isPod ? "pods" : "persistentvolumes", namespace, name };
  const spec = isPod ? randomPodSpec(random) : randomVolumeSpec(random);
  const render = () => JSON.stringify({ metadata: { name, namespace }, spec });
  const existing = store.get(key);
  if (existing === undefined) await store.create(key, render);
  else if (chance(random, 0.2)) await store.delete(key, render, { expected: existing.revision });
  else await store.update(key, render, { expected: existing.revision });
}

function randomPodSpec(random: Random): object {
  const volumes = Array.from({ length: 2 + random.int(5) }, () =>
    pick(random, [
      { secret: { secretName: pick(random, NAMES) } },
      { configMap: { name: pick(random, NAMES) } },
      { persistentVolumeClaim: { claimName: pick(random, NAMES) } },
      { projected: { sources: [{ secret: { name: pick(random, NAMES) } }] } },
    ]),
  );
  return { ...(chance(random, 0.8) ? { nodeName: pick(random, NODES) } : {}), volumes };
}

function randomVolumeSpec(random: Random): object {
  const reference = (namespace: string) => ({ namespace, name: pick(random, NAMES) });
  return {
    ...(chance(random, 0.8) ? { claimRef: reference(pick(random, NAMESPACES)) } : {}),
    csi: {
      driver: "d",
      ...(chance(random, 0.5) ? { nodeStageSecretRef: reference(pick(random, NAMESPACES)) } : {}),
      controllerPublishSecretRef: reference(pick(random, NAMESPACES)),
    },
  };
}

/** All pods of the node, one after the other, and all volumes of their claims. */
function naive(store: ObjectStore, { node, object: { resource, namespace, name } }: Question): boolean {
  const all = (kind: string): ApiObject[] => [...store.scan({ resource: kind })].map(parseStored);
  const pods = all("pods").filter((pod) => textAt(pod, "spec", "nodeName") === node);
  const uses = (kind: string, where: string, what: string) =>
    pods.some(
      (pod) =>
        pod.metadata.namespace === where &&
        referencesOf(pod).some((used) => used.kind === kind && used.name === what),
    );
  const volumes = all("persistentvolumes").filter((volume) =>
    uses(
      "persistentvolumeclaims",
      textAt(volume, "spec", "claimRef", "namespace"),
      textAt(volume, "spec", "claimRef", "name"),
    ),
  );
  if (resource === "persistentvolumes") return volumes.some(({ metadata }) => metadata.name === name);
  if (uses(resource, namespace, name)) return true;
  return (
    resource === "secrets" &&
    volumes.some((volume) =>
      volumeSecretsOf(volume).some((secret) => secret.namespace === namespace && secret.name === name),
    )
  );
}
