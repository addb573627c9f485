import { describe, expect, test } from "vitest";
import type { KubeEvent } from "../kube/api/event.ts";
import { createCluster } from "./cluster.ts";
import { explain } from "./explain.ts";
import type { ClusterObjects } from "./objects.ts";
import { ago, claim, claimEvent, cluster, NOW_MS, pod, podEvent, runningPod } from "./objects.testing.ts";

const reasonOf = (objects: ClusterObjects) =>
  explain(createCluster(objects, NOW_MS), { kind: "pod", name: "web", namespace: "shop" })?.blocker?.reason;

const unscheduled = pod("web", { spec: { nodeName: "" } });
const unbound = claim("data", { spec: { volumeName: "" }, status: { phase: "Pending" } });

/** Each is the reason while the event is about the object that there is, and says nothing of the next one of its name. */
const TOLD: readonly {
  readonly event: KubeEvent;
  readonly uid: string;
  readonly objects: Partial<ClusterObjects>;
  readonly reason: string;
  readonly otherwise: string | undefined;
}[] = [
  {
    event: podEvent("FailedScheduling", "0/2 nodes are available: 2 Insufficient cpu."),
    ...{ uid: "uid-web", objects: { pods: [unscheduled] } },
    ...{ reason: "unschedulable", otherwise: "scheduler-silent" },
  },
  {
    event: podEvent("VolumeReplaced", 'volume "data" of the pod stays as it is: its claim was replaced'),
    ...{ uid: "uid-web", objects: { pods: [runningPod()] } },
    ...{ reason: "volume-replaced", otherwise: undefined },
  },
  {
    event: podEvent("FailedMount", 'MountVolume.SetUp failed for volume "pv-1" : broken'),
    ...{ uid: "uid-web", objects: {} },
    ...{ reason: "mount-failed", otherwise: "mount-pending" },
  },
  {
    event: claimEvent("ProvisioningFailed", "the pool is full"),
    ...{ uid: "uid-data", objects: { pods: [unscheduled], claims: [unbound], volumes: [], attachments: [] } },
    ...{ reason: "provision-failed", otherwise: "provisioner-silent" },
  },
];

describe("an event is about the object that it was written for", () => {
  for (const { event, uid, objects, reason, otherwise } of TOLD) {
    const told = (of: Partial<KubeEvent["involvedObject"]>, lastTimestamp = ago(20)) =>
      reasonOf(
        cluster({
          ...objects,
          events: [{ ...event, lastTimestamp, involvedObject: { ...event.involvedObject, ...of } }],
        }),
      );

    test(`${event.reason ?? ""}: not about one of the same name that is gone`, () => {
      expect(told({ uid })).toBe(reason);
      expect(told({ uid: "uid-before" })).toBe(otherwise);
    });

    test(`${event.reason ?? ""}: by its uid, also where the clock of whoever wrote it is slow, and else by its time`, () => {
      expect(told({ uid }, ago(3_600))).toBe(reason);
      expect(told({})).toBe(reason);
      expect(told({}, ago(3_600))).toBe(otherwise);
    });
  }
});
