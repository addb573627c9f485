import type { Pod } from "kubernetes-types/core/v1.js";
import { describe, expect, test } from "vitest";
import { StatusError } from "../errors.ts";
import type { ApiObject } from "../objects.ts";
import { admit, review, type AdmissionOptions } from "./admission.ts";
import { admissionDeps, given, kindOf, stored } from "./given.testing.ts";
import type { LooseObject } from "./loose.ts";

type World = Readonly<Record<string, readonly ApiObject[]>>;

const HERE: World = { namespaces: [stored("Namespace", {}, { name: "t" })] };
const C = { name: "c", image: "i" };

function creating(kind: string, object: ApiObject, world: World = {}, options?: AdmissionOptions): ApiObject {
  return admit(
    admissionDeps({ ...HERE, ...world }),
    { operation: "CREATE", kind: kindOf(kind), object },
    options,
  );
}

/** What a pod becomes where its account is `account`. */
function creatingPod(spec: object, account: object = {}): LooseObject<Pod> {
  const serviceaccounts = [given("ServiceAccount", { ...account }, { name: "default" })];
  return creating("Pod", given("Pod", { spec }), { serviceaccounts });
}

function refusal(act: () => unknown) {
  try {
    act();
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
  return undefined;
}

describe("namespaces", () => {
  test("nothing is created in one that is not there", () => {
    const status = refusal(() => creating("ConfigMap", given("ConfigMap"), { namespaces: [] }));

    expect(status).toMatchObject({
      code: 404,
      message: 'namespaces "t" not found',
      details: { name: "t", kind: "namespaces" },
    });
  });

  test("nor in one on its way out, and the cause says so", () => {
    const leaving = given("Namespace", {}, { name: "t", deletionTimestamp: "2026-01-01T00:00:00Z" });

    const status = refusal(() => creating("ConfigMap", given("ConfigMap"), { namespaces: [leaving] }));

    expect(status).toMatchObject({
      code: 403,
      message:
        'configmaps "x" is forbidden: unable to create new content in namespace t because it is being terminated',
      details: { causes: [{ reason: "NamespaceTerminating", field: "metadata.namespace" }] },
    });
  });

  test("what is there already can still be changed: finalizers must come off", () => {
    const old = given("ConfigMap");
    const deps = admissionDeps({});

    expect(admit(deps, { operation: "UPDATE", kind: kindOf("ConfigMap"), object: old, old })).toBe(old);
  });
});

describe("service accounts", () => {
  test("credentials are mounted in every container that has nothing else there", () => {
    const own = {
      ...C,
      name: "own",
      volumeMounts: [{ name: "mine", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" }],
    };

    const { spec } = creatingPod({ containers: [C, own], initContainers: [{ ...C, name: "init" }] });

    const [volume] = spec?.volumes ?? [];
    expect(volume?.name).toMatch(/^kube-api-access-[a-z0-9]{5}$/);
    expect(spec?.containers?.[0]?.volumeMounts).toMatchObject([{ name: volume?.name, readOnly: true }]);
    expect(spec?.containers?.[1]?.volumeMounts).toEqual(own.volumeMounts);
    expect(spec?.initContainers?.[0]?.volumeMounts).toMatchObject([{ name: volume?.name }]);
  });

  test("no volume where no container would mount it", () => {
    const own = {
      ...C,
      volumeMounts: [{ name: "mine", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" }],
    };

    expect(creatingPod({ containers: [own] }).spec?.volumes).toBeUndefined();
  });

  test("a volume that came along is used, not doubled", () => {
    const volumes = [{ name: "kube-api-access-abcde", emptyDir: {} }];

    const { spec } = creatingPod({ containers: [C], volumes });

    expect(spec?.volumes).toEqual(volumes);
    expect(spec?.containers?.[0]?.volumeMounts).toMatchObject([{ name: "kube-api-access-abcde" }]);
  });

  for (const [pod, account, mounted] of [
    [undefined, undefined, true],
    [undefined, false, false],
    [true, false, true], // the pod has the last word
    [false, true, false],
  ] as const) {
    test(`automount: pod ${String(pod)}, account ${String(account)}: ${mounted ? "mounted" : "not mounted"}`, () => {
      const flag = (value: boolean | undefined) =>
        value === undefined ? {} : { automountServiceAccountToken: value };

      const { spec } = creatingPod({ containers: [C], ...flag(pod) }, flag(account));

      expect((spec?.volumes ?? []).length).toBe(mounted ? 1 : 0);
    });
  }

  test("secrets for pulling images come from the account unless the pod names its own", () => {
    const account = { imagePullSecrets: [{ name: "a" }] };

    expect(creatingPod({ containers: [C] }, account).spec?.imagePullSecrets).toEqual([{ name: "a" }]);
    expect(
      creatingPod({ containers: [C], imagePullSecrets: [{ name: "b" }] }, account).spec?.imagePullSecrets,
    ).toEqual([{ name: "b" }]);
  });

  test("a mirror of a pod that a node runs by itself has no account and needs none", () => {
    const pod = given(
      "Pod",
      { spec: { containers: [C] } },
      { annotations: { "kubernetes.io/config.mirror": "h" } },
    );

    expect(creating("Pod", pod)["spec"]).not.toHaveProperty("serviceAccountName");
  });
});

describe("priority and tolerations", () => {
  test("a pod that tolerates one of the two is given the other", () => {
    const own = {
      key: "node.kubernetes.io/not-ready",
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: 5,
    };

    const { spec } = creatingPod({ containers: [C], tolerations: [own] });

    expect(spec?.tolerations).toMatchObject([
      own,
      { key: "node.kubernetes.io/unreachable", tolerationSeconds: 300 },
    ]);
  });

  test("classes that every cluster has are known; others are not", () => {
    const pod = (priorityClassName: string) =>
      creatingPod({ containers: [C], priorityClassName }).spec?.priority;

    expect(pod("system-node-critical")).toBe(2_000_001_000);
    expect(refusal(() => pod("constructor"))?.code).toBe(403);
    expect(refusal(() => pod("gold"))).toMatchObject({
      code: 403,
      message: 'pods "x" is forbidden: no PriorityClass with name gold was found',
    });
  });

  test("a priority of the pod's own making is refused", () => {
    expect(refusal(() => creatingPod({ containers: [C], priority: 5 }))).toMatchObject({ code: 403 });
  });

  test("a PUT that leaves priority out keeps it", () => {
    const old = creatingPod({ containers: [C] });
    const wanted = given("Pod", { spec: { containers: [C], tolerations: old.spec?.tolerations } });

    const pod = admit(admissionDeps({}), { operation: "UPDATE", kind: kindOf("Pod"), object: wanted, old });

    expect(pod["spec"]).toMatchObject({ priority: 0, preemptionPolicy: "PreemptLowerPriority" });
  });
});

describe("storage", () => {
  const defaultClass = (
    name: string,
    creationTimestamp: string,
    key = "storageclass.kubernetes.io/is-default-class",
  ) =>
    given("StorageClass", { provisioner: "p" }, { name, creationTimestamp, annotations: { [key]: "true" } });
  const classOf = (classes: readonly ApiObject[], claim = given("PersistentVolumeClaim")) =>
    (
      creating("PersistentVolumeClaim", claim, { "storageclasses.storage.k8s.io": classes })["spec"] as
        { storageClassName?: string } | undefined
    )?.storageClassName;

  for (const [what, classes, chosen] of [
    ["none", [given("StorageClass", {}, { name: "a" })], undefined],
    [
      "the newest",
      [defaultClass("new", "2026-02-01T00:00:00Z"), defaultClass("old", "2026-01-01T00:00:00Z")],
      "new",
    ],
    [
      "of equals the first by name",
      [defaultClass("b", "2026-01-01T00:00:00Z"), defaultClass("a", "2026-01-01T00:00:00Z")],
      "a",
    ],
    [
      "one marked the old way",
      [defaultClass("a", "2026-01-01T00:00:00Z", "storageclass.beta.kubernetes.io/is-default-class")],
      "a",
    ],
  ] as const) {
    test(`the default class is ${what}`, () => {
      expect(classOf(classes)).toBe(chosen);
    });
  }

  test("a claim that names its class by annotation is left alone", () => {
    const claim = given(
      "PersistentVolumeClaim",
      {},
      { annotations: { "volume.beta.kubernetes.io/storage-class": "c" } },
    );

    expect(classOf([defaultClass("a", "2026-01-01T00:00:00Z")], claim)).toBeUndefined();
  });

  test("a protection finalizer that is there already is not added again", () => {
    const finalizers = ["kubernetes.io/pv-protection"];

    expect(
      creating("PersistentVolume", given("PersistentVolume", {}, { finalizers })).metadata.finalizers,
    ).toEqual(finalizers);
  });

  const claim = (storage: string, storageClassName?: string) =>
    given("PersistentVolumeClaim", {
      spec: {
        resources: { requests: { storage } },
        ...(storageClassName === undefined ? {} : { storageClassName }),
      },
    });

  for (const [what, name, allowed] of [
    ["of a class that can", "growing", true],
    ["of a class that cannot", "fixed", false],
    ["of a class that is gone", "gone", false],
    ["of no class", undefined, false],
  ] as const) {
    test(`growing a claim ${what}: ${allowed ? "good" : "403"}`, () => {
      const deps = admissionDeps({
        "storageclasses.storage.k8s.io": [
          given("StorageClass", { allowVolumeExpansion: true }, { name: "growing" }),
          given("StorageClass", {}, { name: "fixed" }),
        ],
      });
      const kind = kindOf("PersistentVolumeClaim");
      const update = (from: string, to: string) =>
        refusal(() =>
          review(deps, { operation: "UPDATE", kind, object: claim(to, name), old: claim(from, name) }),
        );

      expect(update("1Gi", "2Gi")?.code).toBe(allowed ? undefined : 403);
      expect(update("2Gi", "2048Mi")).toBeUndefined();
    });
  }
});

test("a new node is tainted only on request, and once", () => {
  const taints = [{ key: "node.kubernetes.io/not-ready", effect: "NoSchedule" }];

  expect(creating("Node", given("Node"))).toEqual(given("Node"));
  expect(creating("Node", given("Node"), {}, { taintNewNodes: true })["spec"]).toEqual({ taints });
  expect(creating("Node", given("Node", { spec: { taints } }), {}, { taintNewNodes: true })["spec"]).toEqual({
    taints,
  });
});
