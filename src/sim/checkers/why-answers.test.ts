import { expect, test } from "vitest";
import type { Blocker } from "../../views/explanation.ts";
import type { Reason } from "../../views/reasons/reasons.ts";
import { problemOf, type PodFacts } from "./why-answers.ts";

const facts: PodFacts = {
  ...{
    node: "node-1",
    hasStarted: false,
    isReady: true,
    isSomeNodeClosed: false,
    isSelectedNodeMissing: false,
    isCopy: false,
    candidates: [],
    told: undefined,
  },
};

function answer(reason: Reason, { summary = "", value = "", object = "VolumeAttachment csi-1" } = {}) {
  const evidence = [{ object, field: "", value }];
  const blocker: Blocker = { reason, link: "pod", evidence, next: "", help: { none: "" } };
  return { summary, blocker };
}

test("what is named has to be broken", () => {
  const silent = answer("attacher-missing");

  expect(problemOf(silent, facts, ["process attacher"])).toBeUndefined();
  expect(problemOf(silent, facts, ["process node-1"])).toBe(
    "is attacher-missing, of which nothing is broken: that is process node-1",
  );
});

test("a fault of another node is no reason for one of this node", () => {
  const failed = answer("mount-failed", { summary: "volume data cannot be mounted on node node-1" });

  expect(problemOf(failed, facts, ["calls node-1"])).toBeUndefined();
  expect(problemOf(failed, facts, ["calls node-2"])).toMatch(/nothing is broken/);
});

test("a holder that is named is the one that is broken", () => {
  const held = answer("held-by-not-ready-node", { summary: "node node-2, which has it, is not ready" });

  expect(problemOf(held, facts, ["power node-2"])).toBeUndefined();
  expect(problemOf(held, facts, ["power node-3"])).toMatch(/nothing is broken/);
});

test("what a program waits for points at who keeps it waiting", () => {
  const waits = answer("controller-waits", { value: "driver-attaching: the driver was asked" });

  expect(problemOf(waits, facts, ["calls infra"])).toBeUndefined();
  expect(problemOf(waits, facts, ["stuck node-1"])).toMatch(/nothing is broken/);
});

test("a request to the API server is waited for by who says so", () => {
  const value = "api-request: it is being written; the API server has not answered yet";
  const attacher = answer("controller-waits", { object: "mooring attacher", value });
  const controller = answer("controller-waits", { object: "mooring controller", value });

  expect(problemOf(attacher, facts, ["process attacher"])).toBeUndefined();
  expect(problemOf(attacher, facts, ["process controller-0"])).toMatch(/nothing is broken/);
  expect(problemOf(controller, facts, ["process controller-0"])).toBeUndefined();
  expect(problemOf(controller, facts, ["process attacher"])).toMatch(/nothing is broken/);
});

test("that a claim grows is no reason why a pod does not run", () => {
  expect(problemOf(answer("expand-pending"), facts, ["process companions"])).toMatch(/brings about/);
});

test("healthy is never right, nor a reason that nothing here brings about", () => {
  expect(problemOf({ summary: "" }, facts, ["server"])).toBe("is that nothing is wrong");
  expect(problemOf(answer("secret-missing"), facts, ["server"])).toMatch(/brings about/);
});

test("unsure is right only where neither objects nor pages tell", () => {
  const unsure = answer("mount-pending");
  const faults = ["process node-1"] as const;

  expect(problemOf(unsure, facts, faults)).toBeUndefined();
  expect(problemOf(unsure, { ...facts, isReady: false }, faults)).toMatch(/node-1 is not ready/);
  expect(problemOf(unsure, { ...facts, told: "node-1 waits: backoff" }, faults)).toMatch(/backoff/);
});

test("of a pod that had started, its silent node is the reason, whatever its claim leads to", () => {
  const gone = { ...facts, hasStarted: true, isReady: false };

  expect(problemOf(answer("volume-replaced"), gone, ["power node-1"])).toMatch(/is not ready/);
  expect(problemOf(answer("node-not-ready"), gone, ["power node-1"])).toBeUndefined();
});

test("taints that no Node has are named only by a scheduler that could not look", () => {
  const tainted = answer("unschedulable-taint");

  expect(problemOf(tainted, facts, ["power node-1"])).toMatch(/nothing is broken/);
  expect(problemOf(tainted, facts, ["process companions"])).toBeUndefined();
  expect(problemOf(tainted, { ...facts, isSomeNodeClosed: true }, ["power node-1"])).toBeUndefined();
});

test("that no node is selected, or all are cordoned, is right where the Nodes say so, whatever is broken", () => {
  const faults = ["process companions", "process node-1"] as const;

  expect(problemOf(answer("unschedulable-affinity"), facts, faults)).toMatch(/nothing is broken/);
  expect(
    problemOf(answer("unschedulable-affinity"), { ...facts, isSelectedNodeMissing: true }, faults),
  ).toBeUndefined();
  expect(problemOf(answer("unschedulable-cordoned"), facts, faults)).toMatch(/nothing is broken/);
  expect(
    problemOf(answer("unschedulable-cordoned"), { ...facts, isSomeNodeClosed: true }, faults),
  ).toBeUndefined();
});

test("a driver that refuses to mount is believed while its CSIDriver object says that nothing needs an attach", () => {
  expect(problemOf(answer("mount-failed"), facts, ["csidriver"])).toBeUndefined();
  expect(problemOf(answer("mount-failed"), facts, ["process attacher"])).toMatch(/nothing is broken/);
  expect(problemOf(answer("unmount-failed"), facts, ["csidriver"])).toMatch(/nothing is broken/);
});

test("a driver that refuses to detach may do so for what keeps the volume on the node", () => {
  const failed = answer("detach-failed", { summary: "still staged on node-1" });

  expect(problemOf(failed, facts, ["stuck node-1"])).toBeUndefined();
  expect(problemOf(failed, facts, ["calls infra"])).toBeUndefined();
  expect(problemOf(failed, facts, ["stuck node-2", "process controller-0"])).toMatch(/nothing is broken/);
  expect(problemOf(failed, facts, ["detached node-1"])).toBeUndefined();
  expect(problemOf(failed, facts, ["detached node-2"])).toMatch(/nothing is broken/);
});

test("a scheduler that misses a driver speaks of a node where the pod may be put, without its name", () => {
  const lacking = {
    summary: "0/3 nodes are available: 1 node(s) did not have the CSI driver san registered",
  };
  const selecting = { ...facts, node: "", candidates: ["node-3"] };

  expect(problemOf(answer("unschedulable", lacking), selecting, ["process node-3-driver"])).toBeUndefined();
  expect(problemOf(answer("unschedulable", lacking), selecting, ["process node-2-driver"])).toMatch(
    /nothing is broken/,
  );
  expect(problemOf(answer("unschedulable"), selecting, ["process node-3-driver"])).toMatch(
    /nothing is broken/,
  );
});

test("a provisioner that waits for the driver of a node names it", () => {
  const unregistered = answer("provision-failed", { summary: 'node "node-3" has not registered driver san' });

  expect(problemOf(unregistered, facts, ["process node-3-driver"])).toBeUndefined();
  expect(problemOf(unregistered, facts, ["process node-2-driver"])).toMatch(/nothing is broken/);
});
