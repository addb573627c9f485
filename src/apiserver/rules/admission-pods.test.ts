import type { Pod } from "kubernetes-types/core/v1.js";
import { describe, expect, test } from "vitest";
import { StatusError } from "../errors.ts";
import type { ApiObject } from "../objects.ts";
import { decideCreate } from "./decide.ts";
import { admissionDeps, given, kindOf, NOW, stored } from "./given.testing.ts";
import type { LooseObject } from "./loose.ts";

/** What the objects of a namespace and of the cluster mean for a new pod or claim in it. */

type World = Readonly<Record<string, readonly ApiObject[]>>;

const HERE: World = {
  namespaces: [stored("Namespace", {}, { name: "t" })],
  serviceaccounts: [given("ServiceAccount", { automountServiceAccountToken: false }, { name: "default" })],
};
const C = { name: "c", image: "i" };

function creating(kind: string, object: ApiObject, world: World): ApiObject {
  return decideCreate(admissionDeps({ ...HERE, ...world }), { kind: kindOf(kind), object, now: NOW });
}

function creatingPod(spec: object, world: World): LooseObject<Pod> {
  return creating("Pod", given("Pod", { spec: { containers: [C], ...spec } }), world);
}

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof StatusError) return `${error.status.code} ${error.status.message}`;
    throw error;
  }
  return "none";
}

function ranges(...limits: readonly object[]): World {
  return { limitranges: [given("LimitRange", { spec: { limits } })] };
}

function asking(requests: object, limits: object = {}) {
  return { containers: [{ ...C, resources: { requests, limits } }] };
}

describe("a namespace's range", () => {
  const item = {
    type: "Container",
    default: { cpu: "500m", memory: "500Mi" },
    defaultRequest: { cpu: "100m" },
  };
  // As it is kept: who names no default request means the default limit.
  const defaults: World = { limitranges: [stored("LimitRange", { spec: { limits: [item] } })] };

  test("fills in what containers leave open, and a note says so", () => {
    const pod = creatingPod({ containers: [{ ...C, resources: { limits: { cpu: "1" } } }] }, defaults);

    expect(pod.spec?.containers?.[0]?.resources).toEqual({
      requests: { cpu: "1", memory: "500Mi" },
      limits: { cpu: "1", memory: "500Mi" },
    });
  });

  test("says in a note of the pod what it set, container by container", () => {
    const pod = creatingPod({ initContainers: [{ name: "i", image: "i" }] }, defaults);

    expect(pod.metadata.annotations).toEqual({
      "kubernetes.io/limit-ranger":
        "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c; " +
        "cpu, memory request for init container i; cpu, memory limit for init container i",
    });
  });

  for (const [what, item, spec, said] of [
    [
      "too little",
      { min: { cpu: "100m" } },
      asking({ cpu: "50m" }),
      "minimum cpu usage per Container is 100m, but request is 50m",
    ],
    [
      "nothing asked",
      { min: { cpu: "100m" } },
      {},
      "minimum cpu usage per Container is 100m.  No request is specified",
    ],
    [
      "too much",
      { max: { cpu: "1" } },
      asking({ cpu: "1" }, { cpu: "2" }),
      "maximum cpu usage per Container is 1, but limit is 2",
    ],
    ["no limit", { max: { cpu: "1" } }, {}, "maximum cpu usage per Container is 1.  No limit is specified"],
    [
      "just enough",
      { min: { cpu: "1" }, max: { cpu: "1" } },
      asking({ cpu: "1" }, { cpu: "1000m" }),
      undefined,
    ],
    [
      "far apart",
      { maxLimitRequestRatio: { cpu: "2" } },
      asking({ cpu: "100m" }, { cpu: "250m" }),
      "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000",
    ],
    [
      "twice as much",
      { maxLimitRequestRatio: { cpu: "2" } },
      asking({ cpu: "100m" }, { cpu: "200m" }),
      undefined,
    ],
  ] as const)
    test(`bounds a container: ${what}`, () => {
      const answer = refusal(() => creatingPod(spec, ranges({ type: "Container", ...item })));

      expect(answer).toBe(said === undefined ? "none" : `403 pods "x" is forbidden: ${said}`);
    });

  test("bounds a pod as a whole: containers add up, init containers do not", () => {
    const each = (cpu: string) => ({ image: "i", resources: { requests: { cpu }, limits: { cpu } } });
    const world = ranges({ type: "Pod", max: { cpu: "2" } });
    const pod = (init: string, ...main: readonly string[]) => ({
      containers: main.map((cpu, index) => ({ name: `c${index}`, ...each(cpu) })),
      initContainers: [{ name: "i", ...each(init) }],
    });

    expect(refusal(() => creatingPod(pod("2", "1", "1"), world))).toBe("none");
    expect(refusal(() => creatingPod(pod("1", "1500m", "1"), world))).toContain("but limit is 2500m");
    expect(refusal(() => creatingPod(pod("3", "1"), world))).toContain("but limit is 3");
  });

  test("bounds a claim by what it asks for", () => {
    const world = ranges({ type: "PersistentVolumeClaim", min: { storage: "1Gi" }, max: { storage: "2Gi" } });
    const claim = (storage: string) =>
      given("PersistentVolumeClaim", {
        spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage } } },
      });
    const say = (storage: string) => refusal(() => creating("PersistentVolumeClaim", claim(storage), world));

    expect(say("1536Mi")).toBe("none");
    expect(say("1Mi")).toContain(
      "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi",
    );
    expect(say("3Gi")).toContain(
      "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi",
    );
  });
});

describe("a runtime class", () => {
  const world: World = {
    "runtimeclasses.node.k8s.io": [
      given(
        "RuntimeClass",
        {
          handler: "h",
          overhead: { podFixed: { cpu: "10m" } },
          scheduling: { nodeSelector: { vm: "yes" }, tolerations: [{ key: "vm", operator: "Exists" }] },
        },
        { name: "vm" },
      ),
    ],
  };

  test("gives its pods what they cost beyond their containers, and where they can run", () => {
    const pod = creatingPod({ runtimeClassName: "vm", nodeSelector: { zone: "a" } }, world);

    expect(pod.spec).toMatchObject({ overhead: { cpu: "10m" }, nodeSelector: { zone: "a", vm: "yes" } });
    expect(pod.spec?.tolerations?.map(({ key }) => key)).toContain("vm");
  });

  for (const [what, spec, said] of [
    ["that is not there", { runtimeClassName: "none" }, 'pod rejected: RuntimeClass "none" not found'],
    [
      "with another overhead",
      { runtimeClassName: "vm", overhead: { cpu: "1" } },
      "doesn't match RuntimeClass's",
    ],
    ["with the same overhead", { runtimeClassName: "vm", overhead: { cpu: "0.01" } }, undefined],
    ["none, but an overhead", { overhead: { cpu: "1" } }, "without corresponding RuntimeClass"],
    [
      "on other nodes",
      { runtimeClassName: "vm", nodeSelector: { vm: "no" } },
      "pod.spec.nodeSelector[vm] = no",
    ],
  ] as const)
    test(`is refused: ${what}`, () => {
      const answer = refusal(() => creatingPod(spec, world));

      if (said === undefined) expect(answer).toBe("none");
      else expect(answer).toContain(said);
    });
});
