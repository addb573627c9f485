import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { configMaps } from "../../src/kube/api/config-map.ts";
import { leases } from "../../src/kube/api/lease.ts";
import {
  attach,
  attachmentOf,
  connect,
  deletePod,
  detach,
  DRIVER,
  eventFor,
  givenNode,
  givenPod,
  givenVolume,
  LEASE,
  lists,
  startWorld,
  uniqueName,
  useVolumes,
  type ControllerWorld,
} from "./controller-world.ts";
import { mooring, Running, scratch } from "./mooring.ts";

/** The controller as it is deployed: a process of its own, with the rights of its manifests, over sockets. */

const place = scratch();
let world: ControllerWorld;
const started: Running[] = [];

beforeAll(async () => {
  world = await startWorld(`${place.path}/data`);
  for (const node of ["node-a", "node-b"]) await givenNode(world, node);
});

afterEach(async () => {
  for (const process of started.splice(0)) {
    process.kill("SIGKILL");
    process.kill("SIGCONT");
    await process.exit();
  }
  await world.admin.client.delete(leases, LEASE).catch(() => undefined);
});

afterAll(async () => {
  await world.stop();
  place.remove();
});

/** Times that let another process take over within 4 s; too short for a busy machine that has nothing to prove by it. */
const FAST = [
  "--leader-elect-lease-duration=3s",
  "--leader-elect-renew-deadline=2s",
  "--leader-elect-retry-period=250ms",
];

function start(...flags: string[]): Running {
  const process = new Running(
    "controller",
    ...["--kubeconfig", world.kubeconfig, "--http-endpoint", "127.0.0.1:0", ...flags],
  );
  started.push(process);
  return process;
}

async function urlOf(process: Running): Promise<string> {
  const [, url] = await process.says(/"url":"([^"]+)","message":"started"/);
  return url!;
}

const leads = (process: Running) => process.says(/"message":"became leader"/);

async function get(url: string, method = "GET"): Promise<{ status: number; type: string; body: string }> {
  const sent = request(url, { method }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of response.setEncoding("utf8")) body += chunk as string;
  return { status: response.statusCode ?? 0, type: response.headers["content-type"] ?? "", body };
}

describe("with the rights of its manifests and no others", () => {
  test("it leads, attaches for a pod, tells it, and detaches when the pod is gone and the node let go", async () => {
    await givenVolume(world, "life");
    const process = start();
    await leads(process);

    await givenPod(world, "life", "node-a");
    const attachment = await attachmentOf(world, "life");
    expect(attachment.spec).toMatchObject({ attacher: DRIVER, nodeName: "node-a" });
    await attach(world, attachment);
    await lists(world, "node-a", "life", true);
    expect(await eventFor(world, "life", "SuccessfulAttachVolume")).toMatchObject({
      type: "Normal",
      source: { component: "attachdetach-controller" },
    });

    await useVolumes(world, "node-a", ["life"]);
    await deletePod(world, "life");
    const url = await urlOf(process);
    const stuck = async () =>
      (JSON.parse((await get(`${url}/debug/volumes?waiting&pretty`)).body) as Report).volumes.find(
        ({ volume }) => volume === uniqueName("life"),
      );
    let report = await stuck();
    while (report?.waitingFor?.reason !== "still-mounted") report = await stuck();
    expect(report).toMatchObject({ node: "node-a", state: "attached", mounted: true, wantedBy: [] });

    await useVolumes(world, "node-a", []);
    await lists(world, "node-a", "life", false);
    await detach(world, "life");

    expect(process.stderr).not.toMatch(/forbidden/i);
  });

  test("it can keep its timers, and touch no other ConfigMap or Lease", async () => {
    const { client, transport } = await connect(world.kubeconfig);
    const timers = { namespace: "kube-system", name: "mooring-detach-timers" };

    const made = await client.create(configMaps, { metadata: timers, data: { timers: "{}" } });
    await client.update(configMaps, { ...made, data: { timers: "{} " } });

    expect((await client.get(configMaps, timers)).data).toEqual({ timers: "{} " });
    const others = await Promise.allSettled([
      client.get(configMaps, { namespace: "kube-system", name: "kube-root-ca.crt" }),
      client.get(configMaps, { namespace: "default", name: timers.name }),
      client.get(leases, { namespace: "kube-system", name: "kube-controller-manager" }),
      client.delete(configMaps, timers),
    ]);
    for (const other of others) {
      expect(other).toMatchObject({ status: "rejected", reason: { code: "Forbidden" } });
    }
    await transport.close();
  });
});

interface Report {
  readonly active: boolean;
  readonly identity: string;
  readonly holder: string;
  readonly volumes: readonly { volume: string; waitingFor?: { reason: string } }[];
}

describe("its pages", () => {
  test("say that it is alive, ready and leads, and what it measured", async () => {
    const process = start();
    await leads(process);
    const url = await urlOf(process);

    expect(await get(`${url}/livez?verbose`)).toMatchObject({
      status: 200,
      body: "[+]ping ok\n[+]leader-election ok\n[+]event-loop ok\nlivez check passed\n",
    });
    expect(await get(`${url}/readyz?verbose`)).toMatchObject({
      status: 200,
      body: "[+]ping ok\n[+]informer-sync ok\nreadyz check passed\n",
    });
    expect(await get(`${url}/healthz`)).toMatchObject({ status: 200, body: "ok" });
    const metrics = await get(`${url}/metrics`);
    expect(metrics.type).toContain("text/plain");
    expect(metrics.body).toContain(`leader_election_master_status{name="${LEASE.name}"} 1`);
    expect(metrics.body).toMatch(/^mooring_informer_objects\{resource="nodes"\} 2$/m);
    const report = await get(`${url}/debug/volumes`);
    expect(report.type).toBe("application/json");
    expect(JSON.parse(report.body)).toMatchObject({ active: true });
  });

  test("are for reading only, and end where they end", async () => {
    const process = start("--leader-elect=false");
    const url = await urlOf(process);

    expect(await get(`${url}/livez`, "HEAD")).toMatchObject({ status: 200, body: "" });
    expect((await get(`${url}/livez`, "POST")).status).toBe(405);
    expect((await get(`${url}/`)).status).toBe(404);
    expect((await get(`${url}/livez?${"x".repeat(10_000)}`)).status).toBe(431);
    expect((await get(`${url}/debug/volumes?limit=x`)).status).toBe(400);
  });

  test("on every interface: health is for probes from anywhere, volumes for this machine only", async () => {
    const process = start("--http-endpoint", ":0", "--leader-elect=false");
    const { port } = new URL(await urlOf(process));
    // This machine's own address, where it has one: a client that is not on loopback.
    const [outside] = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ family, internal }) => family === "IPv4" && !internal);

    expect((await get(`http://127.0.0.1:${port}/debug/volumes`)).status).toBe(200);
    if (outside === undefined) return;
    expect((await get(`http://${outside.address}:${port}/livez`)).status).toBe(200);
    expect((await get(`http://${outside.address}:${port}/debug/volumes`)).status).toBe(403);
  });
});

describe("killed", () => {
  test("between a VolumeAttachment and its answer, the next one finishes what it began", async () => {
    await givenVolume(world, "cut");
    const first = start(...FAST);
    await leads(first);
    await givenPod(world, "cut", "node-a");
    const attachment = await attachmentOf(world, "cut");

    first.kill("SIGKILL");
    await first.exit();
    await attach(world, attachment);
    const second = start(...FAST);
    await lists(world, "node-a", "cut", true);
    await eventFor(world, "cut", "SuccessfulAttachVolume");

    expect((await attachmentOf(world, "cut")).metadata.uid).toBe(attachment.metadata.uid);

    // The Node may be seconds old: what was attached before this leader began is let go on its word only.
    await useVolumes(world, "node-a", ["cut"]);
    await deletePod(world, "cut");
    await useVolumes(world, "node-a", []);
    await world.attachments.until((all) => all.some(({ metadata }) => metadata.deletionTimestamp));
    second.kill("SIGKILL");
    await second.exit();
    await lists(world, "node-a", "cut", false);
    start(...FAST);
    await detach(world, "cut");
  });

  test("while it leads, another replica takes over; what changed meanwhile is done", async () => {
    await givenVolume(world, "over");
    const one = start(...FAST);
    await leads(one);
    const two = start(...FAST);
    await two.says(/"holder":"[^"]+","message":"leader observed"/);
    expect(await get(`${await urlOf(two)}/readyz`)).toMatchObject({ status: 200 });
    const waiting = JSON.parse((await get(`${await urlOf(two)}/debug/volumes`)).body) as Report;
    expect(waiting).toMatchObject({ active: false, volumes: [] });
    expect(waiting.holder).not.toBe(waiting.identity);

    one.kill("SIGKILL");
    await givenPod(world, "over", "node-b");
    await leads(two);
    await attach(world, await attachmentOf(world, "over"));
    await lists(world, "node-b", "over", true);

    await deletePod(world, "over");
    await detach(world, "over");
    await lists(world, "node-b", "over", false);
  });
});

test("frozen until another leads, it stands again when it thaws, and leads once more in the same process", async () => {
  await givenVolume(world, "thaw");
  const one = start(...FAST);
  await leads(one);
  const two = start(...FAST);
  await two.says(/"message":"leader observed"/);

  one.kill("SIGSTOP");
  await leads(two);
  one.kill("SIGCONT");
  await one.says(/"message":"standing for election again"/);
  two.kill("SIGTERM");
  expect(await two.exit()).toMatchObject({ code: 0 });
  await one.says(/"message":"became leader"[^]*"message":"became leader"/);

  await givenPod(world, "thaw", "node-b");
  await attach(world, await attachmentOf(world, "thaw"));
  await lists(world, "node-b", "thaw", true);
  await deletePod(world, "thaw");
  await detach(world, "thaw");
  const metrics = (await get(`${await urlOf(one)}/metrics`)).body;
  expect(metrics).toContain(`leader_election_master_status{name="${LEASE.name}"} 1`);
});

test("the API server is killed and comes back: a lease was lost meanwhile, a pod's volume is attached all the same", async () => {
  await givenVolume(world, "back");
  const process = start(...FAST);
  await leads(process);

  await world.crashServer(() => process.says(/"message":"standing for election again"/));
  await process.says(/"message":"became leader"[^]*"message":"became leader"/);
  await givenPod(world, "back", "node-a");
  await attach(world, await attachmentOf(world, "back"));

  await lists(world, "node-a", "back", true);
  await deletePod(world, "back");
  await detach(world, "back");
});

test("volumes without CSI: iSCSI is listed at once, FlexVolume with the device its driver names", async () => {
  const drivers = `${place.path}/flex`;
  mkdirSync(`${drivers}/example~disk`, { recursive: true });
  writeFileSync(`${drivers}/example~disk/disk`, FLEX_DRIVER, { mode: 0o755 });
  start("--flex-volume-plugin-dir", drivers, "--leader-elect=false");
  const listed = (prefix: string) =>
    world.nodes.until((all) =>
      all.flatMap(({ status }) => status?.volumesAttached ?? []).find(({ name }) => name.startsWith(prefix)),
    );

  await givenPod(world, "iscsi", "node-b", {
    iscsi: { targetPortal: "192.0.2.1:3260", iqn: "iqn.2026-01.example:disk", lun: 0 },
  });
  await givenPod(world, "flex", "node-b", { flexVolume: { driver: "example/disk", options: { id: "7" } } });

  expect((await listed("kubernetes.io/iscsi/")).name).toContain("iqn.2026-01.example:disk:0");
  expect(await listed("example/disk/")).toMatchObject({ devicePath: "/dev/example" });
  for (const pod of ["iscsi", "flex"]) {
    await eventFor(world, pod, "SuccessfulAttachVolume");
    await deletePod(world, pod);
  }
  await world.nodes.until((all) => all.every(({ status }) => (status?.volumesAttached ?? []).length === 0));
});

const FLEX_DRIVER = `#!/bin/sh
case "$1" in
  attach) echo '{"status":"Success","device":"/dev/example"}' ;;
  *) echo '{"status":"Success","capabilities":{"attach":true}}' ;;
esac
`;

describe("asked to end", () => {
  test("it gives the lease back and exits with 0", async () => {
    const process = start();
    await leads(process);

    process.kill("SIGTERM");

    expect(await process.exit()).toEqual({ code: 0, signal: null });
    expect(process.stderr).toMatch(/"message":"stopped"/);
    expect((await world.admin.client.get(leases, LEASE)).spec?.holderIdentity).toBe("");
  });

  test("before it could reach anything, it ends all the same", async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const kubeconfig = `${place.path}/silent.kubeconfig`;
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        clusters: [{ name: "c", cluster: { server: `http://127.0.0.1:${port}` } }],
        contexts: [{ name: "c", context: { cluster: "c", user: "" } }],
        "current-context": "c",
      }),
    );
    const process = new Running("controller", "--kubeconfig", kubeconfig, "--http-endpoint", "127.0.0.1:0");
    started.push(process);
    const url = await urlOf(process);
    expect(await get(`${url}/livez`)).toMatchObject({ status: 200 });
    expect(await get(`${url}/readyz`)).toMatchObject({
      status: 500,
      body: expect.stringContaining("[-]informer-sync failed: not complete yet: pods, nodes, claims"),
    });

    process.kill("SIGTERM");

    expect((await process.exit()).code).toBe(0);
    silent.close();
  });
});

describe("a start that cannot work says why", () => {
  test("misuse is 2", () => {
    const { code, stderr } = mooring("controller", "--attach-detach-reconcile-sync-period", "500ms");

    expect(code).toBe(2);
    expect(stderr).toMatch(/--attach-detach-reconcile-sync-period <duration>.*at least 1s/);
  });

  test("a kubeconfig that is not there, and a missing one outside of a pod, are 1", () => {
    const gone = mooring("controller", "--kubeconfig", `${place.path}/gone`);
    const none = mooring("controller");

    expect([gone.code, none.code]).toEqual([1, 1]);
    expect(gone.stderr).toContain(`${place.path}/gone`);
    expect(none.stderr).toMatch(/^mooring: .*--kubeconfig FILE$/m);
  });

  test("an address that is taken is 1 and names the flag", async () => {
    const holder = createServer().listen(0, "127.0.0.1");
    await once(holder, "listening");
    const { port } = holder.address() as AddressInfo;

    const process = start("--http-endpoint", `127.0.0.1:${port}`);

    expect((await process.exit()).code).toBe(1);
    expect(process.stderr).toMatch(
      new RegExp(`^mooring: cannot listen on 127\\.0\\.0\\.1:${port}: .*--http-endpoint HOST:PORT`, "m"),
    );
    holder.close();
  });
});
