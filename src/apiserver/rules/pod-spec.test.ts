import { describe, expect, test } from "vitest";
import { creating, given, kindOf, NOW } from "./given.testing.ts";
import { rulesFor } from "./rules.ts";

const C = { name: "c", image: "i" };
const TERM = "requiredDuringSchedulingIgnoredDuringExecution";
const WISH = "preferredDuringSchedulingIgnoredDuringExecution";

type Row = readonly [what: string, members: object, causes: readonly string[]];

/** Each with the first container's fields, and what is wrong below `spec.containers[0]`. */
const CONTAINERS: Readonly<Record<string, readonly Row[]>> = {
  ports: [
    ["two names alike", { ports: [port({ name: "a" }), port({ name: "a" })] }, ["Duplicate ports[1].name"]],
    ["a name of 16", { ports: [port({ name: "a".repeat(16) })] }, ["Invalid ports[0].name"]],
    ["a number for a name", { ports: [port({ name: "80" })] }, ["Invalid ports[0].name"]],
    ["a port of the host beyond all", { ports: [port({ hostPort: 65_536 })] }, ["Invalid ports[0].hostPort"]],
    [
      "a port of the host twice",
      { ports: [port({ hostPort: 1 }), port({ hostPort: 1 })] },
      ["Duplicate ports[1].hostPort"],
    ],
    [
      "one port for two protocols",
      { ports: [port({ hostPort: 1 }), port({ hostPort: 1, protocol: "UDP" })] },
      [],
    ],
    ["another protocol", { ports: [port({ protocol: "ICMP" })] }, ["NotSupported ports[0].protocol"]],
    ["an address that is none", { ports: [port({ hostIP: "1.2.3" })] }, ["Invalid ports[0].hostIP"]],
    ["addresses of both families", { ports: [port({ hostIP: "1.2.3.4" }), port({ hostIP: "fd00::1" })] }, []],
  ],
  env: [
    ["a name with a dot and a blank", { env: [{ name: "a.b c", value: "1" }] }, []],
    ["a name with an equals sign", { env: [{ name: "a=b" }] }, ["Invalid env[0].name"]],
    ["a name beyond ASCII", { env: [{ name: "ü" }] }, ["Invalid env[0].name"]],
    ["a source of nothing", { env: [from({})] }, ["Invalid env[0].valueFrom"]],
    [
      "a value and a source",
      { env: [{ ...from({ fieldRef: { fieldPath: "metadata.name" } }), value: "v" }] },
      ["Invalid env[0].valueFrom"],
    ],
    [
      "two sources",
      { env: [from({ fieldRef: { fieldPath: "metadata.name" }, secretKeyRef: { name: "s", key: "k" } })] },
      ["Invalid env[0].valueFrom"],
    ],
    [
      "a field without a path",
      { env: [from({ fieldRef: {} })] },
      ["Required env[0].valueFrom.fieldRef.fieldPath"],
    ],
    ["a label", { env: [from({ fieldRef: { fieldPath: "metadata.labels['a/b']" } })] }, []],
    [
      "all labels",
      { env: [from({ fieldRef: { fieldPath: "metadata.labels" } })] },
      ["NotSupported env[0].valueFrom.fieldRef.fieldPath"],
    ],
    [
      "a field nobody knows",
      { env: [from({ fieldRef: { fieldPath: "spec.x" } })] },
      ["Invalid env[0].valueFrom.fieldRef.fieldPath"],
    ],
    ["its own limit", { env: [from({ resourceFieldRef: { resource: "limits.cpu" } })] }, []],
    [
      "a limit nobody knows",
      { env: [from({ resourceFieldRef: { resource: "limits.x" } })] },
      ["NotSupported env[0].valueFrom.resourceFieldRef.resource"],
    ],
    [
      "a key of nobody",
      { env: [from({ configMapKeyRef: { key: "k" } })] },
      ["Invalid env[0].valueFrom.configMapKeyRef.name"],
    ],
    [
      "a key that cannot be",
      { env: [from({ secretKeyRef: { name: "s", key: "a/b" } })] },
      ["Invalid env[0].valueFrom.secretKeyRef.key"],
    ],
    ["all of a nameless map", { envFrom: [{ configMapRef: {} }] }, ["Required envFrom[0].configMapRef.name"]],
    ["all of nothing", { envFrom: [{}] }, ["Invalid envFrom"]],
    [
      "all of two",
      { envFrom: [{ configMapRef: { name: "a" }, secretRef: { name: "b" } }] },
      ["Invalid envFrom"],
    ],
    [
      "a prefix that cannot be",
      { envFrom: [{ prefix: "=", secretRef: { name: "b" } }] },
      ["Invalid envFrom[0].prefix"],
    ],
  ],
  mounts: [
    [
      "a volume that is not there",
      { volumeMounts: [{ name: "w", mountPath: "/w" }] },
      ["NotFound volumeMounts[0].name"],
    ],
    [
      "no volume",
      { volumeMounts: [{ mountPath: "/w" }] },
      ["Required volumeMounts[0].name", "NotFound volumeMounts[0].name"],
    ],
    [
      "a volume twice",
      {
        volumeMounts: [
          { name: "v", mountPath: "/a" },
          { name: "v", mountPath: "/b" },
        ],
      },
      [],
    ],
    [
      "a propagation of its own",
      { volumeMounts: [mount({ mountPropagation: "Shared" })] },
      ["NotSupported volumeMounts.mountPropagation"],
    ],
    [
      "mounts that reach the host",
      { volumeMounts: [mount({ mountPropagation: "Bidirectional" })] },
      ["Forbidden volumeMounts.mountPropagation"],
    ],
    [
      "the same with privilege",
      { volumeMounts: [mount({ mountPropagation: "Bidirectional" })], securityContext: { privileged: true } },
      [],
    ],
    [
      "writable and read-only below",
      { volumeMounts: [mount({ recursiveReadOnly: "Enabled" })] },
      ["Forbidden volumeMounts.recursiveReadOnly"],
    ],
    [
      "read-only all the way down",
      { volumeMounts: [mount({ recursiveReadOnly: "Enabled", readOnly: true })] },
      [],
    ],
    [
      "read-only somehow",
      { volumeMounts: [mount({ recursiveReadOnly: "Some" })] },
      ["NotSupported volumeMounts.recursiveReadOnly"],
    ],
    [
      "a device path that climbs",
      { volumeDevices: [{ name: "v", devicePath: "/a/../b" }] },
      ["Invalid volumeDevices[0].devicePath"],
    ],
    [
      "a device twice, in one place",
      {
        volumeDevices: [
          { name: "v", devicePath: "/a" },
          { name: "v", devicePath: "/a" },
        ],
      },
      ["Invalid volumeDevices[1].name", "Invalid volumeDevices[1].devicePath"],
    ],
  ],
  resources: [
    ["what a device plugin offers", { resources: { limits: { "ex.io/gpu": "1" } } }, []],
    [
      "half of a device",
      { resources: { limits: { "ex.io/gpu": "500m" } } },
      ["Invalid resources.limits[ex.io/gpu]", "Invalid resources.requests[ex.io/gpu]"],
    ],
    [
      "fewer devices than the limit",
      { resources: { limits: { "ex.io/gpu": "2" }, requests: { "ex.io/gpu": "1" } } },
      ["Invalid resources.requests"],
    ],
    [
      "a device without a limit",
      { resources: { requests: { "ex.io/gpu": "1" } } },
      ["Required resources.limits"],
    ],
    ["huge pages alone", { resources: { limits: { "hugepages-2Mi": "2Mi" } } }, ["Forbidden resources"]],
    [
      "storage, which is for claims",
      { resources: { requests: { storage: "1Gi" } } },
      ["Invalid resources.requests[storage]"],
    ],
    [
      "a name that cannot be",
      { resources: { requests: { "a/b/c": "1" } } },
      ["Invalid resources.requests[a/b/c]", "Required resources.limits"],
    ],
  ],
  handlers: [
    ["a probe that does nothing", { livenessProbe: {} }, ["Required livenessProbe"]],
    [
      "a probe that does two things",
      { livenessProbe: { exec: { command: ["x"] }, tcpSocket: { port: 1 } } },
      ["Forbidden livenessProbe.tcpSocket"],
    ],
    ["a command that is none", { readinessProbe: { exec: {} } }, ["Required readinessProbe.exec.command"]],
    [
      "a port beyond all",
      { startupProbe: { httpGet: { port: 70_000 } } },
      ["Invalid startupProbe.httpGet.port"],
    ],
    ["a port by name", { startupProbe: { tcpSocket: { port: "web" } } }, []],
    [
      "another scheme",
      { startupProbe: { httpGet: { port: 1, scheme: "FTP" } } },
      ["NotSupported startupProbe.httpGet.scheme"],
    ],
    [
      "being well twice",
      { livenessProbe: { grpc: { port: 1 }, successThreshold: 2 } },
      ["Invalid livenessProbe.successThreshold"],
    ],
    ["being ready twice", { readinessProbe: { grpc: { port: 1 }, successThreshold: 2 } }, []],
    [
      "a delay before the start",
      { readinessProbe: { grpc: { port: 1 }, initialDelaySeconds: -1 } },
      ["Invalid readinessProbe.initialDelaySeconds"],
    ],
    [
      "a grace that readiness has no use for",
      { readinessProbe: { grpc: { port: 1 }, terminationGracePeriodSeconds: 1 } },
      ["Invalid readinessProbe.terminationGracePeriodSeconds"],
    ],
    ["a hook that does nothing", { lifecycle: { preStop: {} } }, ["Required lifecycle.preStop"]],
    ["a nap within the grace", { lifecycle: { preStop: { sleep: { seconds: 30 } } } }, []],
    [
      "a nap beyond it",
      { lifecycle: { preStop: { sleep: { seconds: 31 } } } },
      ["Invalid lifecycle.preStop.sleep"],
    ],
  ],
  other: [
    ["a name with a capital", { name: "C" }, ["Invalid name"]],
    ["a pull now and then", { imagePullPolicy: "Often" }, ["NotSupported imagePullPolicy"]],
    ["last words elsewhere", { terminationMessagePolicy: "Mail" }, ["NotSupported terminationMessagePolicy"]],
    ["a user below all", { securityContext: { runAsUser: -1 } }, ["Invalid securityContext.runAsUser"]],
    [
      "privilege that must not grow",
      { securityContext: { privileged: true, allowPrivilegeEscalation: false } },
      ["Invalid securityContext"],
    ],
  ],
};

for (const [topic, rows] of Object.entries(CONTAINERS)) {
  describe(`a container: ${topic}`, () => {
    for (const [what, members, causes] of rows) {
      test(`${what}: ${causes.join() || "good"}`, () => {
        const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "c" } }];

        const found = creating("Pod", { spec: { containers: [{ ...C, ...members }], volumes } });

        expect(found).toEqual(causes.map((cause) => cause.replace(" ", " spec.containers[0].")));
      });
    }
  });
}

/** Each with one volume named `v`, and what is wrong below `spec.volumes[0]`. */
const VOLUMES: readonly Row[] = [
  ["nothing but a name", {}, []],
  ["two sources", { emptyDir: {}, hostPath: { path: "/a" } }, ["Forbidden hostPath"]],
  ["a directory of the host that climbs", { hostPath: { path: "/a/../b" } }, ["Invalid hostPath.path"]],
  ["a claim of no name", { persistentVolumeClaim: {} }, ["Required persistentVolumeClaim.claimName"]],
  [
    "a reserved file",
    { secret: { secretName: "s", items: [{ key: "k", path: "..x" }] } },
    ["Invalid secret.items[0].path"],
  ],
  [
    "a file of no key, nowhere",
    { configMap: { name: "m", items: [{}] } },
    ["Required configMap.items[0].key", "Required configMap.items[0].path"],
  ],
  [
    "a field as a file",
    { downwardAPI: { items: [{ path: "p", fieldRef: { fieldPath: "metadata.labels" } }] } },
    [],
  ],
  [
    "a field that only variables hold",
    { downwardAPI: { items: [{ path: "p", fieldRef: { fieldPath: "status.podIP" } }] } },
    ["NotSupported downwardAPI.fieldRef.fieldPath"],
  ],
  ["a file of nothing", { downwardAPI: { items: [{ path: "p" }] } }, ["Required downwardAPI"]],
  [
    "a limit of no container",
    { downwardAPI: { items: [{ path: "p", resourceFieldRef: { resource: "limits.cpu" } }] } },
    ["Required downwardAPI.resourceFieldRef.containerName"],
  ],
  [
    "two sources of one file",
    {
      projected: {
        sources: [
          { secret: { name: "s", items: [{ key: "k", path: "p" }] } },
          { configMap: { name: "m", items: [{ key: "k", path: "p" }] } },
        ],
      },
    },
    ["Invalid projected"],
  ],
  [
    "a nameless map among others",
    { projected: { sources: [{ configMap: {} }] } },
    ["Required projected.sources[0].configMap.name"],
  ],
  ["a token nowhere", { projected: { sources: [{ serviceAccountToken: {} }] } }, ["Required projected.path"]],
  ["a claim template of nothing", { ephemeral: {} }, ["Required ephemeral.volumeClaimTemplate"]],
  [
    "a claim template with a name",
    template({ metadata: { name: "n", labels: { a: "b" } } }),
    ["Forbidden ephemeral.volumeClaimTemplate.metadata.name"],
  ],
  [
    "a claim template in a mode of its own",
    template({ spec: { ...claimSpec(), volumeMode: "Tape" } }),
    ["NotSupported ephemeral.volumeClaimTemplate.spec.volumeMode"],
  ],
  [
    "a driver with a nameless secret",
    { csi: { driver: "d.io", nodePublishSecretRef: {} } },
    ["Required csi.nodePublishSecretRef.name"],
  ],
  ["an image of no name", { image: {} }, ["Required image.reference"]],
];

describe("a volume", () => {
  for (const [what, members, causes] of VOLUMES) {
    test(`${what}: ${causes.join() || "good"}`, () => {
      const spec = { serviceAccountName: "a", containers: [C], volumes: [{ name: "v", ...members }] };

      expect(creating("Pod", { spec })).toEqual(
        causes.map((cause) => cause.replace(" ", " spec.volumes[0].")),
      );
    });
  }

  test("whose claim would have an impossible name is refused by its own", () => {
    const spec = { containers: [C], volumes: [{ name: "v", ...template({}) }] };

    expect(creating("Pod", { spec }, { name: "p".repeat(252) })).toEqual(["Invalid spec.volumes[0].name"]);
  });

  test("that is wrong is none to whoever mounts it, and so is a second one of its name", () => {
    const containers = [
      {
        ...C,
        volumeMounts: [
          { name: "bad", mountPath: "/a" },
          { name: "v", mountPath: "/b" },
        ],
      },
    ];
    const volumes = [{ name: "bad", persistentVolumeClaim: {} }, { name: "v" }, { name: "v" }];

    expect(creating("Pod", { spec: { containers, volumes } })).toEqual([
      "Required spec.volumes[0].persistentVolumeClaim.claimName",
      "Duplicate spec.volumes[2].name",
      "NotFound spec.containers[0].volumeMounts[0].name",
    ]);
  });

  test("with a token needs an account to make it for", () => {
    const projected = { sources: [{ serviceAccountToken: { path: "t" } }] };

    expect(creating("Pod", { spec: { containers: [C], volumes: [{ name: "v", projected }] } })).toEqual([
      "Forbidden spec.volumes[0].projected.sources[0].serviceAccountToken",
    ]);
  });
});

/** Each with fields of the spec, and what is wrong below `spec`. */
const SPECS: readonly Row[] = [
  ["a restart now and then", { restartPolicy: "Sometimes" }, ["NotSupported restartPolicy"]],
  ["names resolved nowhere", { dnsPolicy: "Nowhere" }, ["NotSupported dnsPolicy"]],
  ["names resolved by nobody", { dnsPolicy: "None" }, ["Required dnsConfig"]],
  [
    "names resolved by an empty list",
    { dnsPolicy: "None", dnsConfig: {} },
    ["Required dnsConfig.nameservers"],
  ],
  [
    "four servers of names",
    { dnsConfig: { nameservers: ["1.1.1.1", "1.1.1.2", "1.1.1.3", "::1"] } },
    ["Invalid dnsConfig.nameservers"],
  ],
  [
    "a server of names by name",
    { dnsConfig: { nameservers: ["dns"] } },
    ["Invalid dnsConfig.nameservers[0]"],
  ],
  [
    "an alias of no address",
    { hostAliases: [{ ip: "x", hostnames: ["a_b"] }] },
    ["Invalid hostAliases[0].ip", "Invalid hostAliases[0].hostnames[0]"],
  ],
  [
    "files of a group below all",
    { securityContext: { fsGroup: -1, supplementalGroups: [0, 2 ** 31] } },
    ["Invalid securityContext.fsGroup", "Invalid securityContext.supplementalGroups[1]"],
  ],
  [
    "files changed at will",
    { securityContext: { fsGroupChangePolicy: "Maybe" } },
    ["NotSupported securityContext.fsGroupChangePolicy"],
  ],
  ...(
    [
      ["net.core.somaxconn", {}, []],
      ["net/ipv4/conf/eno2.100/rp_filter", {}, []],
      ["foo-", {}, ["Invalid securityContext.sysctls[0].name"]],
      ["bar..", {}, ["Invalid securityContext.sysctls[0].name"]],
      ["a".repeat(254), {}, ["Invalid securityContext.sysctls[0].name"]],
      ["", {}, ["Required securityContext.sysctls[0].name"]],
      ["net/core.somaxconn", { hostNetwork: true }, ["Invalid securityContext.sysctls[0].name"]],
      ["kernel.shmmax", { hostNetwork: true }, []],
      ["kernel.shmmax", { hostIPC: true }, ["Invalid securityContext.sysctls[0].name"]],
      ["fs.mqueue.msg_max", { hostIPC: true }, ["Invalid securityContext.sysctls[0].name"]],
    ] as const
  ).map(([name, host, causes]): Row => [
    `sysctl ${name.slice(0, 40)} with ${JSON.stringify(host)}`,
    { ...host, securityContext: { sysctls: [{ name, value: "1" }] } },
    causes,
  ]),
  [
    "a sysctl twice",
    {
      securityContext: {
        sysctls: [
          { name: "kernel.msgmax", value: "1" },
          { name: "kernel.msgmax", value: "2" },
        ],
      },
    },
    ["Duplicate securityContext.sysctls[1].name"],
  ],
  ["preempting at will", { preemptionPolicy: "Maybe" }, ["NotSupported preemptionPolicy"]],
  [
    "a class that cannot be",
    { priorityClassName: "A", runtimeClassName: "B" },
    ["Invalid priorityClassName", "Invalid runtimeClassName"],
  ],
  [
    "another port on the host's network",
    { hostNetwork: true, containers: [{ ...C, ports: [{ containerPort: 1, hostPort: 2 }] }] },
    ["Invalid containers[0].ports[0].hostPort"],
  ],
  [
    "a toleration for an effect of its own",
    { tolerations: [{ key: "k", operator: "Exists", effect: "Never" }] },
    ["NotSupported tolerations[0].effect"],
  ],
  [
    "a toleration by another operator",
    { tolerations: [{ key: "k", operator: "Like" }] },
    ["NotSupported tolerations[0].operator"],
  ],
  [
    "a node by nothing",
    { affinity: { nodeAffinity: { [TERM]: {} } } },
    [`Required affinity.nodeAffinity.${TERM}.nodeSelectorTerms`],
  ],
  [
    "a node by an impossible name",
    {
      affinity: {
        nodeAffinity: {
          [TERM]: {
            nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["A"] }] }],
          },
        },
      },
    },
    [`Invalid affinity.nodeAffinity.${TERM}.nodeSelectorTerms[0].matchFields[0].values[0]`],
  ],
  [
    "a node wanted too much",
    { affinity: { nodeAffinity: { [WISH]: [{ weight: 101, preference: {} }] } } },
    [`Invalid affinity.nodeAffinity.${WISH}[0].weight`],
  ],
  [
    "a pod near nowhere",
    { affinity: { podAffinity: { [TERM]: [{ labelSelector: {} }] } } },
    ["Required", "Invalid", "Invalid"].map(
      (reason) => `${reason} affinity.podAffinity.${TERM}[0].topologyKey`,
    ),
  ],
  [
    "a pod far from what cannot be",
    {
      affinity: {
        podAntiAffinity: {
          [WISH]: [{ weight: 1, podAffinityTerm: { topologyKey: "k", namespaces: ["A"] } }],
        },
      },
    },
    [`Invalid affinity.podAntiAffinity.${WISH}[0].podAffinityTerm.namespace`],
  ],
  [
    "pods spread without measure",
    { topologySpreadConstraints: [{ topologyKey: "k", whenUnsatisfiable: "Cry" }] },
    [
      "Invalid topologySpreadConstraints[0].maxSkew",
      "NotSupported topologySpreadConstraints[0].whenUnsatisfiable",
    ],
  ],
  ["a gate twice", { schedulingGates: [{ name: "a" }, { name: "a" }] }, ["Duplicate schedulingGates[1]"]],
  [
    "a node before the gates are open",
    { nodeName: "n", schedulingGates: [{ name: "a" }] },
    ["Forbidden nodeName"],
  ],
  [
    "a container to debug with",
    { ephemeralContainers: [{ name: "d", image: "i" }] },
    ["Forbidden ephemeralContainers"],
  ],
  [
    "a probe of what runs to its end",
    { initContainers: [{ name: "d", image: "i", livenessProbe: { grpc: { port: 1 } } }] },
    ["Forbidden initContainers[0].livenessProbe"],
  ],
  [
    "a probe of what is started first and stays",
    {
      initContainers: [
        { name: "d", image: "i", restartPolicy: "Always", livenessProbe: { grpc: { port: 1 } } },
      ],
    },
    [],
  ],
];

describe("a pod", () => {
  for (const [what, members, causes] of SPECS) {
    test(`${what}: ${causes.join() || "good"}`, () => {
      const found = creating("Pod", { spec: { containers: [C], ...members } });

      expect(found).toEqual(causes.map((cause) => cause.replace(" ", " spec.")));
    });
  }

  test("messages are those of the real server", () => {
    const spec = {
      containers: [{ ...C, env: [{ name: "=" }], ports: [{ containerPort: 0x1_0000, name: "a--b" }] }],
      restartPolicy: "x",
    };
    const rules = rulesFor(kindOf("Pod"));
    const pod = rules.prepareCreate(rules.applyDefaults(given("Pod", { spec })), { now: NOW });

    expect(rules.validateCreate(pod).map(({ message }) => message)).toEqual([
      'Invalid value: "a--b": must not contain consecutive hyphens',
      "Invalid value: 65536: must be between 1 and 65535, inclusive",
      `Invalid value: "=": a valid environment variable name must consist only of printable ASCII characters other than '='`,
      'Unsupported value: "x": supported values: "Always", "OnFailure", "Never"',
    ]);
  });
});

function port(members: object): object {
  return { containerPort: 80, ...members };
}

function from(valueFrom: object): object {
  return { name: "a", valueFrom };
}

function mount(members: object): object {
  return { name: "v", mountPath: "/v", ...members };
}

function template(members: object): object {
  return { ephemeral: { volumeClaimTemplate: { spec: claimSpec(), ...members } } };
}

function claimSpec(): object {
  return { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
}
