import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { configMaps } from "../../src/kube/api/config-map.ts";
import { leases } from "../../src/kube/api/lease.ts";
import { nodes } from "../../src/kube/api/node.ts";
import {
  attach,
  attachmentOf,
  deletePod,
  detach,
  DRIVER,
  givenNode,
  givenPod,
  givenVolume,
  LEASE,
  lists,
  startWorld,
  useVolumes,
  type ControllerWorld,
} from "../e2e/controller-world.ts";
import { Running, scratch } from "../e2e/mooring.ts";

/** The time a volume has waited, over the death of the process that counted it: real processes, a real Lease, real clocks. */

const place = scratch();
const TIMERS = { namespace: "kube-system", name: "mooring-detach-timers" };
const FORCE_AFTER_S = 130;
let world: ControllerWorld;
const started: Running[] = [];

beforeAll(async () => {
  world = await startWorld(`${place.path}/data`);
  await givenNode(world, "node-a");
});

afterAll(async () => {
  for (const process of started) {
    process.kill("SIGKILL");
    await process.exit();
  }
  await world.stop();
  place.remove();
});

async function startController(): Promise<Running> {
  const policy = `driver=${DRIVER}:after=${FORCE_AFTER_S}s`;
  const times = ["--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s"];
  const running = new Running(
    ...["controller", "--kubeconfig", world.kubeconfig, "--http-endpoint", "127.0.0.1:0"],
    ...["--detach-policy", policy, ...times, "--leader-elect-retry-period=250ms"],
  );
  started.push(running);
  await running.says(/"message":"became leader"/);
  return running;
}

const noteOf = async () => {
  const { metadata } = await world.admin.client.get(leases, LEASE);
  const text = metadata.annotations?.["mooring.dev/note"];
  return text === undefined ? undefined : (JSON.parse(text) as { timers: string; waitedMs: number });
};

test("the ConfigMap is written once, the Lease follows, and the next leader goes on counting", async () => {
  const { client } = world.admin;
  const first = await startController();
  await givenVolume(world, "disk");
  await givenPod(world, "disk", "node-a");
  await attach(world, await attachmentOf(world, "disk"));
  await lists(world, "node-a", "disk", true);
  await useVolumes(world, "node-a", ["disk"]);
  const conditions = [{ type: "Ready", status: "Unknown" }];
  const value = { status: { conditions } };
  await client.patch(nodes, { name: "node-a" }, { type: "merge", value }, { subresource: "status" });
  await deletePod(world, "disk");
  const goneAtMs = Date.now();

  await sleep(70_000);
  const { resourceVersion } = (await client.get(configMaps, TIMERS)).metadata;
  const early = await noteOf();
  expect(early?.timers).toBe(resourceVersion);
  await sleep(30_000);
  const late = await noteOf();
  expect((await client.get(configMaps, TIMERS)).metadata.resourceVersion).toBe(resourceVersion);
  expect((late?.waitedMs ?? 0) - (early?.waitedMs ?? 0)).toBeGreaterThan(29_000);

  first.kill("SIGKILL");
  await first.exit();
  await startController();
  await detach(world, "disk");
  const tookS = (Date.now() - goneAtMs) / 1_000;
  expect(tookS).toBeGreaterThan(FORCE_AFTER_S);
  // What nobody led, and what the proof took; begun anew it would be 230 s.
  expect(tookS).toBeLessThan(FORCE_AFTER_S + 30);
  process.stdout.write(`forced ${tookS.toFixed(1)} s after the pod, of ${FORCE_AFTER_S}\n`);
}, 300_000);
