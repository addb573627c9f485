import type { PodSpec } from "kubernetes-types/core/v1.js";
import { describe, expect, test } from "vitest";
import type { ApiObject } from "../objects.ts";
import { changing, creating, given, kindOf, NOW, stored } from "./given.testing.ts";
import type { Loose } from "./loose.ts";
import { qosClassOf } from "./qos.ts";
import { rulesFor } from "./rules.ts";

const C = { name: "c", image: "i" };
const rules = rulesFor(kindOf("Pod"));

function specOf(spec: Loose<PodSpec>): Loose<PodSpec> {
  return rules.applyDefaults(given("Pod", { spec }))["spec"] ?? {};
}

describe("defaults", () => {
  for (const [image, policy] of [
    ["busybox", "Always"],
    ["busybox:latest", "Always"],
    ["busybox:1.36", "IfNotPresent"],
    ["registry.example:5000/busybox", "Always"], // a port is no tag
    ["registry.example:5000/busybox:1", "IfNotPresent"],
    ["busybox@sha256:0123", "IfNotPresent"],
    ["busybox:latest@sha256:0123", "Always"],
  ] as const) {
    test(`${image} is pulled ${policy}`, () => {
      expect(specOf({ containers: [{ name: "c", image }] }).containers?.[0]?.imagePullPolicy).toBe(policy);
    });
  }

  test("requests are limits unless said otherwise", () => {
    const resources = { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "500m" } };

    const [container] = specOf({ containers: [{ ...C, resources }] }).containers ?? [];

    expect(container?.resources?.requests).toEqual({ cpu: "500m", memory: "1Gi" });
  });

  test("on the host's network a port is a port of the host", () => {
    const ports = [{ containerPort: 80 }, { containerPort: 81, hostPort: 8081 }];

    const [container] = specOf({ hostNetwork: true, containers: [{ ...C, ports }] }).containers ?? [];

    expect(container?.ports).toEqual([
      { containerPort: 80, hostPort: 80, protocol: "TCP" },
      { containerPort: 81, hostPort: 8081, protocol: "TCP" },
    ]);
  });

  test("the older name of the account is the account", () => {
    expect(specOf({ serviceAccount: "a" })).toMatchObject({ serviceAccountName: "a", serviceAccount: "a" });
    expect(specOf({ serviceAccount: "a", serviceAccountName: "b" })).toMatchObject({
      serviceAccountName: "b",
      serviceAccount: "b",
    });
  });

  test("probes, hooks and every kind of volume that has something to fill in", () => {
    const spec = specOf({
      containers: [
        {
          ...C,
          startupProbe: { httpGet: { port: 80 } },
          readinessProbe: { grpc: { port: 1 }, periodSeconds: 3 },
          lifecycle: { preStop: { httpGet: { port: 80 } } },
        },
      ],
      volumes: [
        { name: "none" },
        { name: "config", configMap: { name: "m", defaultMode: 256 } },
        { name: "down", downwardAPI: { items: [{ path: "p", fieldRef: { fieldPath: "metadata.name" } }] } },
        {
          name: "all",
          projected: { sources: [{ downwardAPI: { items: [{ path: "p", fieldRef: { fieldPath: "x" } }] } }] },
        },
        { name: "own", ephemeral: { volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"] } } } },
      ],
    });

    expect(spec.containers?.[0]).toMatchObject({
      startupProbe: { httpGet: { path: "/", scheme: "HTTP" }, timeoutSeconds: 1, failureThreshold: 3 },
      readinessProbe: { grpc: { port: 1, service: "" }, periodSeconds: 3 },
      lifecycle: { preStop: { httpGet: { path: "/", scheme: "HTTP" } } },
    });
    expect(spec.volumes).toMatchObject([
      { emptyDir: {} },
      { configMap: { defaultMode: 256 } },
      { downwardAPI: { defaultMode: 420, items: [{ fieldRef: { apiVersion: "v1" } }] } },
      {
        projected: {
          defaultMode: 420,
          sources: [{ downwardAPI: { items: [{ fieldRef: { apiVersion: "v1" } }] } }],
        },
      },
      { ephemeral: { volumeClaimTemplate: { spec: { volumeMode: "Filesystem" } } } },
    ]);
  });

  for (const [given_, podIP, podIPs] of [
    [{ podIP: "10.0.0.1" }, "10.0.0.1", [{ ip: "10.0.0.1" }]],
    [
      { podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }] },
      "10.0.0.1",
      [{ ip: "10.0.0.1" }, { ip: "fd00::1" }],
    ],
    [{ podIP: "10.0.0.2", podIPs: [{ ip: "10.0.0.1" }] }, "10.0.0.2", [{ ip: "10.0.0.2" }]], // an older agent knows one
    [
      { podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }] },
      "10.0.0.1",
      [{ ip: "10.0.0.1" }, { ip: "fd00::1" }],
    ],
  ] as const) {
    test(`addresses ${JSON.stringify(given_)} are ${podIPs.length}, first ${podIP}`, () => {
      expect(rules.applyDefaults(given("Pod", { status: given_ }))["status"]).toEqual({ podIP, podIPs });
    });
  }
});

describe("quality of service", () => {
  const full = { cpu: "1", memory: "1Gi" };

  for (const [what, containers, qos] of [
    ["nothing asked for", [{}], "BestEffort"],
    ["zero asked for", [{ requests: { cpu: "0" } }], "BestEffort"],
    ["other things asked for", [{ requests: { "ephemeral-storage": "1Gi" } }], "BestEffort"],
    [
      "limits and the same requests",
      [{ limits: full, requests: { cpu: "1000m", memory: "1024Mi" } }],
      "Guaranteed",
    ],
    ["requests below limits", [{ limits: full, requests: { ...full, cpu: "500m" } }], "Burstable"],
    ["a limit for memory alone", [{ limits: { memory: "1Gi" }, requests: { memory: "1Gi" } }], "Burstable"],
    ["one of two containers without", [{ limits: full, requests: full }, {}], "Burstable"],
    [
      "both containers",
      [
        { limits: full, requests: full },
        { limits: full, requests: full },
      ],
      "Guaranteed",
    ],
  ] as const) {
    test(`${what}: ${qos}`, () => {
      expect(qosClassOf({ containers: containers.map((resources) => ({ resources })) })).toBe(qos);
    });
  }

  test("is worked out at creation from what the defaults made of the pod, whatever its status claimed", () => {
    const pod = given("Pod", {
      spec: { containers: [{ ...C, resources: { limits: full } }] },
      status: { qosClass: "BestEffort" },
    });

    expect(rules.prepareCreate(rules.applyDefaults(pod), { now: NOW })["status"]).toEqual({
      phase: "Pending",
      qosClass: "Guaranteed",
    });
  });

  test("is kept where a status write leaves it out, and cannot be changed", () => {
    const old = stored("Pod", { spec: { containers: [C] } });
    const writing = (status: object) => {
      const pod = rules.prepareStatusUpdate({ ...old, status }, old, { now: NOW });
      return rules.validateStatusUpdate(pod, old).map(({ field }) => field);
    };

    expect(writing({ phase: "Failed" })).toEqual([]);
    expect(writing({ qosClass: "Guaranteed" })).toEqual(["status.qosClass"]);
    expect(writing({ nominatedNodeName: "A B" })).toEqual(["status.nominatedNodeName"]);
  });
});

test("a status write says nothing about a pod's owners", () => {
  const ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "n", uid: "1" }];
  const old = stored("Pod", { spec: { containers: [C] } }, { ownerReferences });

  const next = rules.prepareStatusUpdate(
    given("Pod", { status: { phase: "Running" } }, { labels: { a: "b" } }),
    old,
    { now: NOW },
  );

  expect(next.metadata).toMatchObject({ ownerReferences, labels: { a: "b" } });
});

describe("validation", () => {
  const claim = { name: "v", persistentVolumeClaim: { claimName: "c" } };
  const mount = (members: object) => ({ ...C, volumeMounts: [{ name: "v", mountPath: "/v", ...members }] });

  for (const [what, spec, causes] of [
    ["two containers of one name", { containers: [C, C] }, ["Duplicate spec.containers[1].name"]],
    [
      "an init container with a container's name",
      { containers: [C], initContainers: [C] },
      ["Duplicate spec.initContainers[0].name"],
    ],
    [
      "an image with a blank",
      { containers: [{ name: "c", image: " i" }] },
      ["Invalid spec.containers[0].image"],
    ],
    [
      "two mounts in one place",
      {
        volumes: [claim],
        containers: [
          {
            ...C,
            volumeMounts: [
              { name: "v", mountPath: "/v" },
              { name: "v", mountPath: "/v" },
            ],
          },
        ],
      },
      ["Invalid spec.containers[0].volumeMounts[1].mountPath"],
    ],
    [
      "a mount nowhere",
      { volumes: [claim], containers: [mount({ mountPath: "" })] },
      ["Required spec.containers[0].volumeMounts[0].mountPath"],
    ],
    [
      "a sub path that climbs",
      { volumes: [claim], containers: [mount({ subPath: "a/../../b" })] },
      ["Invalid spec.containers[0].volumeMounts.subPath"],
    ],
    [
      "an absolute sub path",
      { volumes: [claim], containers: [mount({ subPath: "/a" })] },
      ["Invalid spec.containers[0].volumeMounts.subPath"],
    ],
    [
      "both kinds of sub path",
      { volumes: [claim], containers: [mount({ subPath: "a", subPathExpr: "b" })] },
      ["Invalid spec.containers[0].volumeMounts[0].subPathExpr"],
    ],
    [
      "a claim as device",
      { volumes: [claim], containers: [{ ...C, volumeDevices: [{ name: "v", devicePath: "/dev/a" }] }] },
      [],
    ],
    [
      "a directory as device",
      {
        volumes: [{ name: "v" }],
        containers: [{ ...C, volumeDevices: [{ name: "v", devicePath: "/dev/a" }] }],
      },
      ["Invalid spec.containers[0].volumeDevices[0].name"],
    ],
    [
      "a device of no volume, nowhere",
      { containers: [{ ...C, volumeDevices: [{ name: "w" }] }] },
      [
        "NotFound spec.containers[0].volumeDevices[0].name",
        "Required spec.containers[0].volumeDevices[0].devicePath",
      ],
    ],
    [
      "device and mount at once",
      { volumes: [claim], containers: [{ ...mount({}), volumeDevices: [{ name: "v", devicePath: "/v" }] }] },
      [
        "Invalid spec.containers[0].volumeMounts[0].name",
        "Invalid spec.containers[0].volumeMounts[0].mountPath",
        "Invalid spec.containers[0].volumeDevices[0].name",
        "Invalid spec.containers[0].volumeDevices[0].devicePath",
      ],
    ],
    [
      "a request above its limit",
      { containers: [{ ...C, resources: { limits: { cpu: "1" }, requests: { cpu: "2" } } }] },
      ["Invalid spec.containers[0].resources.requests"],
    ],
    [
      "a resource that JavaScript knows",
      {
        containers: [
          { ...C, resources: { requests: { "ex.io/a": "1", constructor: "1" }, limits: { "ex.io/a": "1" } } },
        ],
      },
      // Neither a standard resource nor one for containers, and no limit but its own is looked for.
      [
        "Invalid spec.containers[0].resources.requests[constructor]",
        "Invalid spec.containers[0].resources.requests[constructor]",
      ],
    ],
    [
      "a negative limit",
      { containers: [{ ...C, resources: { limits: { cpu: "-1" } } }] },
      [
        "Invalid spec.containers[0].resources.limits[cpu]",
        "Invalid spec.containers[0].resources.requests[cpu]",
      ],
    ],
    [
      "port 0 and port 70000",
      { containers: [{ ...C, ports: [{}, { containerPort: 70_000 }] }] },
      [
        "Required spec.containers[0].ports[0].containerPort",
        "Invalid spec.containers[0].ports[1].containerPort",
      ],
    ],
    [
      "a nameless variable",
      { containers: [{ ...C, env: [{ value: "v" }] }] },
      ["Required spec.containers[0].env[0].name"],
    ],
    [
      "a nameless volume",
      { containers: [C], volumes: [{ emptyDir: {} }] },
      ["Required spec.volumes[0].name"],
    ],
    [
      "a file mode beyond 0777",
      { containers: [C], volumes: [{ name: "v", secret: { secretName: "s", defaultMode: 512 } }] },
      ["Invalid spec.volumes[0].secret.defaultMode"],
    ],
    [
      "a key that becomes a file above the volume",
      {
        containers: [C],
        volumes: [{ name: "v", configMap: { name: "m", items: [{ key: "k", path: "../p" }] } }],
      },
      ["Invalid spec.volumes[0].configMap.items[0].path"],
    ],
    [
      "an empty directory of negative size",
      { containers: [C], volumes: [{ name: "v", emptyDir: { sizeLimit: "-1" } }] },
      ["Forbidden spec.volumes[0].emptyDir.sizeLimit"],
    ],
    [
      "a claim template that asks for nothing",
      { containers: [C], volumes: [{ name: "v", ephemeral: { volumeClaimTemplate: {} } }] },
      [
        "Required spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes",
        "Required spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]",
      ],
    ],
    [
      "a token for a minute",
      {
        serviceAccountName: "default",
        containers: [C],
        volumes: [
          {
            name: "v",
            projected: { sources: [{ serviceAccountToken: { path: "t", expirationSeconds: 60 } }] },
          },
        ],
      },
      ["Invalid spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds"],
    ],
    [
      "two things in one projection",
      {
        containers: [C],
        volumes: [
          { name: "v", projected: { sources: [{ secret: { name: "s" }, configMap: { name: "m" } }] } },
        ],
      },
      ["Forbidden spec.volumes[0].projected.sources[0]"],
    ],
    [
      "an inline driver of no name",
      { containers: [C], volumes: [{ name: "v", csi: {} }] },
      ["Required spec.volumes[0].csi.driver", "Invalid spec.volumes[0].csi.driver"],
    ],
    ["tolerating everything", { containers: [C], tolerations: [{ operator: "Exists" }] }, []],
    [
      "tolerating an empty key",
      { containers: [C], tolerations: [{ value: "v" }] },
      ["Invalid spec.tolerations[0].operator"],
    ],
    [
      "seconds without NoExecute",
      { containers: [C], tolerations: [{ key: "k", operator: "Exists", tolerationSeconds: 1 }] },
      ["Invalid spec.tolerations[0].effect"],
    ],
    ["a node that cannot be", { containers: [C], nodeName: "A_B" }, ["Invalid spec.nodeName"]],
    [
      "a deadline in the past",
      { containers: [C], activeDeadlineSeconds: 0 },
      ["Invalid spec.activeDeadlineSeconds"],
    ],
  ] as const) {
    test(`${what}: ${causes.join() || "good"}`, () => {
      expect(creating("Pod", { spec })).toEqual(causes);
    });
  }
});

describe("what of a pod may change", () => {
  const old = stored("Pod", {
    spec: {
      containers: [C],
      activeDeadlineSeconds: 100,
      terminationGracePeriodSeconds: -1,
      tolerations: [{ key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 }],
    },
  });
  const wanting = (spec: object): ApiObject => ({ ...old, spec: { ...(old["spec"] as object), ...spec } });
  const [toleration] = (old["spec"] as { tolerations: object[] }).tolerations;

  for (const [what, spec, causes] of [
    ["nothing", {}, []],
    ["an image", { containers: [{ ...C, image: "j" }] }, []],
    ["no image", { containers: [{ name: "c" }] }, ["Required spec.containers[0].image", "Forbidden spec"]],
    ["a command", { containers: [{ ...C, command: ["x"] }] }, ["Forbidden spec"]],
    ["one container more", { containers: [C, { name: "d", image: "i" }] }, ["Forbidden spec.containers"]],
    ["an init container", { initContainers: [{ name: "d", image: "i" }] }, ["Forbidden spec.initContainers"]],
    ["a nearer deadline", { activeDeadlineSeconds: 50 }, []],
    ["a later deadline", { activeDeadlineSeconds: 150 }, ["Invalid spec.activeDeadlineSeconds"]],
    ["no deadline any more", { activeDeadlineSeconds: undefined }, ["Invalid spec.activeDeadlineSeconds"]],
    ["one toleration more", { tolerations: [toleration, { key: "b", operator: "Exists" }] }, []],
    ["tolerating it longer", { tolerations: [{ ...toleration, tolerationSeconds: 600 }] }, []],
    ["one toleration less", { tolerations: [] }, ["Forbidden spec.tolerations"]],
    ["a grace period of 1, where it was negative", { terminationGracePeriodSeconds: 1 }, []],
    ["a grace period of 2", { terminationGracePeriodSeconds: 2 }, ["Forbidden spec"]],
    ["a node", { nodeName: "n" }, ["Forbidden spec"]],
  ] as const) {
    test(`${what}: ${causes.join() || "good"}`, () => {
      expect(changing("Pod", old, wanting(spec))).toEqual(causes);
    });
  }
});

describe("what of a gated pod may change besides", () => {
  const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
  const zone = { key: "zone", operator: "In", values: ["a", "b"] };
  const disk = { key: "disk", operator: "Exists" };
  const name = { key: "metadata.name", operator: "In", values: ["n"] };
  const required = (...terms: object[]) => ({ nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: terms } } });
  const podAntiAffinity = { [REQUIRED]: [{ topologyKey: "zone" }] };
  const gates = [{ name: "example.com/a" }, { name: "example.com/b" }];
  const gated = {
    containers: [C],
    schedulingGates: gates,
    nodeSelector: { os: "linux" },
    affinity: required({ matchExpressions: [zone] }),
  };
  const terms = `spec.affinity.nodeAffinity.${REQUIRED}.nodeSelectorTerms`;
  const old = stored("Pod", { spec: gated });
  const open = stored("Pod", { spec: { ...gated, schedulingGates: [] } });
  const free = stored("Pod", { spec: { containers: [C], schedulingGates: gates } });
  const odd: object = { os: "linux", constructor: "x" };
  const preferred = [{ weight: 1, preference: { matchExpressions: [disk] } }];
  const preferring = {
    nodeAffinity: {
      ...required({ matchExpressions: [zone] }).nodeAffinity,
      preferredDuringSchedulingIgnoredDuringExecution: preferred,
    },
  };

  for (const [what, before, spec, causes] of [
    ["one gate less", old, { schedulingGates: [gates[1]] }, []],
    ["no gates any more", old, { schedulingGates: undefined }, []],
    ["gates in another order", old, { schedulingGates: [gates[1], gates[0]] }, []],
    ["another gate", old, { schedulingGates: [{ name: "c" }] }, ["Forbidden spec.schedulingGates[0].name"]],
    [
      "a gate where all are open",
      open,
      { schedulingGates: gates.slice(1) },
      ["Forbidden spec.schedulingGates[0].name"],
    ],
    ["one label more", old, { nodeSelector: { os: "linux", arch: "x" } }, []],
    [
      "one label more with the last gate",
      old,
      { schedulingGates: [], nodeSelector: { os: "linux", arch: "x" } },
      [],
    ],
    [
      "one label more after the last gate",
      open,
      { nodeSelector: { os: "linux", arch: "x" } },
      ["Forbidden spec"],
    ],
    ["another value of a label", old, { nodeSelector: { os: "plan9" } }, ["Invalid spec.nodeSelector"]],
    ["no labels any more", old, { nodeSelector: undefined }, ["Invalid spec.nodeSelector"]],
    ["a label called like a method", old, { nodeSelector: odd }, []],
    ["one requirement more", old, { affinity: required({ matchExpressions: [zone, disk] }) }, []],
    [
      "a field required, too",
      old,
      { affinity: required({ matchExpressions: [zone], matchFields: [name] }) },
      [],
    ],
    [
      "one requirement more after the last gate",
      open,
      { affinity: required({ matchExpressions: [zone, disk] }) },
      ["Forbidden spec"],
    ],
    [
      "another requirement",
      old,
      { affinity: required({ matchExpressions: [disk] }) },
      [`Invalid ${terms}[0]`],
    ],
    [
      "a value more of a requirement",
      old,
      { affinity: required({ matchExpressions: [{ ...zone, values: ["a", "b", "c"] }] }) },
      [`Invalid ${terms}[0]`],
    ],
    [
      "another term",
      old,
      { affinity: required({ matchExpressions: [zone] }, { matchExpressions: [disk] }) },
      [`Invalid ${terms}`],
    ],
    ["no affinity any more", old, { affinity: undefined }, [`Invalid ${terms}`]],
    ["a preference", old, { affinity: preferring }, []],
    ["a first affinity", free, { affinity: required({ matchExpressions: [zone] }) }, []],
    ["a first affinity to pods", free, { affinity: { podAntiAffinity } }, ["Forbidden spec"]],
    [
      "a first affinity to nodes and pods",
      free,
      { affinity: { ...required({ matchExpressions: [zone] }), podAntiAffinity } },
      ["Forbidden spec"],
    ],
    ["a command", old, { containers: [{ ...C, command: ["x"] }] }, ["Forbidden spec"]],
  ] as const) {
    test(`${what}: ${causes.join() || "good"}`, () => {
      const wanted = { ...before, spec: { ...(before["spec"] as object), ...spec } };

      expect(changing("Pod", before, wanted)).toEqual(causes);
    });
  }

  for (const [what, term, wantedTerm] of [
    ["a term that fits no node stays as it is", {}, { matchExpressions: [zone] }],
    ["a field that was required still is", { matchFields: [name] }, { matchExpressions: [zone] }],
  ] as const) {
    test(what, () => {
      const before = stored("Pod", { spec: { ...gated, affinity: required(term) } });
      const wanted = {
        ...before,
        spec: { ...(before["spec"] as object), affinity: required(wantedTerm) },
      };

      expect(changing("Pod", before, wanted)).toEqual([`Invalid ${terms}[0]`]);
    });
  }
});
