import { expect, test } from "vitest";
import { NO_CALL_FAULTS } from "../sockets.ts";
import type { World } from "../world.ts";
import { watchWhy } from "./why.ts";

/** One pod on one node that says to be ready, with a controller that is broken, so that `why` is asked. */
function watched() {
  const scheduler = { nowMs: 0, createClock: () => ({ wall: () => new Date(scheduler.nowMs) }) };
  const machine = {
    ...{ isOn: true, bootId: "boot-1", sockets: { faults: NO_CALL_FAULTS }, kernelFaults: { rate: 0 } },
    host: { tree: { hung: new Set(), broken: new Set() }, kernel: { held: new Set() } },
  };
  const node = {
    ...{ name: "node-1", machine, agentProcess: { isRunning: false }, limits: { volumesMax: 8 } },
    containers: { running: new Map<string, object>(), isStubborn: false },
  };
  const status = { phase: "Pending" };
  const metadata = { name: "web", namespace: "default", uid: "u1" };
  const objects: Readonly<Record<string, readonly object[]>> = {
    pods: [{ metadata, spec: { nodeName: "node-1" }, status }],
    nodes: [{ metadata: { name: "node-1" }, status: { conditions: [{ type: "Ready", status: "True" }] } }],
  };
  const violations: string[] = [];
  const world = {
    ...{ scheduler, san: { isFull: false }, infra: machine, server: { isUp: true } },
    objects: { all: (kind: string) => objects[kind] ?? [], get: () => undefined },
    processes: new Map([["controller-0", { isRunning: false, isUnhindered: false, lives: 1 }]]),
    ...{ controllers: new Map(), nodes: new Map([["node-1", node]]) },
    violate: (text: string) => violations.push(text),
  } as unknown as World;
  const look = watchWhy(world);
  return {
    ...{ machine, status, violations },
    lookAt: (seconds: number) => {
      scheduler.nowMs = seconds * 1_000;
      look();
    },
  };
}

test("a pod that ran for less than a second, until its machine lost its power, has not run since then", () => {
  const { machine, status, violations, lookAt } = watched();
  machine.isOn = false;
  lookAt(0);
  lookAt(80);

  // Between two looks its machine was on, the pod ran, and the machine is off again.
  Object.assign(machine, { bootId: "boot-2" });
  Object.assign(status, { phase: "Running" });
  for (const seconds of [81, 100, 160, 170]) lookAt(seconds);
  expect(violations).toEqual([]);

  lookAt(232);
  expect(violations).toEqual([
    expect.stringMatching(/has not run for 151 s, and the answer is that nothing/),
  ]);
});
