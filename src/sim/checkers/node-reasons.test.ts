import { describe, expect, test } from "vitest";
import { reportedWaits, type ReportedWait } from "../reported-waits.ts";
import type { World } from "../world.ts";
import { Facts } from "./facts.ts";
import { NODE_JUDGES } from "./node-reasons.ts";

const FAILED = "unmap_volume (NodeUnpublishVolume) failed: EBUSY";
const IN_LINE = `d5 is taken from pod default/web first; ${FAILED}`;

/** An agent that has the volume for a pod that leaves and for one that comes, and nothing of it mounted any more. */
function judge(leaving: { readonly reason: string; readonly message: string } | undefined) {
  const since = "2026-01-01T00:00:00Z";
  const object = { kind: "Volume", name: "d5" };
  const pods = [
    { pod: "", uid: "old", waitingFor: leaving && { ...leaving, object, since } },
    {
      pod: "default/web",
      uid: "new",
      waitingFor: { reason: "step-running", message: IN_LINE, object, since },
    },
  ];
  const report = () => ({ time: since, volumes: [{ volume: "kubernetes.io/csi/san^d5", pods }] });
  const node = { name: "node-1", agent: { manager: { report } }, agentProcess: { isRunning: true } };
  const world = {
    scheduler: { nowMs: 0 },
    controllers: new Map(),
    processes: new Map(),
    nodes: new Map([["node-1", node]]),
  } as unknown as World;
  const facts = new Facts(world);
  facts.isMountedOn = () => false;
  const wait = reportedWaits(world).find(({ podUid }) => podUid === "new");
  return wait && NODE_JUDGES["step-running"](wait, facts);
}

describe("step-running of a pod in line, with nothing mounted", () => {
  test("is true while the step that takes the volume from the other pod failed and is to be done again", () => {
    expect(judge({ reason: "backoff", message: FAILED })).toBeUndefined();
  });

  test("is untrue where nothing is said of the other pod, something else, or what needs a mount", () => {
    const untrue = "no pod has it mounted there";
    expect(judge(undefined)).toBe(untrue);
    expect(judge({ reason: "backoff", message: "map_volume (NodePublishVolume) failed: EIO" })).toBe(untrue);
    expect(judge({ reason: "held-by-process", message: FAILED })).toBe(untrue);
  });
});

describe("held-by-process of a volume that no process has", () => {
  /** Of a machine with nothing wrong but, where it is so, a mount of the volume that answers with an error. */
  function judgeHeld(message: string, { isBroken }: { readonly isBroken: boolean }) {
    const facts = new Facts({} as World);
    facts.isHeldOn = () => false;
    facts.isBrokenOn = (handle, node) => isBroken && handle === "d5" && node === "node-1";
    const wait = { handle: "d5", node: "node-1", message } as ReportedWait;
    return NODE_JUDGES["held-by-process"](wait, facts);
  }
  const UNSURE = "nobody could tell who has d5 of pod default/web: look at dev/web: ENOTCONN";

  test("is true while its mount is dead, so that nobody can tell", () => {
    expect(judgeHeld(UNSURE, { isBroken: true })).toBeUndefined();
  });

  test("is untrue where the mount answers, or a process is named all the same", () => {
    const untrue = "no process of the machine has it";
    expect(judgeHeld(UNSURE, { isBroken: false })).toBe(untrue);
    expect(judgeHeld("d5 stays while process 7 (app) has it mounted", { isBroken: true })).toBe(untrue);
  });
});
