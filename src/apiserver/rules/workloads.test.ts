import { describe, expect, test } from "vitest";
import { SAMPLES } from "../samples.testing.ts";
import { givenServer } from "../scenario.testing.ts";
import { changing, creating, stored } from "./given.testing.ts";

type Members = Readonly<Record<string, unknown>>;
type Spec = Record<string, unknown>;

const specOf = (kind: string) => (SAMPLES[kind] as { spec: Spec }).spec;
const withSpec = (kind: string, spec: Members) => ({ spec: { ...specOf(kind), ...spec } });
const restarting = (policy: string) => {
  const template = specOf("Deployment")["template"] as { metadata: object; spec: object };
  return { template: { ...template, spec: { ...template.spec, restartPolicy: policy } } };
};

describe("defaults are those of the real server:", () => {
  for (const [kind, expected] of [
    [
      "Deployment",
      {
        replicas: 1,
        revisionHistoryLimit: 10,
        progressDeadlineSeconds: 600,
        strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } },
      },
    ],
    ["ReplicaSet", { replicas: 1 }],
    ["ReplicationController", { replicas: 1, selector: { app: "web" } }],
    [
      "DaemonSet",
      {
        revisionHistoryLimit: 10,
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      },
    ],
    [
      "StatefulSet",
      {
        replicas: 1,
        podManagementPolicy: "OrderedReady",
        revisionHistoryLimit: 10,
        persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Retain" },
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
        volumeClaimTemplates: [
          { kind: "PersistentVolumeClaim", apiVersion: "v1", spec: { volumeMode: "Filesystem" } },
        ],
      },
    ],
    [
      "Job",
      {
        parallelism: 1,
        completions: 1,
        backoffLimit: 6,
        completionMode: "NonIndexed",
        suspend: false,
        podReplacementPolicy: "TerminatingOrFailed",
      },
    ],
    [
      "CronJob",
      {
        concurrencyPolicy: "Allow",
        suspend: false,
        successfulJobsHistoryLimit: 3,
        failedJobsHistoryLimit: 1,
      },
    ],
  ] as const) {
    test(kind, () => {
      expect(stored(kind, SAMPLES[kind] as Members)["spec"]).toMatchObject(expected);
    });
  }

  test("a template is defaulted as a pod is, without what is for the pod itself", () => {
    const { template } = stored("Deployment", SAMPLES["Deployment"] as Members)["spec"] as {
      template: { spec: Spec };
    };

    expect(template.spec).toMatchObject({
      restartPolicy: "Always",
      dnsPolicy: "ClusterFirst",
      schedulerName: "default-scheduler",
    });
    expect(template.spec).not.toHaveProperty("enableServiceLinks");
  });

  test("a job finds its pods by its uid", () => {
    const { selector, template } = stored("Job", SAMPLES["Job"] as Members, { uid: "u1" })["spec"] as Record<
      string,
      never
    >;

    expect(selector).toEqual({ matchLabels: { "batch.kubernetes.io/controller-uid": "u1" } });
    expect(template).toMatchObject({
      metadata: { labels: { "controller-uid": "u1", "batch.kubernetes.io/job-name": "x" } },
    });
  });
});

describe("refused:", () => {
  for (const [kind, spec, problem] of [
    ["Deployment", { selector: undefined }, "Required spec.selector"],
    ["Deployment", { selector: {} }, "Invalid spec.selector"],
    ["Deployment", { selector: { matchLabels: { app: "other" } } }, "Invalid spec.template.metadata.labels"],
    ["Deployment", { replicas: -1 }, "Invalid spec.replicas"],
    [
      "Deployment",
      { strategy: { type: "Recreate", rollingUpdate: {} } },
      "Forbidden spec.strategy.rollingUpdate",
    ],
    [
      "Deployment",
      { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } } },
      "Invalid spec.strategy.rollingUpdate.maxUnavailable",
    ],
    [
      "Deployment",
      { progressDeadlineSeconds: 5, minReadySeconds: 5 },
      "Invalid spec.progressDeadlineSeconds",
    ],
    ["Deployment", restarting("Never"), "NotSupported spec.template.spec.restartPolicy"],
    ["ReplicaSet", { selector: { matchLabels: { app: "other" } } }, "Invalid spec.template.metadata.labels"],
    ["DaemonSet", { updateStrategy: { type: "Odd" } }, "NotSupported spec.updateStrategy.type"],
    ["StatefulSet", { podManagementPolicy: "Odd" }, "Invalid spec.podManagementPolicy"],
    [
      "StatefulSet",
      { volumeClaimTemplates: [{ metadata: { name: "d" }, spec: {} }] },
      "Required spec.volumeClaimTemplates[0].spec.accessModes",
    ],
    ["ReplicationController", { selector: { app: "other" } }, "Invalid spec.template.metadata.labels"],
    ["Job", restarting("Always"), "Required spec.template.spec.restartPolicy"],
    ["Job", { completionMode: "Indexed", parallelism: 1 }, "Required spec.completions"],
    ["CronJob", { schedule: "* * *" }, "Invalid spec.schedule"],
    ["CronJob", { schedule: "TZ=UTC * * * * *" }, "Invalid spec.schedule"],
    ["PodDisruptionBudget", { minAvailable: 1, maxUnavailable: 1 }, "Invalid spec"],
  ] as const) {
    test(`${kind} with ${JSON.stringify(spec).slice(0, 80)}`, () => {
      const members = withSpec(kind, spec);
      const object = JSON.parse(JSON.stringify(members)) as Members;

      expect(creating(kind, object, { uid: "u" })).toContain(problem);
    });
  }
});

describe("fixed once made:", () => {
  for (const [kind, spec, problem] of [
    [
      "Deployment",
      { selector: { matchLabels: { app: "web" }, matchExpressions: [{ key: "app", operator: "Exists" }] } },
      "Invalid spec.selector",
    ],
    [
      "DaemonSet",
      { selector: { matchExpressions: [{ key: "app", operator: "Exists" }] } },
      "Invalid spec.selector",
    ],
    ["StatefulSet", { serviceName: "other" }, "Forbidden spec"],
    ["StatefulSet", { volumeClaimTemplates: [] }, "Forbidden spec"],
    ["Job", { completions: 5 }, "Invalid spec.completions"],
    ["Job", { selector: { matchLabels: { a: "b" } } }, "Invalid spec.selector"],
  ] as const) {
    test(`${kind} ${Object.keys(spec).join()}`, () => {
      const old = stored(kind, SAMPLES[kind] as Members, { uid: "u" });

      expect(changing(kind, old, { ...old, spec: { ...(old["spec"] as object), ...spec } })).toContain(
        problem,
      );
    });
  }

  test("replicas, template and strategy of a StatefulSet may change", () => {
    const old = stored("StatefulSet", SAMPLES["StatefulSet"] as Members);
    const spec = {
      ...(old["spec"] as object),
      replicas: 3,
      updateStrategy: { type: "OnDelete" },
      minReadySeconds: 5,
    };

    expect(changing("StatefulSet", old, { ...old, spec })).toEqual([]);
  });
});

describe("/scale", () => {
  for (const kind of ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"]) {
    test(`of a ${kind} is read, put and patched`, async () => {
      const { ok, send } = await givenServer();
      const plural = `${kind.toLowerCase()}s`;
      const path =
        kind === "ReplicationController"
          ? `/api/v1/namespaces/t/${plural}`
          : `/apis/apps/v1/namespaces/t/${plural}`;
      await ok("POST", path, { metadata: { name: "x" }, ...SAMPLES[kind] });

      const read = await ok("GET", `${path}/x/scale`);
      const put = await ok("PUT", `${path}/x/scale`, { metadata: { name: "x" }, spec: { replicas: 4 } });
      const patched = await ok(
        "PATCH",
        `${path}/x/scale`,
        { spec: { replicas: 0 } },
        { type: "application/merge-patch+json" },
      );
      const negative = await send("PUT", `${path}/x/scale`, {
        metadata: { name: "x" },
        spec: { replicas: -1 },
      });
      const stale = await send("PUT", `${path}/x/scale`, { ...read, spec: { replicas: 9 } });

      expect(read).toMatchObject({
        kind: "Scale",
        apiVersion: "autoscaling/v1",
        spec: { replicas: 1 },
        status: { selector: "app=web" },
      });
      expect(put["spec"]).toEqual({ replicas: 4 });
      expect(patched["spec"]).toEqual({});
      expect((await ok("GET", `${path}/x`))["spec"]).toMatchObject({ replicas: 0 });
      expect([negative.status, stale.status]).toEqual([422, 409]);
    });
  }
});
