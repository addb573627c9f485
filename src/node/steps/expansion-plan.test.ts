import { expect, test } from "vitest";
import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import { expandedStatus, failedStatus, planExpansion } from "./expansion-plan.ts";

const GI = 1024 ** 3;

function claim(status: object, { modes = ["ReadWriteOnce"], annotations = {} } = {}): PersistentVolumeClaim {
  return { metadata: { name: "c", annotations }, spec: { accessModes: modes }, status };
}

const ALLOCATED = { allocatedResources: { storage: "2Gi" } };
const AT = (storage: string) => ({ capacity: { storage } });

for (const [name, given, plan] of [
  [
    "scenario 98: pending",
    claim({ ...ALLOCATED, ...AT("1Gi"), allocatedResourceStatuses: { storage: "NodeResizePending" } }),
    "proceed",
  ],
  [
    "scenario 100: shared and already updated",
    claim({ ...ALLOCATED, ...AT("2Gi") }, { modes: ["ReadWriteMany"] }),
    "proceed",
  ],
  [
    "scenario 100: the same, not required",
    claim(
      { ...ALLOCATED, ...AT("2Gi") },
      {
        modes: ["ReadWriteMany"],
        annotations: { "volume.kubernetes.io/node-expansion-not-required": "true" },
      },
    ),
    "finished",
  ],
  ["scenario 101: one node, already updated", claim({ ...ALLOCATED, ...AT("2Gi") }), "finished"],
  ["scenario 102: nobody keeps books", claim(AT("1Gi")), "proceed"],
  [
    "scenario 103: infeasible",
    claim({ ...ALLOCATED, ...AT("1Gi"), allocatedResourceStatuses: { storage: "NodeResizeInfeasible" } }),
    "not-yet",
  ],
  [
    "the controller's turn",
    claim({
      ...ALLOCATED,
      ...AT("1Gi"),
      allocatedResourceStatuses: { storage: "ControllerResizeInProgress" },
    }),
    "not-yet",
  ],
] as const) {
  test(`${name}: ${plan}`, () => {
    const { kind, ...rest } = planExpansion(given, { wantedBytes: 2 * GI });

    expect(kind).toBe(plan);
    if ("sizeBytes" in rest) expect(rest.sizeBytes).toBe(2 * GI);
  });
}

test("scenario 98: done: capacity is written, status and conditions of resizing go, others stay", () => {
  const conditions = [
    { type: "Resizing", status: "True" },
    { type: "Other", status: "True" },
  ];

  expect(expandedStatus(claim({ conditions }), 2 * GI)).toEqual({
    capacity: { storage: String(2 * GI) },
    allocatedResourceStatuses: { storage: null },
    conditions: [{ type: "Other", status: "True" }],
  });
});

test("scenario 99: infeasible is said in the status, any other final failure only in a condition", () => {
  const failure = { message: "no", at: new Date(0) };
  const condition = {
    type: "NodeResizeError",
    status: "True",
    lastTransitionTime: "1970-01-01T00:00:00Z",
    message: "failed to expand pvc with no",
  };

  expect(failedStatus(claim({}), { ...failure, infeasible: true })).toEqual({
    conditions: [condition],
    allocatedResourceStatuses: { storage: "NodeResizeInfeasible" },
  });
  expect(failedStatus(claim({}), { ...failure, infeasible: false })).toEqual({ conditions: [condition] });
});
