import { describe, expect, test } from "vitest";
import { persistentVolumeClaims } from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../../kube/api/persistent-volume.ts";
import { DRIVER, volumeObject } from "../../sim/cluster-objects.ts";
import { createFaultyNodeHost, type FaultyNodeHost } from "../../sim/node-host-faults.ts";
import { given, NODE_ROOT, type NodeWorld } from "../../sim/node-world.ts";

/**
 * What keeps a volume, together: a process has it, its objects were replaced, a call got no answer, the agent was killed,
 * and the pod came back under its name. Whatever one of them allows, the others forbid until each is over.
 */

const MINUTE = 60_000;
const CLAIM = { namespace: "default", name: "claim-v" };
const JOURNAL = `${NODE_ROOT}/mooring/volumes`;

const DAMAGES: Readonly<Record<string, (world: NodeWorld) => Promise<void>>> = {
  "nothing replaced": async () => undefined,
  "PersistentVolume replaced, another disk": (world) => replaceVolume(world, "w"),
  "PersistentVolume replaced, same disk": (world) => replaceVolume(world, "v"),
  "claim deleted": (world) => world.deleteClaim("v"),
};

async function replaceVolume(world: NodeWorld, volumeHandle: string): Promise<void> {
  const claim = world.read(persistentVolumeClaims, CLAIM);
  await world.deletePersistentVolume("v");
  const source = { csi: { driver: DRIVER, volumeHandle } };
  await world.client.create(
    persistentVolumes,
    volumeObject("pv-v", { source, modes: ["ReadWriteOnce"], claim }),
  );
}

function isRepeat(overlap: string): boolean {
  const [call, others] = overlap.split(" beside ");
  return call === others;
}

type Start = () => void;

const RESTARTS: Readonly<
  Record<string, (world: NodeWorld, start: Start, host: FaultyNodeHost) => Promise<void>>
> = {
  "agent not restarted": async () => undefined,
  "agent stopped and started": async (world, start) => {
    await world.stop();
    start();
  },
  "agent killed": async (world, start, host) => {
    host.dieAt(0);
    world.abandon();
    start();
  },
  "agent stopped, and records as the version before wrote them": async (world, start) => {
    await world.stop();
    for (const { name } of (await world.machine.files.list(JOURNAL)) ?? []) {
      const record = JSON.parse((await world.machine.files.read(`${JOURNAL}/${name}`)) ?? "") as {
        calls?: unknown;
        pods: readonly { uid: string; path: string }[];
      };
      delete record.calls;
      const pods = record.pods.map(({ uid, path }) => ({ uid, path }));
      const text = JSON.stringify({ ...record, pods, devicePath: "/dev/of-before" });
      await world.machine.files.writeDurable(`${JOURNAL}/${name}`, text, 0o600);
    }
    start();
  },
};

/** All 32 with MOORING_EVERY_STEP take 9 s; else each of the ways at least twice. */
let cases = 0;
const isSampled = () => cases++ % 3 === 0 || Boolean(process.env["MOORING_EVERY_STEP"]);

describe("a pod is deleted by force and comes back, while a process of it goes on", () => {
  for (const [damage, does] of Object.entries(DAMAGES))
    for (const [restart, restarts] of Object.entries(RESTARTS))
      for (const unanswered of [false, true])
        test.skipIf(!isSampled())(
          `${damage}; ${restart}${unanswered ? "; the unpublish gets no answer" : ""}`,
          async () => {
            const world = await given({ volumes: { v: {}, w: {} }, started: false });
            world.driver.locks = false;
            let host = createFaultyNodeHost(world.machine, { clock: world.clock });
            let scans = 0;
            const start = () => {
              host = createFaultyNodeHost(world.machine, { clock: world.clock });
              const { processes } = host;
              const scan: typeof processes.scan = (request) => {
                scans++;
                return processes.scan(request);
              };
              world.start({ host: { ...host, processes: { ...processes, scan } } });
            };
            start();
            await world.startPod("web", { uses: ["v"] });
            await world.runFor(5_000);
            const target = `${NODE_ROOT}/pods/${world.uidOf("web")}/volumes/kubernetes.io~csi/pv-v/mount`;
            const pid = world.machine.startProcess({ binds: [target] });
            world.takeCalls();

            await does(world);
            await world.runFor(1_000);
            await world.removePod("web");
            await world.startPod("web", { uses: ["v"] });
            await world.runFor(500);
            await restarts(world, start, host);
            await world.runFor(MINUTE);
            scans = 0;
            await world.runFor(5 * MINUTE);

            // Every 15 s for each of its questions, and what the audit asks.
            expect(scans).toBeLessThan(60);
            expect(world.takeCalls().filter((call) => / v( |$)/.test(call))).toEqual([]);
            expect(world.inUse()).toContain("v");
            expect((await world.mountPoints()).includes(target)).toBe(true);

            if (unanswered) world.driver.delay("unpublish", 3 * MINUTE);
            world.machine.endProcess(pid);
            await world.runFor(12 * MINUTE);

            const calls = world.takeCalls();
            expect(calls.filter((call) => call.startsWith("unpublish v")).length).toBeGreaterThan(0);
            expect((await world.mountPoints()).includes(target)).toBe(false);
            const wantsV = damage === "nothing replaced" || damage.endsWith("same disk");
            expect(world.inUse().includes("v")).toBe(wantsV);
            expect(calls.includes("publish v web")).toBe(wantsV);
            // The same call may be repeated beside one that got no answer.
            expect(world.driver.overlaps.filter((line) => !isRepeat(line))).toEqual([]);
            world.abandon();
          },
        );
});
