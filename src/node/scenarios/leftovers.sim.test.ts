import { expect, test } from "vitest";
import { nodes } from "../../kube/api/node.ts";
import { pods } from "../../kube/api/pod.ts";
import type { Transport } from "../../kube/transport/transport.ts";
import { createFaultyNodeHost } from "../../sim/node-host-faults.ts";
import { given, NODE, NODE_ROOT, type NodeWorld } from "../../sim/node-world.ts";

/**
 * What is left of a pod that is gone goes as soon as what kept it is over, by the event that says so or by a look within
 * seconds; the audit every five minutes finds nothing to do. What could be data stays, however long.
 */

const SECONDS_MS = 12_000;
const GONE = "00000000-0000-4000-8000-000000000001";

const directoryOf = (uid: string) => `${NODE_ROOT}/pods/${uid}`;
const isThere = async (world: NodeWorld, path: string) =>
  (await world.machine.files.stat(path)) !== undefined;

async function setPhase(world: NodeWorld, name: string, phase: string): Promise<void> {
  const patch = { type: "merge", value: { status: { phase } } } as const;
  await world.client.patch(pods, { namespace: "default", name }, patch, { subresource: "status" });
}

test("a pod that ended, and is deleted minutes later: its directory goes with the object", async () => {
  const world = await given({ pods: { job: { uses: ["v"] } } });
  const directory = directoryOf(world.uidOf("job"));
  await setPhase(world, "job", "Succeeded");
  await world.runFor(60_000);
  expect(world.takeCalls().slice(-2)).toEqual(["unpublish v job", "unstage v"]);
  expect(await isThere(world, directory)).toBe(true);

  await world.removePod("job");
  await world.runFor(SECONDS_MS);

  expect(await isThere(world, directory)).toBe(false);
});

test("a pod that was ending when the agent first saw it: its directory goes with the object", async () => {
  const world = await given({ pods: {} });
  await world.startPod("job", { inline: [{ name: "e", emptyDir: {} }], spec: {} });
  await world.settle();
  await world.stop();
  const uid = world.uidOf("job");
  await world.machine.files.makeDirectories(`${directoryOf(uid)}/volumes`, 0o750);
  await setPhase(world, "job", "Failed");
  world.start();
  await world.runFor(5_000);

  await world.removePod("job");
  await world.runFor(SECONDS_MS);

  expect(await isThere(world, directoryOf(uid))).toBe(false);
});

test("a pod that goes while the node's status is not known yet: its directory goes once it is", async () => {
  const world = await given({ pods: { web: { uses: ["v"] } } });
  const uid = world.uidOf("web");
  await world.stop();
  await world.client.delete(nodes, { name: NODE });
  await world.machine.files.makeDirectories(`${directoryOf(GONE)}/volumes`, 0o750);
  world.start();
  await world.settle();
  await world.removePod("web");
  await world.runFor(60_000);

  await world.createNode(NODE);
  await world.runFor(SECONDS_MS);

  expect(await isThere(world, directoryOf(uid))).toBe(false);
  expect(await isThere(world, directoryOf(GONE))).toBe(false);
});

for (const [what, keep, release] of [
  [
    "somebody's mount",
    async (world: NodeWorld, path: string) =>
      world.machine.mounts.mount({ source: "tmpfs", target: path, type: "tmpfs", options: [] }),
    async (world: NodeWorld, path: string) => world.machine.mounts.unmount(path),
  ],
  [
    "somebody's file",
    async (world: NodeWorld, path: string) =>
      world.machine.files.writeFile(`${path}/data`, Buffer.from("x"), 0o600),
    async (world: NodeWorld, path: string) => world.machine.files.removeFile(`${path}/data`),
  ],
] as const)
  test(`${what} in the directory of a pod that is gone: it stays for hours, and goes seconds after that is gone`, async () => {
    const world = await given({ started: false });
    const path = `${directoryOf(GONE)}/volumes/kubernetes.io~empty-dir/v`;
    await world.machine.files.makeDirectories(path, 0o750);
    await keep(world, path);
    world.start();
    await world.runFor(3 * 3_600_000);
    expect(await isThere(world, path)).toBe(true);
    const said = world.log.filter(({ message }) => message === "directory of a pod that is gone is kept");
    expect(said).toHaveLength(1);

    await release(world, path);
    await world.runFor(70_000);

    expect(await isThere(world, directoryOf(GONE))).toBe(false);
  });

test("a process that has something of a pod that is gone: its directory goes seconds after the process", async () => {
  const world = await given({ started: false });
  await world.machine.files.makeDirectories(`${directoryOf(GONE)}/volumes`, 0o750);
  const pid = world.machine.startProcess({ podUid: GONE });
  world.start();
  await world.runFor(60_000);
  expect(await isThere(world, directoryOf(GONE))).toBe(true);

  world.machine.endProcess(pid);
  await world.runFor(SECONDS_MS);

  expect(await isThere(world, directoryOf(GONE))).toBe(false);
});

/** A kubelet makes the directory of a new pod, and the agent's watch of pods may be behind. */
test("a pod that the agent hears of while its directory is looked at keeps what was mounted meanwhile", async () => {
  const world = await given({ started: false, builtIn: true });
  const host = createFaultyNodeHost(world.machine, { clock: world.clock });
  const pods = createLaggingPods(world);
  world.start({ host, wrapTransport: pods.wrap });
  await world.runFor(1_000);
  pods.isHeld = true;
  await world.startPod("web", { inline: [{ name: "e", emptyDir: {} }] });
  const directory = directoryOf(world.uidOf("web"));
  await world.machine.files.makeDirectories(`${directory}/volumes`, 0o750);
  // The audit, within six minutes, asks whose it is.
  host.delay("processes.scan", { ms: 120_000 });
  await world.runFor(365_000);
  pods.isHeld = false;
  await world.runFor(10_000);
  const scratch = `${directory}/volumes/kubernetes.io~empty-dir/e`;
  expect(await isThere(world, scratch)).toBe(true);

  await world.runFor(120_000);

  expect(await isThere(world, scratch)).toBe(true);
});

function createLaggingPods(world: NodeWorld) {
  const lagging = {
    isHeld: false,
    wrap: (inner: Transport): Transport => ({
      request: (request) => inner.request(request),
      async stream(request) {
        const opened = await inner.stream(request);
        return request.path.includes("/pods?") ? { ...opened, body: held(opened.body) } : opened;
      },
      close: () => inner.close(),
    }),
  };
  async function* held(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      while (lagging.isHeld) await world.clock.sleep(10);
      yield chunk;
    }
  }
  return lagging;
}

test("a mount that nothing accounts for keeps the list as it was, and no longer than seconds after it is gone", async () => {
  const world = await given({ pods: { web: { uses: ["v"] } } });
  await world.stop();
  const path = `${NODE_ROOT}/plugins/kubernetes.io/csi/other/${"a".repeat(64)}/globalmount`;
  await world.machine.files.makeDirectories(path, 0o750);
  await world.machine.mounts.mount({ source: "tmpfs", target: path, type: "tmpfs", options: [] });
  await world.removePod("web");
  world.start();
  await world.runFor(60_000);
  expect(world.inUse()).toEqual(["v"]);

  await world.machine.mounts.unmount(path);
  await world.runFor(SECONDS_MS);

  expect(world.inUse()).toEqual([]);
});

test("a stray that cannot be looked at stays, holds no other up, and is not told of every ten seconds", async () => {
  const world = await given({ started: false });
  const [stuck, other] = ["a", "b"].map((name) => `${directoryOf(GONE)}/volumes/example.com~x/${name}`) as [
    string,
    string,
  ];
  for (const path of [stuck, other]) {
    await world.machine.files.makeDirectories(path, 0o750);
    await world.machine.files.writeFile(`${path}/data`, Buffer.from("x"), 0o600);
  }
  const host = createFaultyNodeHost(world.machine, { clock: world.clock });
  host.fail("files.stat", { code: "TimedOut", path: stuck, times: Infinity });
  world.start({ host });
  await world.runFor(60_000);
  expect(world.manager.report().strays).toHaveLength(2);

  await world.machine.files.removeTree(other);
  await world.runFor(3_600_000);

  expect(world.manager.report().strays).toEqual([stuck]);
  expect(world.log.filter(({ message }) => message === "audit not finished").length).toBeLessThan(2);
});

test("an agent that is asked to stop while it looks whose a directory is does not wait for that", async () => {
  const world = await given({ started: false });
  await world.machine.files.makeDirectories(`${directoryOf(GONE)}/volumes`, 0o750);
  const host = createFaultyNodeHost(world.machine, { clock: world.clock });
  host.delay("processes.scan", { ms: 60_000 });
  world.start({ host });
  await world.runFor(2_000);

  await world.stop();
  await world.runFor(120_000);

  expect(await isThere(world, directoryOf(GONE))).toBe(true);
}, 5_000);
