import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { nodes } from "../../src/kube/api/node.ts";
import { deletePod } from "./controller-world.ts";
import { whyNoDevices } from "./driver-world.ts";
import { mooring, Running } from "./mooring.ts";
import {
  givenPod,
  givenVolume,
  isMounted,
  MortalAgent,
  mountsBelow,
  NODE,
  startNodeWorld,
  untilGone,
  type NodeWorld,
  type PlacedPod,
} from "./node-world.ts";

/** The agent as it is deployed: a process of its own, with the rights of its manifests, a real driver and real mounts. */

const reason = await whyNoDevices();
if (reason !== undefined) process.stderr.write(`node agent on real devices: skipped, ${reason}\n`);

/** How often the agent is killed; MOORING_EVERY_STEP=1 takes all of the 170 places, in five minutes. */
const KILLS = 6;
const STRIDE_OFFSET = 2;
const EVERY_ACT = process.env.MOORING_EVERY_STEP !== undefined;
const LIMIT_MS = EVERY_ACT ? 1_200_000 : 150_000;

describe.skipIf(reason !== undefined)("mooring node", () => {
  let world: NodeWorld;
  /** Where agents died, in their own words. */
  const deaths: string[] = [];
  const started: { end(): Promise<unknown> }[] = [];

  beforeAll(async () => {
    world = await startNodeWorld();
  });

  afterEach(async () => {
    for (const process of started.splice(0)) await process.end();
  });

  afterAll(async () => {
    await world.stop();
  });

  function startAgent(): Running {
    const agent = new Running("node", ...world.flags, "--http-endpoint", "127.0.0.1:0");
    const end = async () => {
      agent.kill("SIGKILL");
      await agent.exit();
    };
    started.push({ end });
    return agent;
  }

  async function volumesInUse(): Promise<readonly string[]> {
    const { status } = await world.cluster.admin.client.get(nodes, { name: NODE });
    return status?.volumesInUse ?? [];
  }

  async function expectNothingLeft({ directory }: PlacedPod): Promise<void> {
    await world.cluster.attachments.until((all) => all.length === 0);
    await untilGone(directory);
    expect(mountsBelow(world.root)).toEqual([]);
    expect((await world.real.leftovers()).devices).toEqual([]);
    expect(await volumesInUse()).toEqual([]);
    expect(readdirSync(join(world.root, "mooring", "volumes"))).toEqual([]);
  }

  test("a pod's file survives the pod, a second agent refuses to start; afterwards no mount, device, directory, record or attachment is left", async () => {
    const volume = await givenVolume(world, "diary");
    const agent = startAgent();
    const pod = await givenPod(world, "writer", "diary");

    await agent.says(isMounted(pod));
    writeFileSync(join(pod.mount, "page"), "precious");
    expect(mountsBelow(world.root)).toContain(pod.mount);
    expect(await volumesInUse()).toEqual([volume]);
    expect(mooring("node", ...world.flags)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/is used by process \d+.*--root-dir/),
    });

    await deletePod(world.cluster, "writer");
    await expectNothingLeft(pod);

    const reader = await givenPod(world, "reader", "diary");
    await agent.says(isMounted(reader));
    expect(readFileSync(join(reader.mount, "page"), "utf8")).toBe("precious");
    await deletePod(world.cluster, "reader");
    await expectNothingLeft(reader);
    agent.kill("SIGTERM");
    expect(await agent.exit()).toMatchObject({ code: 0 });
  });

  test("a container that outlives its pod keeps the volume mounted, attached and in use; when it ends, everything goes", async () => {
    const volume = await givenVolume(world, "held");
    const agent = startAgent();
    const pod = await givenPod(world, "zombie", "held");
    await agent.says(isMounted(pod));
    const container = spawn(
      "unshare",
      ["--mount", "sh", "-ec", `cd ${pod.mount}; echo one > page; echo ready; exec sleep 120`],
      { stdio: ["ignore", "pipe", "ignore"] },
    );
    const ended = once(container, "exit");
    started.push({ end: async () => container.kill("SIGKILL") });
    await once(container.stdout, "data");

    await deletePod(world.cluster, "zombie");
    await agent.says(new RegExp(`process ${container.pid} \\(sleep\\) has it mounted at`));

    expect(mountsBelow(world.root)).toContain(pod.mount);
    expect(await volumesInUse()).toEqual([volume]);
    writeFileSync(`/proc/${container.pid}/cwd/page`, "precious");
    container.kill("SIGKILL");
    await ended;
    await expectNothingLeft(pod);

    const reader = await givenPod(world, "heir", "held");
    await agent.says(isMounted(reader));
    expect(readFileSync(join(reader.mount, "page"), "utf8")).toBe("precious");
    await deletePod(world.cluster, "heir");
    await expectNothingLeft(reader);
  }, 120_000);

  test(
    "killed at an act of mounting or unmounting, the next agent goes on: in use while mounted, never twice, nothing lost",
    async () => {
      const volume = await givenVolume(world, "survivor");
      let agent = await startMortal();
      await agent.countActs();
      const first = await givenPod(world, "first", "survivor");
      await agent.lived(isMounted(first));
      writeFileSync(join(first.mount, "page"), "precious", { flush: true });
      await deletePod(world.cluster, "first");
      await expectNothingLeft(first);
      const acts = await agent.countActs();

      const kills = killsOf(acts);
      for (const [round, kill] of kills.entries()) {
        await agent.countActs(kill);
        const pod = await givenPod(world, `round-${round}`, "survivor");
        agent = await liveThrough(agent, { pod, volume });
        await expectNothingLeft(pod);
      }

      // One at the very end may come too late: two lives do not have exactly as many acts.
      expect(deaths.length).toBeGreaterThan(kills.length * 0.8);
    },
    LIMIT_MS,
  );

  async function startMortal(): Promise<MortalAgent> {
    const agent = new MortalAgent(world.flags);
    started.push({ end: () => agent.kill() });
    expect(await agent.lived(/"driver registered"/)).toBe(true);
    return agent;
  }

  /** Until the pod is deleted, by as many agents as it takes; answers the last. */
  async function liveThrough(
    first: MortalAgent,
    { pod, volume }: { pod: PlacedPod; volume: string },
  ): Promise<MortalAgent> {
    let agent = first;
    while (!(await agent.lived(isMounted(pod)))) agent = await succeed(agent, volume);
    expect(readFileSync(join(pod.mount, "page"), "utf8"), agent.output).toBe("precious");
    expectNoMountTwice();
    await deletePod(world.cluster, pod.name);
    const gone = world.cluster.attachments.until((all) => all.length === 0);
    const died = () => agent.died().then(() => false);
    while (!(await Promise.race([gone, died()]))) agent = await succeed(agent, volume);
    return agent;
  }

  /** What the dead one left must be safe as it is, not only once somebody has looked after it. */
  async function succeed(dead: MortalAgent, volume: string): Promise<MortalAgent> {
    deaths.push(/dies .*/.exec(dead.output)?.[0] ?? "dies of something else");
    if (EVERY_ACT) process.stderr.write(`${deaths.at(-1)}\n`);
    expectNoMountTwice();
    if (mountsBelow(world.root).some((path) => path.includes("csi")))
      expect(await volumesInUse(), dead.output).toContain(volume);
    return startMortal();
  }

  function expectNoMountTwice(): void {
    const mounts = mountsBelow(world.root);
    expect(mounts).toEqual([...new Set(mounts)]);
  }
});

/** Before and amid every act, or some of them spread over all. */
function killsOf(acts: number): { dieAt: number; amid: boolean }[] {
  const all = Array.from({ length: 2 * acts }, (_, n) => ({ dieAt: n >> 1, amid: n % 2 === 1 }));
  return EVERY_ACT ? all : all.filter((_, n) => n % Math.ceil(all.length / KILLS) === STRIDE_OFFSET);
}
