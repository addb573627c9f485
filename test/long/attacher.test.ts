import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { csiNodes } from "../../src/kube/api/csi-node.ts";
import { leases } from "../../src/kube/api/lease.ts";
import { volumeAttachments } from "../../src/kube/api/volume-attachment.ts";
import { persistentVolumes } from "../../src/kube/api/persistent-volume.ts";
import { secrets } from "../../src/kube/api/secret.ts";
import { attacherKubeconfig, grantSecrets, SocketDriver } from "../e2e/attacher-world.ts";
import {
  deletePod,
  DRIVER,
  givenNode,
  givenPod,
  givenVolume,
  LEASE,
  lists,
  startWorld,
  type ControllerWorld,
} from "../e2e/controller-world.ts";
import { mooring, Running, scratch } from "../e2e/mooring.ts";

/** The attacher as it is deployed: beside a driver, with the rights of its manifests, over sockets. */

const place = scratch();
const socket = `${place.path}/csi.sock`;
const DRIVER_LEASE = { namespace: "kube-system", name: "external-attacher-leader-loop-example-com" };
let world: ControllerWorld;
let kubeconfig: string;
let driver: SocketDriver;
const started: Running[] = [];

beforeAll(async () => {
  world = await startWorld(`${place.path}/data`);
  kubeconfig = await attacherKubeconfig(world.admin, `${place.path}/data`);
  await givenNode(world, "node-a");
  const drivers = [{ name: DRIVER, nodeID: "machine-a" }];
  await world.admin.client.create(csiNodes, { metadata: { name: "node-a" }, spec: { drivers } });
});

afterEach(async () => {
  for (const process of started.splice(0)) {
    process.kill("SIGKILL");
    await process.exit();
  }
  await driver.stop();
  for (const lease of [LEASE, DRIVER_LEASE]) {
    await world.admin.client.delete(leases, lease).catch(() => undefined);
  }
});

afterAll(async () => {
  await world.stop();
  place.remove();
});

function start(command: string, ...flags: string[]): Running {
  const process = new Running(command, ...flags);
  started.push(process);
  return process;
}

const attacher = (...flags: string[]) =>
  start("attacher", "--kubeconfig", kubeconfig, "-csi-address", socket, ...flags);

async function page(url: string): Promise<{ status: number; body: string }> {
  const [response] = (await once(request(url).end(), "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of response.setEncoding("utf8")) body += chunk as string;
  return { status: response.statusCode ?? 0, body };
}

const worksOn = (process: Running) => process.says(/"message":"attacher works"/);

test("a pod gets its volume and gives it back: controller, attacher and driver over sockets", async () => {
  driver = new SocketDriver(socket);
  await driver.start();
  start("controller", "--kubeconfig", world.kubeconfig, "--http-endpoint", "127.0.0.1:0");
  const process = attacher(
    "--leader-election",
    "--leader-election-namespace=kube-system",
    "--http-endpoint=127.0.0.1:0",
  );
  await givenVolume(world, "data");
  await givenPod(world, "data", "node-a");

  await lists(world, "node-a", "data", true);
  const [attachment] = await world.attachments.until((all) => all.length === 1 && all);
  expect(attachment!.status).toEqual({ attached: true, attachmentMetadata: { devicePath: "/dev/loop7" } });
  expect(attachment!.metadata.finalizers).toEqual(["external-attacher/loop-example-com"]);
  expect(driver.published.get("handle-data")).toBe("machine-a");

  const [, url] = await process.says(/"url":"([^"]+)"/);
  expect(await page(`${url}/healthz/leader-election`)).toEqual({ status: 200, body: "ok" });
  const metrics = (await page(`${url}/metrics`)).body;
  expect(metrics).toMatch(
    /csi_sidecar_operations_seconds_count\{driver_name="loop.example.com",method_name="\/csi.v1.Controller\/ControllerPublishVolume",grpc_status_code="OK"\} 1/,
  );
  expect(metrics).toMatch(/workqueue_adds_total\{name="csi-attacher-va"\}/);
  const { active, drivers, attachments } = JSON.parse((await page(`${url}/debug/attachments`)).body) as {
    [name: string]: unknown;
  };
  expect(active).toBe(true);
  expect(drivers).toMatchObject([{ driver: DRIVER, active: true }]);
  expect(attachments).toMatchObject([{ persistentVolume: "data", node: "node-a", state: "attached" }]);
  expect((await page(`${url}/debug/attachments?nonsense=1`)).status).toBe(400);

  await deletePod(world, "data");
  await world.attachments.until((all) => all.length === 0);
  expect(driver.published.size).toBe(0);

  process.kill("SIGTERM");
  expect(await process.exit()).toEqual({ code: 0, signal: null });
});

test("a secret reaches the driver and nobody else; asked to end, it finishes the publish under way", async () => {
  driver = new SocketDriver(socket);
  await driver.start();
  const { client } = world.admin;
  await grantSecrets(world.admin, "default");
  const ref = { namespace: "default", name: "credentials" };
  const password = (value: string) => ({ password: Buffer.from(value).toString("base64") });
  await client.create(secrets, { metadata: ref, data: password("wrong horse") });
  await client.create(persistentVolumes, {
    metadata: { name: "locked" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      csi: { driver: DRIVER, volumeHandle: "locked", controllerPublishSecretRef: ref },
    },
  });
  const first = attacher("-v=5", "--logging-format=text", "--max-grpc-log-length=20");
  const source = { persistentVolumeName: "locked" };
  const spec = { attacher: DRIVER, nodeName: "node-a", source };
  await client.create(volumeAttachments, { metadata: { name: "locked" }, spec });

  const [refused] = await world.attachments.until(
    (all) => all.some(({ status }) => status?.attachError) && all,
  );
  expect(refused!.status!.attachError!.message).toBe(
    "rpc error: code = Unauthenticated desc = no such user: ***stripped***",
  );
  let answer: () => void = () => undefined;
  driver.answering = new Promise((resolve) => (answer = resolve));
  const value = { data: password("correct horse") };
  await client.patch(secrets, ref, { type: "merge", value });
  await first.says(/(csi request [^\n]*ControllerPublishVolume[^]*){2}/);
  first.kill("SIGTERM");
  await first.says(/INFO takes no new work .*underWay=1/);
  answer();

  expect(await first.exit()).toEqual({ code: 0, signal: null });
  expect(driver.publishes.map(({ secrets }) => secrets["password"])).toEqual([
    "wrong horse",
    "correct horse",
  ]);
  const [attached] = await world.attachments.until(
    (all) => all.some(({ status }) => status?.attached) && all,
  );
  expect(JSON.stringify(attached)).not.toMatch(/horse|d3Jvbmc/);
  expect(first.stderr).toMatch(/DEBUG csi request .*"secrets":"\[redacted\]"/);
  expect(first.stderr).toMatch(/csi answer .*\[cut: \d+ characters\]/);
  expect(first.stderr).not.toMatch(/horse/);

  attacher();
  await client.delete(volumeAttachments, { name: "locked" });
  await world.attachments.until((all) => all.length === 0);
  expect(driver.unpublishes.map(({ secrets }) => secrets)).toEqual([{ password: "correct horse" }]);
});

test("75, 72: it waits for the socket and for the driver to be ready; 76: a driver that goes away ends it", async () => {
  driver = new SocketDriver(socket);
  driver.ready = false;
  const process = attacher();
  await driver.start();
  await process.says(/"message":"waiting for the driver to be ready"/);

  driver.ready = true;
  await worksOn(process);
  await driver.stop();

  expect(await process.exit()).toMatchObject({ code: 1 });
  expect(process.stderr).toContain("Lost connection to CSI driver, exiting");
});

test("80: two addresses for its pages are refused before anything starts", () => {
  const flags = ["--csi-address", socket, "--http-endpoint=:1", "--metrics-address=:2"];

  const { code, stderr } = mooring("attacher", "--kubeconfig", kubeconfig, ...flags);

  // 2 and not upstream's 1: every command of ours says so of a command line that makes no sense.
  expect(code).toBe(2);
  expect(stderr).toContain("--http-endpoint and --metrics-address are both given");
});

test("two drivers in one process, each with its own volumes", async () => {
  driver = new SocketDriver(socket);
  const second = new SocketDriver(`${place.path}/second.sock`, "second.example.com");
  await Promise.all([driver.start(), second.start()]);
  const drivers = ["second.example.com", DRIVER].map((name) => ({ name, nodeID: `machine of ${name}` }));
  await world.admin.client.create(csiNodes, { metadata: { name: "node-b" }, spec: { drivers } });
  attacher("--csi-address", `${place.path}/second.sock`);

  for (const { name } of drivers) {
    const inlineVolumeSpec = {
      accessModes: ["ReadWriteOnce"],
      csi: { driver: name, volumeHandle: `volume of ${name}` },
    };
    const spec = { attacher: name, nodeName: "node-b", source: { inlineVolumeSpec } };
    await world.admin.client.create(volumeAttachments, { metadata: { name: `of-${name}` }, spec });
  }
  await world.attachments.until((all) => all.filter(({ status }) => status?.attached).length === 2);

  expect([...driver.published]).toEqual([[`volume of ${DRIVER}`, `machine of ${DRIVER}`]]);
  expect([...second.published.keys()]).toEqual(["volume of second.example.com"]);
  for (const { name } of drivers) await world.admin.client.delete(volumeAttachments, { name: `of-${name}` });
  await world.attachments.until((all) => all.length === 0);
  await second.stop();
});

test("77: of two replicas one acts; when it is gone the other does", async () => {
  driver = new SocketDriver(socket);
  await driver.start();
  const flags = [
    "--leader-election",
    "--leader-election-namespace=kube-system",
    "--leader-election-labels=team:storage",
    "--leader-election-lease-duration=3s",
    "--leader-election-renew-deadline=2s",
    "--leader-election-retry-period=250ms",
  ];
  const first = attacher(...flags);
  await worksOn(first);
  const second = attacher(...flags);
  await second.says(/"message":"leader observed"/);
  const lease = await world.admin.client.get(leases, DRIVER_LEASE);
  expect(lease.metadata.labels).toMatchObject({ team: "storage" });

  first.kill("SIGKILL");
  await worksOn(second);

  expect(second.stderr).toContain('"message":"became leader"');
});

test("78: a leader that cannot renew its lease ends, and says why", async () => {
  driver = new SocketDriver(socket);
  await driver.start();
  const process = attacher(
    "--leader-election",
    "--leader-election-namespace=kube-system",
    "--leader-election-lease-duration=3s",
    "--leader-election-renew-deadline=2s",
    "--leader-election-retry-period=250ms",
  );
  await worksOn(process);

  await world.crashServer(async () => {
    expect(await process.exit()).toMatchObject({ code: 1 });
  });

  expect(process.stderr).toContain(`lost the lease of driver ${DRIVER}`);
});
