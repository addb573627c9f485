import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import type { Random } from "../../base/random.ts";
import { apiVersionOf } from "../../kube/object.ts";
import { isJsonList, isJsonObject, type Json, type JsonObject } from "../../kube/patch/json.ts";
import { KINDS, type Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { SAMPLES } from "../samples.testing.ts";
import { givenServer } from "../scenario.testing.ts";
import { definitionOf, knownSchema, type ObjectSchema, type TypeSchema } from "../schema/schema.ts";
import { DEFINITION_RULES } from "./definition-rules.ts";
import { changing, creating, given, kindOf, stored } from "./given.testing.ts";
import { rulesFor } from "./rules.ts";

const APPLY = { type: "application/apply-patch+yaml" };

type Members = Readonly<Record<string, unknown>>;

/** Those whose rules come from the table: the ones that real programs list and nobody here acts on. */
const TABLED = [
  ..."ControllerRevision HorizontalPodAutoscaler Ingress IPAddress ServiceCIDR".split(" "),
  ..."MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration".split(" "),
  ..."ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration".split(" "),
  ..."CertificateSigningRequest FlowSchema PriorityLevelConfiguration".split(" "),
  ..."DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice".split(" "),
];

const WEBHOOK = (SAMPLES["MutatingWebhookConfiguration"] as { webhooks: Members[] }).webhooks[0] ?? {};
const RULE = { operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] };
const SELECTS_ALL = { matchPolicy: "Equivalent", namespaceSelector: {}, objectSelector: {} };
const TARGET = { kind: "Deployment", name: "web" };
const CPU = {
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
};

describe("defaults are those of the real server:", () => {
  const hook = { failurePolicy: "Fail", timeoutSeconds: 10, ...SELECTS_ALL };
  const queue = (queuing: object) => ({
    spec: { type: "Limited", limited: { limitResponse: { type: "Queue", queuing } } },
  });
  for (const [kind, members, expected] of [
    [
      "MutatingWebhookConfiguration",
      { webhooks: [{ ...WEBHOOK, rules: [RULE] }] },
      { webhooks: [{ ...hook, reinvocationPolicy: "Never", rules: [{ scope: "*" }] }] },
    ],
    [
      "ValidatingWebhookConfiguration",
      {
        webhooks: [
          { ...WEBHOOK, timeoutSeconds: 3, clientConfig: { service: { namespace: "n", name: "s" } } },
        ],
      },
      { webhooks: [{ ...hook, timeoutSeconds: 3, clientConfig: { service: { port: 443 } } }] },
    ],
    [
      "HorizontalPodAutoscaler",
      SAMPLES["HorizontalPodAutoscaler"],
      { spec: { minReplicas: 1, metrics: [CPU] } },
    ],
    [
      "HorizontalPodAutoscaler",
      { spec: { maxReplicas: 3, scaleTargetRef: TARGET, behavior: { scaleDown: { selectPolicy: "Min" } } } },
      {
        spec: {
          behavior: {
            scaleUp: {
              stabilizationWindowSeconds: 0,
              selectPolicy: "Max",
              policies: [
                { type: "Pods", value: 4, periodSeconds: 15 },
                { type: "Percent", value: 100, periodSeconds: 15 },
              ],
            },
            scaleDown: {
              selectPolicy: "Min",
              policies: [{ type: "Percent", value: 100, periodSeconds: 15 }],
            },
          },
        },
      },
    ],
    ["FlowSchema", SAMPLES["FlowSchema"], { spec: { matchingPrecedence: 1_000 } }],
    [
      "PriorityLevelConfiguration",
      queue({ queues: 16 }),
      {
        spec: {
          limited: {
            nominalConcurrencyShares: 30,
            lendablePercent: 0,
            limitResponse: { queuing: { queues: 16, handSize: 8, queueLengthLimit: 50 } },
          },
        },
      },
    ],
    [
      "ResourceClaim",
      SAMPLES["ResourceClaim"],
      { spec: { devices: { requests: [{ exactly: { allocationMode: "ExactCount", count: 1 } }] } } },
    ],
    [
      "ResourceClaimTemplate",
      {
        spec: {
          spec: {
            devices: {
              requests: [
                {
                  name: "r",
                  firstAvailable: [{ name: "a", deviceClassName: "d", tolerations: [{ key: "k" }] }],
                },
              ],
            },
          },
        },
      },
      {
        spec: {
          spec: {
            devices: { requests: [{ firstAvailable: [{ count: 1, tolerations: [{ operator: "Equal" }] }] }] },
          },
        },
      },
    ],
    [
      "ValidatingAdmissionPolicy",
      SAMPLES["ValidatingAdmissionPolicy"],
      {
        spec: {
          failurePolicy: "Fail",
          matchConstraints: { ...SELECTS_ALL, resourceRules: [{ scope: "*" }] },
        },
      },
    ],
  ] as const) {
    test(kind, () => {
      expect(stored(kind, members as Members)).toMatchObject(expected);
    });
  }

  test("all devices are not counted", () => {
    const exactly = { deviceClassName: "d", allocationMode: "All" };
    const claim = stored("ResourceClaim", { spec: { devices: { requests: [{ name: "r", exactly }] } } });

    expect(claim["spec"]).toEqual({ devices: { requests: [{ name: "r", exactly }] } });
  });
});

describe("refused:", () => {
  const path = (members: object) => ({ spec: { rules: [{ http: { paths: [members] } }] } });
  const backend = { service: { name: "web", port: { number: 80 } } };
  const hooks = (members: object) => ({ webhooks: [{ ...WEBHOOK, ...members }] });
  const flow = (rule: object) => ({ spec: { priorityLevelConfiguration: { name: "p" }, rules: [rule] } });
  for (const [kind, members, causes] of [
    ["Ingress", {}, ["Invalid spec"]],
    ["Ingress", path({ path: "/", backend }), ["Required spec.rules[0].http.paths[0].pathType"]],
    ["Ingress", path({ path: "/", pathType: "Prefix" }), ["Invalid spec.rules[0].http.paths[0].backend"]],
    [
      "Ingress",
      path({ path: "a", pathType: "Exact", backend }),
      ["Invalid spec.rules[0].http.paths[0].path"],
    ],
    ["Ingress", { spec: { rules: [{ http: {} }] } }, ["Required spec.rules[0].http.paths"]],
    ["Ingress", { spec: { rules: [{ host: "a.ex.io" }] } }, []],
    [
      "Ingress",
      { spec: { defaultBackend: { service: { port: {} } } } },
      ["Required spec.defaultBackend.service.name", "Required spec.defaultBackend"],
    ],
    [
      "HorizontalPodAutoscaler",
      {},
      ["Required spec.scaleTargetRef.kind", "Required spec.scaleTargetRef.name", "Required spec.maxReplicas"],
    ],
    [
      "HorizontalPodAutoscaler",
      { spec: { scaleTargetRef: TARGET, maxReplicas: 1, minReplicas: 2 } },
      ["Invalid spec.maxReplicas"],
    ],
    [
      "HorizontalPodAutoscaler",
      { spec: { scaleTargetRef: TARGET, maxReplicas: 1, metrics: [{ type: "Pods" }, {}] } },
      ["Required spec.metrics[0].pods", "Required spec.metrics[1].type"],
    ],
    [
      "HorizontalPodAutoscaler",
      { spec: { scaleTargetRef: TARGET, maxReplicas: 1, metrics: [{ type: "constructor" }] } },
      ["NotSupported spec.metrics[0].type"],
    ],
    [
      "CertificateSigningRequest",
      {},
      ["Required spec.signerName", "Required spec.usages", "Invalid spec.request"],
    ],
    ["FlowSchema", {}, ["Required spec.priorityLevelConfiguration.name"]],
    ["FlowSchema", flow({}), ["Required spec.rules[0].subjects", "Required spec.rules[0]"]],
    [
      "FlowSchema",
      flow({
        subjects: [{ kind: "User" }, {}],
        nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
      }),
      ["Required spec.rules[0].subjects[0].user", "NotSupported spec.rules[0].subjects[1].kind"],
    ],
    ["PriorityLevelConfiguration", {}, ["Required spec.type"]],
    ["PriorityLevelConfiguration", { spec: { type: "Exempt" } }, ["Invalid spec.type"]],
    ["PriorityLevelConfiguration", { spec: { type: "Limited" } }, ["Required spec.limited"]],
    ["MutatingWebhookConfiguration", {}, []],
    ["MutatingWebhookConfiguration", hooks({ sideEffects: undefined }), ["Required webhooks[0].sideEffects"]],
    ["MutatingWebhookConfiguration", hooks({ clientConfig: {} }), ["Required webhooks[0].clientConfig"]],
    [
      "MutatingWebhookConfiguration",
      hooks({ failurePolicy: "Maybe" }),
      ["NotSupported webhooks[0].failurePolicy"],
    ],
    [
      "ValidatingWebhookConfiguration",
      hooks({ name: "", admissionReviewVersions: [], rules: [{}] }),
      [
        "Required webhooks[0].name",
        "Required webhooks[0].rules[0].operations",
        "Required webhooks[0].rules[0].apiGroups",
        "Required webhooks[0].rules[0].apiVersions",
        "Required webhooks[0].rules[0].resources",
        "Required webhooks[0].admissionReviewVersions",
      ],
    ],
    [
      "ValidatingWebhookConfiguration",
      hooks({ objectSelector: { matchExpressions: [{ key: "a", operator: "Like" }] } }),
      ["Invalid webhooks[0].objectSelector.matchExpressions[0].operator"],
    ],
    [
      "ValidatingAdmissionPolicy",
      {},
      ["Required spec.matchConstraints", "Required spec.validations", "Required spec.auditAnnotations"],
    ],
    [
      "MutatingAdmissionPolicy",
      { spec: { matchConstraints: {} } },
      [
        "Required spec.mutations",
        "Required spec.reinvocationPolicy",
        "Required spec.matchConstraints.resourceRules",
      ],
    ],
    ["ValidatingAdmissionPolicyBinding", {}, ["Required spec.policyName", "Required spec.validationActions"]],
    ["MutatingAdmissionPolicyBinding", {}, ["Required spec.policyName"]],
    ["DeviceClass", {}, []],
    ["DeviceClass", { spec: { selectors: [{}] } }, ["Required spec.selectors[0].cel"]],
    ["ResourceClaim", {}, []],
    [
      "ResourceClaim",
      { spec: { devices: { requests: [{ name: "r" }] } } },
      ["Required spec.devices.requests[0]"],
    ],
    ["ResourceSlice", {}, ["Required spec.driver", "Required spec.pool.name", "Required spec"]],
    ["IPAddress", {}, ["Required spec.parentRef"]],
    [
      "IPAddress",
      { spec: { parentRef: {} } },
      ["Required spec.parentRef.resource", "Required spec.parentRef.name"],
    ],
    ["ServiceCIDR", {}, ["Required spec.cidrs"]],
    ["ControllerRevision", {}, ["Required data"]],
    ["ServiceAccount", {}, []],
  ] as const) {
    test(`${kind} ${JSON.stringify(members)}`, () => {
      expect(creating(kind, members as Members).sort()).toEqual([...causes].sort());
    });
  }
});

describe("of every kind that the table judges", () => {
  for (const name of TABLED) {
    test(`${name}: what is required and taken away is asked for where it was`, () => {
      const sample = { ...SAMPLES[name], metadata: { name: "x" } } as unknown as JsonObject;
      for (const path of requiredIn(knownSchema(kindOf(name)), sample)) {
        const { metadata: _, ...rest } = removed(sample, path);
        const field = path.reduce<string>(
          (text, key) => (typeof key === "number" ? `${text}[${key}]` : text === "" ? key : `${text}.${key}`),
          "",
        );

        expect(
          creating(name, rest).filter((cause) => cause.includes(field)),
          field,
        ).not.toEqual([]);
      }
    });

    test(`${name}: completing twice is completing once, and the status stays as it is`, () => {
      const rules = rulesFor(kindOf(name));
      for (let seed = 0; seed < 20; seed++) {
        const random = createSeededRandom(`${name} ${seed}`);
        const object = {
          ...anyOf(random, knownSchema(kindOf(name)), 0),
          metadata: { name: "x" },
        } as unknown as ApiObject;

        const once = rules.applyDefaults(object);

        expect(rules.applyDefaults(once), `seed ${seed}`).toEqual(once);
        expect(once["status"], `seed ${seed}`).toEqual(object["status"]);
        expect(() => rules.validateCreate(once)).not.toThrow();
      }
    });
  }
});

test("what the server gave is what it takes: a PUT and an apply of every kind's object change nothing", async () => {
  const { ok } = await givenServer();
  for (const kind of KINDS.filter((one) => TABLED.includes(one.kind))) {
    const path = pathOf(kind);
    const body = {
      kind: kind.kind,
      apiVersion: apiVersionOf(kind),
      metadata: { name: "x" },
      ...SAMPLES[kind.kind],
    };
    const created = await ok("POST", path, body);

    const put = await ok("PUT", `${path}/x`, created);
    const applied = await ok("PATCH", `${path}/x?fieldManager=me&force=true`, body, APPLY);
    const again = await ok("PATCH", `${path}/x?fieldManager=me&force=true`, body, APPLY);

    expect(put).toEqual(created);
    expect(again).toEqual(applied);
    expect(applied["spec"]).toEqual(created["spec"]);
  }
});

test("a zero that Go cannot tell from absence is defaulted like absence", async () => {
  const { ok } = await givenServer();
  const exactly = { deviceClassName: "d", allocationMode: "", count: 0 };

  const flow = await ok("POST", pathOf(kindOf("FlowSchema")), {
    metadata: { name: "x" },
    spec: { priorityLevelConfiguration: { name: "p" }, matchingPrecedence: 0 },
  });
  const scaler = await ok("POST", pathOf(kindOf("HorizontalPodAutoscaler")), {
    metadata: { name: "x" },
    spec: { maxReplicas: 3, scaleTargetRef: TARGET, metrics: [] },
  });
  const claim = await ok("POST", pathOf(kindOf("ResourceClaim")), {
    metadata: { name: "x" },
    spec: { devices: { requests: [{ name: "r", exactly }] } },
  });

  expect(flow["spec"]).toMatchObject({ matchingPrecedence: 1_000 });
  expect(scaler["spec"]).toMatchObject({ metrics: [CPU] });
  expect(claim["spec"]).toMatchObject({
    devices: { requests: [{ exactly: { allocationMode: "ExactCount", count: 1 } }] },
  });
});

test("an object that was stored before there was a rule can still lose a finalizer", () => {
  const paths = { spec: { rules: [{ http: { paths: [{ path: "/" }] } }] } };
  const old = given("Ingress", paths, { finalizers: ["ex.io/f"] });

  expect(changing("Ingress", old, given("Ingress", paths))).toEqual([]);
  expect(changing("Ingress", old, given("Ingress", {}))).toEqual(["Invalid spec"]);
});

test("a claim, a revision and an address stay what they are", () => {
  const claim = stored("ResourceClaim", SAMPLES["ResourceClaim"] as Members);
  const revision = stored("ControllerRevision", SAMPLES["ControllerRevision"] as Members);

  expect(changing("ResourceClaim", claim, { ...claim, spec: {} })).toEqual(["Invalid spec"]);
  expect(changing("ControllerRevision", revision, { ...revision, data: { a: 1 } })).toEqual(["Invalid data"]);
  expect(changing("ControllerRevision", revision, { ...revision, revision: 4 })).toEqual([]);
});

test("every line of the small table is about a definition and fields that there are", () => {
  for (const [name, rules] of DEFINITION_RULES) {
    const fields = [
      ...Object.keys(rules.required ?? {}),
      ...Object.keys(rules.values ?? {}),
      ...(rules.zeroes ?? []),
      ...(rules.immutable ?? []),
      ...Object.keys(rules.defaults?.({}) ?? {}),
    ];
    for (const field of fields) expect(definitionOf(name).field(field), `${name} ${field}`).toBeDefined();
  }
});

function pathOf({ group, version, plural, namespaced }: Kind): string {
  return `/apis/${group}/${version}${namespaced ? "/namespaces/t" : ""}/${plural}`;
}

type Path = readonly (string | number)[];

/** Where the sample has a text, a list or raw JSON that the schema requires. */
function requiredIn(schema: ObjectSchema, object: JsonObject, path: Path = []): Path[] {
  return schema.fields.flatMap(({ name, type, isRequired }) => {
    const value = object[name];
    if (value === undefined || name === "metadata" || name === "status") return [];
    const here = [...path, name];
    const isLeaf =
      type.kind === "list" || (type.kind === "scalar" && ["string", "raw"].includes(type.scalar));
    return [...(isRequired && isLeaf ? [here] : []), ...requiredInside(type, value, here)];
  });
}

function requiredInside(type: TypeSchema, value: Json, path: Path): Path[] {
  if (type.kind === "object" && isJsonObject(value)) return requiredIn(type.schema, value, path);
  if (type.kind === "list" && isJsonList(value)) {
    return value.flatMap((item, index) => requiredInside(type.element, item, [...path, index]));
  }
  return [];
}

function removed(object: JsonObject, path: Path): JsonObject {
  const copy = structuredClone(object) as Record<string, unknown>;
  let at: Record<string | number, unknown> = copy;
  for (const key of path.slice(0, -1)) at = at[key] as Record<string | number, unknown>;
  Reflect.deleteProperty(at, path.at(-1) ?? "");
  return copy as JsonObject;
}

/** Any object of a definition: each field is there or not, lists and maps have up to two elements. */
function anyOf(random: Random, schema: ObjectSchema, depth: number): JsonObject {
  const members: Record<string, Json> = {};
  for (const { name, type } of schema.fields) {
    if (random.int(2) === 0) members[name] = anyValue(random, type, depth + 1);
  }
  return members;
}

function anyValue(random: Random, type: TypeSchema, depth: number): Json {
  switch (type.kind) {
    case "object":
      return depth > 9 ? {} : anyOf(random, type.schema, depth);
    case "list":
      return Array.from({ length: random.int(3) }, () => anyValue(random, type.element, depth + 1));
    case "map":
      return Object.fromEntries(
        Array.from({ length: random.int(3) }, (_, index) => [
          `k${index}`,
          anyValue(random, type.value, depth + 1),
        ]),
      );
    case "scalar":
      if (type.scalar === "boolean") return random.int(2) === 0;
      return type.scalar.startsWith("int") ? random.int(3) : (["", "a", "All"][random.int(3)] ?? "");
  }
}
