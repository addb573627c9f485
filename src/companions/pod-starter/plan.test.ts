import { expect, test } from "vitest";
import type { Pod } from "../../kube/api/pod.ts";
import { planPod } from "./plan.ts";

const running = { running: {} };
const waiting = { waiting: { reason: "ContainerCreating" } };
const terminated = { terminated: { exitCode: 0 } };
const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 30 };
const held = { ...deleted, deletionGracePeriodSeconds: 0, finalizers: ["example.com/kept"] };

function pod(metadata: object, phase: string, state: object | undefined): Pod {
  const status = state && { name: "app", image: "", imageID: "", ready: false, restartCount: 0, state };
  return {
    metadata: { name: "web", namespace: "default", uid: "u", ...metadata },
    spec: { containers: [{ name: "app" }] },
    status: { phase, ...(status && { containerStatuses: [status] }) },
  };
}

const unknown = { mounted: false, unmounted: false };
const mounted = { mounted: true, unmounted: false };
const unmounted = { mounted: false, unmounted: true };
const rejected = { ...unknown, rejected: "full" };

for (const [metadata, phase, state, known, expected] of [
  [{}, "Pending", undefined, unknown, "write starting"],
  [{}, "Pending", waiting, unknown, "wait mounted"],
  [{}, "Pending", waiting, mounted, "write running"],
  [{}, "Running", running, mounted, "nothing"],
  // A process before this one said so; whether it is mounted is not known.
  [{}, "Running", running, unknown, "write starting"],
  [{}, "Pending", waiting, rejected, "write rejected"],
  [{}, "Failed", terminated, rejected, "nothing"],
  // Evicted by somebody.
  [{}, "Failed", running, mounted, "write ended"],
  [{}, "Failed", terminated, unknown, "nothing"],
  [{}, "Succeeded", undefined, unknown, "nothing"],
  [deleted, "Running", running, mounted, "write ended"],
  [deleted, "Running", running, unmounted, "write ended"],
  // Neither waiting nor terminated: it may well be running.
  [deleted, "Running", {}, unknown, "write ended"],
  [deleted, "Running", terminated, mounted, "wait unmounted"],
  [deleted, "Running", terminated, unmounted, "delete"],
  [deleted, "Pending", waiting, unknown, "wait unmounted"],
  [deleted, "Pending", undefined, unmounted, "delete"],
  [deleted, "Failed", terminated, unmounted, "delete"],
  [held, "Running", terminated, mounted, "wait unmounted"],
  [held, "Running", terminated, unmounted, "nothing"],
  [{ annotations: { "kubernetes.io/config.mirror": "x" } }, "Pending", undefined, unknown, "nothing"],
] as const) {
  const which = "deletionTimestamp" in metadata ? "deleted, " : "";
  test(`${which}${phase}, ${JSON.stringify(state)}, ${JSON.stringify(known)}: ${expected}`, () => {
    const step = planPod(pod(metadata, phase, state), known);

    expect(
      [step.kind, ...("what" in step ? [step.what] : []), ...("until" in step ? [step.until] : [])].join(" "),
    ).toBe(expected);
  });
}
