import { describe, expect, test } from "vitest";
import { podPrinter } from "./pods.ts";

const NOW_MS = Date.parse("2026-01-01T01:00:00Z");
const CONTEXT = { nowMs: NOW_MS, defaultStorageClass: () => undefined };

/** The first four cells: name, ready, status, restarts. */
function print(pod: { spec?: object; status?: object; metadata?: object }) {
  return podPrinter.cells({ ...pod, metadata: { name: "p", ...pod.metadata } }, CONTEXT).slice(1, 4);
}

const two = { containers: [{ name: "a" }, { name: "b" }] };
const deleting = { deletionTimestamp: "2026-01-01T00:59:00Z" };
const running = (ready = true) => ({ ready, restartCount: 0, state: { running: {} } });
const waiting = (reason: string) => ({ ready: false, restartCount: 0, state: { waiting: { reason } } });
const ended = (terminated: object) => ({ ready: false, restartCount: 0, state: { terminated } });
const crashed = (restartCount: number, finishedAt: string) => ({
  ...running(),
  restartCount,
  lastState: { terminated: { exitCode: 1, finishedAt } },
});
const condition = (type: string, status: string, reason?: string) => ({ type, status, reason });

describe("what a pod is doing", () => {
  for (const [why, pod, ready, status] of [
    ["nothing known", {}, "0/0", ""],
    ["phase alone", { spec: two, status: { phase: "Pending" } }, "0/2", "Pending"],
    ["a reason of its own", { spec: two, status: { phase: "Failed", reason: "Evicted" } }, "0/2", "Evicted"],
    [
      "held back from scheduling",
      {
        spec: two,
        status: { phase: "Pending", conditions: [condition("PodScheduled", "False", "SchedulingGated")] },
      },
      "0/2",
      "SchedulingGated",
    ],
    [
      "running",
      { spec: two, status: { phase: "Running", containerStatuses: [running(), running(false)] } },
      "1/2",
      "Running",
    ],
    [
      "the first container with a reason speaks",
      {
        spec: two,
        status: { phase: "Running", containerStatuses: [running(), waiting("CrashLoopBackOff")] },
      },
      "1/2",
      "CrashLoopBackOff",
    ],
    [
      "of two with a reason, the first",
      {
        spec: two,
        status: {
          phase: "Pending",
          containerStatuses: [waiting("ImagePullBackOff"), waiting("ErrImagePull")],
        },
      },
      "0/2",
      "ImagePullBackOff",
    ],
    [
      "ended with a reason",
      { spec: two, status: { containerStatuses: [ended({ reason: "OOMKilled" })] } },
      "0/2",
      "OOMKilled",
    ],
    [
      "ended by a signal",
      { spec: two, status: { containerStatuses: [ended({ signal: 9, exitCode: 137 })] } },
      "0/2",
      "Signal:9",
    ],
    [
      "ended with a code",
      { spec: two, status: { containerStatuses: [ended({ exitCode: 3 })] } },
      "0/2",
      "ExitCode:3",
    ],
    [
      "one done, one running and ready",
      {
        spec: two,
        status: {
          conditions: [condition("Ready", "True")],
          containerStatuses: [ended({ reason: "Completed", exitCode: 0 }), running()],
        },
      },
      "1/2",
      "Running",
    ],
    [
      "one done, one running, the pod not ready",
      { spec: two, status: { containerStatuses: [ended({ reason: "Completed", exitCode: 0 }), running()] } },
      "1/2",
      "NotReady",
    ],
    [
      "all done",
      { spec: two, status: { containerStatuses: [ended({ reason: "Completed" })] } },
      "0/2",
      "Completed",
    ],
    ["deleting", { metadata: deleting, status: { phase: "Running" } }, "0/0", "Terminating"],
    [
      "deleting, its node lost",
      { metadata: deleting, status: { phase: "Running", reason: "NodeLost" } },
      "0/0",
      "Unknown",
    ],
    [
      "deleting, already failed",
      { metadata: deleting, status: { phase: "Failed", reason: "Evicted" } },
      "0/0",
      "Evicted",
    ],
  ] as const) {
    test(`${why}: ${ready} ${status}`, () => {
      expect(print(pod).slice(0, 2)).toEqual([ready, status]);
    });
  }
});

describe("while init containers run", () => {
  const spec = {
    ...two,
    initContainers: [{ name: "i" }, { name: "j" }, { name: "side", restartPolicy: "Always" }],
  };
  const done = { ...ended({ exitCode: 0, reason: "Completed" }) };
  const sidecar = (flags: object) => ({ name: "side", restartCount: 1, state: { running: {} }, ...flags });

  for (const [why, initContainerStatuses, ready, status, conditions] of [
    ["the first waits for its turn", [waiting("PodInitializing")], "0/3", "Init:0/3", []],
    ["the second runs", [done, running()], "0/3", "Init:1/3", []],
    ["one cannot get its image", [done, waiting("ErrImagePull")], "0/3", "Init:ErrImagePull", []],
    ["one failed with a reason", [ended({ exitCode: 1, reason: "Error" })], "0/3", "Init:Error", []],
    ["one failed with a code", [ended({ exitCode: 4 })], "0/3", "Init:ExitCode:4", []],
    ["one was killed", [ended({ signal: 9 })], "0/3", "Init:Signal:9", []],
    ["a sidecar is starting", [done, done, sidecar({ started: false })], "0/3", "Init:2/3", []],
    ["a sidecar has started", [done, done, sidecar({ started: true })], "0/3", "Pending", []],
    ["a sidecar is ready", [done, done, sidecar({ started: true, ready: true })], "1/3", "Pending", []],
    ["the pod says that is over", [done, running()], "0/3", "Init:1/3", [condition("Initialized", "True")]],
  ] as const) {
    test(`${why}: ${ready} ${status}`, () => {
      expect(
        print({ spec, status: { phase: "Pending", initContainerStatuses, conditions } }).slice(0, 2),
      ).toEqual([ready, status]);
    });
  }

  test("their restarts count only until the pod is initialized; those of sidecars always", () => {
    const restarted = { ...ended({ exitCode: 0 }), restartCount: 4 };
    const before = [restarted, waiting("CrashLoopBackOff")];
    const after = [restarted, restarted, sidecar({ started: true })];

    expect(print({ spec, status: { initContainerStatuses: before } })[2]).toBe("4");
    expect(
      print({ spec, status: { initContainerStatuses: after, containerStatuses: [crashed(2, "")] } })[2],
    ).toBe("3");
  });
});

describe("restarts", () => {
  for (const [why, containerStatuses, text] of [
    ["none", [running()], "0"],
    ["when is not known", [crashed(2, "")], "2"],
    [
      "the latest of all containers",
      [crashed(2, "2026-01-01T00:10:00Z"), crashed(1, "2026-01-01T00:55:00Z")],
      "3 (5m ago)",
    ],
    ["ended once, not restarted yet", [crashed(0, "2026-01-01T00:10:00Z")], "0"],
  ] as const) {
    test(`${why}: ${text}`, () => {
      expect(print({ spec: two, status: { containerStatuses } })[2]).toBe(text);
    });
  }
});

test("wide cells say where it runs, and <none> for what is not known", () => {
  const wide = (pod: object) => podPrinter.cells({ metadata: {}, ...pod }, CONTEXT).slice(5);
  const gates = [{ conditionType: "a.io/x" }, { conditionType: "a.io/y" }];

  expect(wide({})).toEqual(["<none>", "<none>", "<none>", "<none>"]);
  expect(
    wide({
      spec: { nodeName: "n", readinessGates: gates },
      status: {
        podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }],
        nominatedNodeName: "m",
        conditions: [condition("a.io/x", "True"), condition("a.io/y", "False")],
      },
    }),
  ).toEqual(["10.0.0.1", "n", "m", "1/2"]);
});
