import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KINDS } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { printerFor } from "./printers.ts";
import { effectiveDefaultClass } from "./storage.ts";

const CREATED = "2026-01-01T00:00:00Z";
const NOW_MS = Date.parse("2026-01-01T01:00:00Z");

interface ColumnDefinition {
  readonly name: string;
  readonly type: string;
  readonly priority: number;
}

/** The cells by their column's name. */
function print(kind: string, object: object, defaultStorageClass?: string): Record<string, unknown> {
  const printer = printerFor(kind);
  const columns = JSON.parse(printer.columnsText) as ColumnDefinition[];
  const { metadata, ...rest } = object as ApiObject;
  const cells = printer.cells(
    { ...rest, metadata: { name: "x", creationTimestamp: CREATED, ...metadata } },
    { nowMs: NOW_MS, defaultStorageClass: () => defaultStorageClass },
  );
  return Object.fromEntries(columns.map(({ name }, index) => [name, cells[index]]));
}

/** Section 15 of the specification; `*` is for columns shown by -o wide alone. */
const COLUMNS: Readonly<Record<string, string>> = {
  Namespace: "Name, Status, Age",
  Node: "Name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, Kernel-Version*, Container-Runtime*",
  Pod: "Name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*",
  PersistentVolume:
    "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, VolumeMode*",
  PersistentVolumeClaim:
    "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, VolumeMode*",
  Secret: "Name, Type, Data, Age",
  ConfigMap: "Name, Data, Age",
  ServiceAccount: "Name, Secrets, Age",
  Event: "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, Name*",
  StorageClass: "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
  VolumeAttachment: "Name, Attacher, PV, Node, Attached, Age",
  CSINode: "Name, Drivers, Age",
  CSIDriver:
    "Name, AttachRequired, PodInfoOnMount, StorageCapacity, TokenRequests, RequiresRepublish, Modes, Age",
  VolumeAttributesClass: "Name, DriverName, Age",
  CSIStorageCapacity: "Name, Created At",
  Lease: "Name, Holder, Age",
  VolumeSnapshot:
    "Name, ReadyToUse, SourcePVC, SourceSnapshotContent, RestoreSize, SnapshotClass, SnapshotContent, CreationTime, Age",
  VolumeSnapshotContent:
    "Name, ReadyToUse, RestoreSize, DeletionPolicy, Driver, VolumeSnapshotClass, VolumeSnapshot, VolumeSnapshotNamespace, Age",
  VolumeSnapshotClass: "Name, Driver, DeletionPolicy, Age",
  Role: "Name, Created At",
  ClusterRole: "Name, Created At",
  RoleBinding: "Name, Role, Age, Users*, Groups*, ServiceAccounts*",
  ClusterRoleBinding: "Name, Role, Age, Users*, Groups*, ServiceAccounts*",
  Deployment: "Name, Ready, Up-to-date, Available, Age, Containers*, Images*, Selector*",
  ReplicaSet: "Name, Desired, Current, Ready, Age, Containers*, Images*, Selector*",
  ReplicationController: "Name, Desired, Current, Ready, Age, Containers*, Images*, Selector*",
  StatefulSet: "Name, Ready, Age, Containers*, Images*",
  DaemonSet:
    "Name, Desired, Current, Ready, Up-to-date, Available, Node Selector, Age, Containers*, Images*, Selector*",
  ControllerRevision: "Name, Controller, Revision, Age",
  Job: "Name, Status, Completions, Duration, Age, Containers*, Images*, Selector*",
  CronJob: "Name, Schedule, Timezone, Suspend, Active, Last Schedule, Age, Containers*, Images*, Selector*",
  PodTemplate: "Name, Containers, Images, Pod Labels",
  Service: "Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*",
  Endpoints: "Name, Endpoints, Age",
  EndpointSlice: "Name, AddressType, Ports, Endpoints, Age",
  Ingress: "Name, Class, Hosts, Address, Ports, Age",
  IngressClass: "Name, Controller, Parameters, Age",
  NetworkPolicy: "Name, Pod-Selector, Age",
  ServiceCIDR: "Name, CIDRs, Age",
  IPAddress: "Name, ParentRef",
  ResourceQuota: "Name, Request, Limit, Age",
  LimitRange: "Name, Created At",
  PodDisruptionBudget: "Name, Min Available, Max Unavailable, Allowed Disruptions, Age",
  PriorityClass: "Name, Value, Global-Default, Age, PreemptionPolicy",
  RuntimeClass: "Name, Handler, Age",
  HorizontalPodAutoscaler: "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age",
  CertificateSigningRequest: "Name, Age, SignerName, Requestor, RequestedDuration, Condition",
  MutatingWebhookConfiguration: "Name, Webhooks, Age",
  ValidatingWebhookConfiguration: "Name, Webhooks, Age",
  MutatingAdmissionPolicy: "Name, Mutations, ParamKind, Age",
  ValidatingAdmissionPolicy: "Name, Validations, ParamKind, Age",
  MutatingAdmissionPolicyBinding: "Name, PolicyName, ParamRef, Age",
  ValidatingAdmissionPolicyBinding: "Name, PolicyName, ParamRef, Age",
  FlowSchema: "Name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL",
  PriorityLevelConfiguration: "Name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age",
  DeviceClass: "Name, Age",
  ResourceClaim: "Name, State, Age",
  ResourceClaimTemplate: "Name, Age",
  ResourceSlice: "Name, Node, Driver, Pool, Age",
};

describe("columns", () => {
  for (const [kind, expected] of Object.entries(COLUMNS)) {
    test(`${kind}: ${expected}`, () => {
      const columns = JSON.parse(printerFor(kind).columnsText) as ColumnDefinition[];

      expect(columns.map(({ name, priority }) => (priority === 1 ? `${name}*` : name)).join(", ")).toBe(
        expected,
      );
    });
  }

  test("every kind served is on the list above", () => {
    expect(KINDS.map(({ kind }) => kind).filter((kind) => !(kind in COLUMNS))).toEqual([]);
  });
});

test("no object is so odd that it spoils a table: each cell is a value, each column has one", () => {
  const kinds = [...new Set(KINDS.map(({ kind }) => kind))];
  const odd = fc.jsonValue();
  const part = fc.oneof(
    odd,
    fc.dictionary(
      fc.constantFrom(
        "conditions",
        "containerStatuses",
        "initContainerStatuses",
        "addresses",
        "nodeInfo",
        "capacity",
        "claimRef",
      ),
      fc.oneof(odd, fc.array(odd)),
    ),
  );

  fc.assert(
    fc.property(fc.constantFrom(...kinds), part, part, odd, (kind, spec, status, other) => {
      const object = {
        spec,
        status,
        involvedObject: other,
        source: other,
        data: other,
        series: other,
        subjects: other,
      };
      for (const cell of Object.values(print(kind, object))) {
        expect(cell === null || ["string", "number", "boolean"].includes(typeof cell)).toBe(true);
      }
    }),
    { numRuns: 500 },
  );
});

describe("nodes", () => {
  const ready = (status: string) => ({ status: { conditions: [{ type: "Ready", status }] } });

  for (const [node, status] of [
    [{}, "Unknown"],
    [ready("True"), "Ready"],
    [ready("False"), "NotReady"],
    [ready("Unknown"), "NotReady"],
    [{ ...ready("True"), spec: { unschedulable: true } }, "Ready,SchedulingDisabled"],
    [{ spec: { unschedulable: true } }, "Unknown,SchedulingDisabled"],
  ] as const) {
    test(`status ${status}`, () => {
      expect(print("Node", node)["Status"]).toBe(status);
    });
  }

  test("roles come from both labels, in order, each once", () => {
    const labels = {
      "node-role.kubernetes.io/worker": "",
      "node-role.kubernetes.io/control-plane": "",
      "node-role.kubernetes.io/": "",
      "kubernetes.io/role": "worker",
    };

    expect(print("Node", { metadata: { labels } })["Roles"]).toBe("control-plane,worker");
    expect(print("Node", {})["Roles"]).toBe("<none>");
  });

  test("wide cells are <none> for addresses and <unknown> for software nobody reported", () => {
    expect(print("Node", {})).toMatchObject({
      Version: "",
      "Internal-IP": "<none>",
      "External-IP": "<none>",
      "OS-Image": "<unknown>",
      "Kernel-Version": "<unknown>",
      "Container-Runtime": "<unknown>",
    });
  });
});

describe("volumes and claims", () => {
  const deletionTimestamp = CREATED;
  const beta = { annotations: { "volume.beta.kubernetes.io/storage-class": "old" } };

  test("a volume being deleted is Terminating; one without a claim has none", () => {
    expect(
      print("PersistentVolume", { metadata: { deletionTimestamp }, status: { phase: "Bound" } }),
    ).toMatchObject({
      Status: "Terminating",
      Claim: "",
      Capacity: "0",
      VolumeAttributesClass: "<unset>",
      VolumeMode: "<unset>",
    });
  });

  test("access modes are short, in a fixed order, each once", () => {
    const accessModes = [
      "ReadWriteOncePod",
      "ReadWriteMany",
      "ReadOnlyMany",
      "ReadWriteOnce",
      "ReadWriteOnce",
    ];

    expect(print("PersistentVolume", { spec: { accessModes } })["Access Modes"]).toBe("RWO,ROX,RWX,RWOP");
  });

  test("the class is that of the old annotation where there is one", () => {
    for (const kind of ["PersistentVolume", "PersistentVolumeClaim"]) {
      expect(print(kind, { metadata: beta, spec: { storageClassName: "new" } })["StorageClass"]).toBe("old");
      expect(print(kind, { spec: { storageClassName: "new" } })["StorageClass"]).toBe("new");
    }
  });

  test("a claim shows capacity and modes once it has a volume, and those of the volume", () => {
    const status = { phase: "Pending", capacity: { storage: "2Gi" }, accessModes: ["ReadWriteOnce"] };

    expect(print("PersistentVolumeClaim", { status })).toMatchObject({ Capacity: "", "Access Modes": "" });
    expect(print("PersistentVolumeClaim", { spec: { volumeName: "v" }, status })).toMatchObject({
      Volume: "v",
      Capacity: "2Gi",
      "Access Modes": "RWO",
    });
    expect(print("PersistentVolumeClaim", { spec: { volumeName: "v" } })["Capacity"]).toBe("0");
  });
});

describe("storage classes", () => {
  const claimant = (
    name: string,
    creationTimestamp: string,
    key = "storageclass.kubernetes.io/is-default-class",
  ) => ({
    metadata: { name, creationTimestamp, annotations: { [key]: "true" } },
  });

  for (const [why, classes, name] of [
    ["nobody claims it", [{ metadata: { name: "a" } }], undefined],
    ["one does", [{ metadata: { name: "a" } }, claimant("b", CREATED)], "b"],
    [
      "the old annotation counts",
      [claimant("a", CREATED, "storageclass.beta.kubernetes.io/is-default-class")],
      "a",
    ],
    ["the younger of two", [claimant("new", "2026-02-01T00:00:00Z"), claimant("old", CREATED)], "new"],
    ["of the same second, the first by name", [claimant("b", CREATED), claimant("a", CREATED)], "a"],
  ] as const) {
    test(`the default: ${why}`, () => {
      expect(effectiveDefaultClass(classes)).toBe(name);
    });
  }

  test("only the effective default is marked, and what is not said is shown as it is taken", () => {
    expect(print("StorageClass", {}, "x")["Name"]).toBe("x (default)");
    expect(print("StorageClass", {}, "y")).toMatchObject({
      Name: "x",
      ReclaimPolicy: "Delete",
      VolumeBindingMode: "Immediate",
      AllowVolumeExpansion: false,
    });
  });
});

test("a driver that says nothing attaches, gets no tokens and has no modes", () => {
  expect(print("CSIDriver", {})).toMatchObject({
    AttachRequired: true,
    PodInfoOnMount: false,
    TokenRequests: "<unset>",
    Modes: "<none>",
  });
  expect(print("CSIDriver", { spec: { tokenRequests: [] } })["TokenRequests"]).toBe("");
});

test("an attachment of an inline volume names none, and is not attached before its status says so", () => {
  expect(print("VolumeAttachment", { spec: { source: { inlineVolumeSpec: {} } } })).toMatchObject({
    PV: "",
    Attached: false,
  });
});

describe("events", () => {
  const subject = { kind: "Pod", name: "p", fieldPath: "spec.containers{c}" };
  const ago = (minutes: number) => new Date(NOW_MS - minutes * 60_000).toISOString();

  test("of the core group, with a count and two times", () => {
    expect(
      print("Event", {
        involvedObject: subject,
        message: " text\n",
        source: { component: "kubelet" },
        count: 3,
        firstTimestamp: ago(30),
        lastTimestamp: ago(20),
      }),
    ).toMatchObject({
      "Last Seen": "20m",
      "First Seen": "30m",
      Count: 3,
      Object: "pod/p",
      Subobject: "spec.containers{c}",
      Source: "kubelet",
      Message: "text",
    });
  });

  test("of events.k8s.io, once and as a series", () => {
    const event = {
      regarding: { kind: "Node" },
      note: "text",
      reportingController: "mooring",
      reportingInstance: "n1",
      eventTime: ago(30),
    };

    expect(print("Event", event)).toMatchObject({
      "Last Seen": "30m",
      "First Seen": "30m",
      Count: 1,
      Object: "node",
      Source: "mooring, n1",
      Message: "text",
    });
    expect(print("Event", { ...event, series: { count: 8, lastObservedTime: ago(15) } })).toMatchObject({
      "Last Seen": "15m",
      "First Seen": "30m",
      Count: 8,
    });
  });

  test("of events.k8s.io that came from the core group", () => {
    expect(
      print("Event", {
        regarding: subject,
        deprecatedSource: { component: "k", host: "h" },
        deprecatedCount: 4,
        deprecatedFirstTimestamp: ago(50),
        deprecatedLastTimestamp: ago(40),
      }),
    ).toMatchObject({ "Last Seen": "40m", "First Seen": "50m", Count: 4, Source: "k, h" });
  });
});

describe("snapshots", () => {
  test("cells keep their types, dates are ages, and what is missing is null", () => {
    const status = { readyToUse: true, restoreSize: "1Gi", creationTime: CREATED };

    expect(print("VolumeSnapshot", { spec: { source: { persistentVolumeClaimName: "c" } }, status })).toEqual(
      {
        Name: "x",
        ReadyToUse: true,
        SourcePVC: "c",
        SourceSnapshotContent: null,
        RestoreSize: "1Gi",
        SnapshotClass: null,
        SnapshotContent: null,
        CreationTime: "60m",
        Age: "60m",
      },
    );
    expect(print("VolumeSnapshot", {})).toMatchObject({ ReadyToUse: null, CreationTime: null });
  });

  test("a content's size is a number of bytes", () => {
    const spec = { volumeSnapshotRef: { name: "s", namespace: "t" } };

    expect(print("VolumeSnapshotContent", { spec, status: { restoreSize: 1_073_741_824 } })).toMatchObject({
      RestoreSize: 1_073_741_824,
      VolumeSnapshot: "s",
      VolumeSnapshotNamespace: "t",
    });
  });
});

test("a binding shows its role, and its subjects by kind", () => {
  const roleRef = { kind: "ClusterRole", name: "view" };
  const subjects = [
    { kind: "User", name: "bob" },
    { kind: "User", name: "eve" },
    { kind: "Group", name: "devs" },
    { kind: "ServiceAccount", name: "sa", namespace: "t" },
  ];

  expect(print("ClusterRoleBinding", { roleRef, subjects })).toMatchObject({
    Role: "ClusterRole/view",
    Users: "bob, eve",
    Groups: "devs",
    ServiceAccounts: "t/sa",
  });
});
