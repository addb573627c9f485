import { expect, test } from "vitest";
import { createLogger, type Logger } from "../../base/log.ts";
import { leases } from "../../kube/api/lease.ts";
import { nodes, type Node } from "../../kube/api/node.ts";
import type { TransportRequest } from "../../kube/transport/transport.ts";
import { Harness } from "../../sim/harness.ts";
import { createNodeHeartbeat, type NodeHeartbeat } from "./node-heartbeat.ts";

const FACTS = {
  nodeName: "node-1",
  hostIP: "127.0.0.2",
  os: "linux",
  arch: "amd64",
  cpus: 4,
  memoryBytes: 8_000_000_000,
  kubeletVersion: "v1.37.0-mooring",
  labels: { "topology.kubernetes.io/zone": "z1" },
};

async function given(): Promise<HeartbeatWorld> {
  const world = new HeartbeatWorld();
  await world.server.start();
  return world;
}

class HeartbeatWorld extends Harness {
  readonly lines: string[] = [];
  readonly inUse: { known: readonly string[] | undefined } = { known: [] };
  heartbeat: NodeHeartbeat | undefined;

  constructor() {
    super({ settleMs: 100 });
  }

  start(): void {
    const describe = ({ method, path }: TransportRequest) =>
      method === "GET" ? undefined : `${method} ${path.split("?", 1)[0]}`;
    this.launch("heartbeat", describe, (context, signal) => {
      const volumesInUse = () => this.inUse.known;
      this.heartbeat = createNodeHeartbeat({ ...context, volumesInUse }, FACTS);
      return this.heartbeat.run(signal);
    });
  }

  protected override logOf(): Logger {
    return createLogger((level, message) => this.lines.push(`${level} ${message}`));
  }

  node(): Node | undefined {
    return this.read(nodes, { name: "node-1" });
  }

  ready(): string | undefined {
    const found = this.node()?.status?.conditions?.find(({ type }) => type === "Ready");
    return found && `${found.status} ${found.reason}`;
  }

  writes(): string[] {
    return this.transport.requests.splice(0).map(({ line }) => line);
  }
}

test("a node registers with what a kubelet says of itself", async () => {
  const world = await given();

  world.start();
  await world.settle();

  expect(world.heartbeat?.registered()).toBe(true);
  expect(world.node()).toMatchObject({
    metadata: {
      labels: {
        "kubernetes.io/hostname": "node-1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": "z1",
      },
      annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
    },
    status: {
      allocatable: { cpu: "4", memory: "8G", pods: "110" },
      addresses: [
        { type: "InternalIP", address: "127.0.0.2" },
        { type: "Hostname", address: "node-1" },
      ],
      nodeInfo: { operatingSystem: "linux", architecture: "amd64" },
    },
  });
  expect(world.ready()).toBe("True MooringReady");
});

test("its lease is renewed every 10 s, and nothing else is written while nothing changes", async () => {
  const world = await given();
  world.start();
  await world.settle();
  world.writes();

  await world.advance(60_000);

  const lease = "PATCH /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1";
  expect(world.writes()).toEqual(Array.from({ length: 6 }, () => lease));
  const { spec } = await world.client.get(leases, { namespace: "kube-node-lease", name: "node-1" });
  expect(spec).toMatchObject({ holderIdentity: "node-1", leaseDurationSeconds: 40 });
  expect(spec?.renewTime).toMatch(/^2026-01-01T00:01:00/);
});

test("the volumes that others list on it, and their conditions, stay", async () => {
  const world = await given();
  world.start();
  await world.settle();
  const conditions = [{ type: "Pressure", status: "True" }];
  const status = { volumesInUse: ["v"], volumesAttached: [{ name: "v", devicePath: "" }], conditions };
  const options = { subresource: "status" } as const;
  await world.client.patch(nodes, { name: "node-1" }, { type: "strategic", value: { status } }, options);

  await world.advance(400_000);

  expect(world.node()?.status).toMatchObject({ volumesInUse: ["v"], volumesAttached: [{ name: "v" }] });
  expect(
    world
      .node()
      ?.status?.conditions?.map(({ type }) => type)
      .sort(),
  ).toEqual(["Pressure", "Ready"]);
});

test("what somebody takes from it is put back at the next beat", async () => {
  const world = await given();
  world.start();
  await world.settle();

  const value = { metadata: { labels: { "kubernetes.io/os": null } } };
  await world.client.patch(nodes, { name: "node-1" }, { type: "merge", value });
  await world.advance(10_100);
  expect(world.node()?.metadata.labels).toMatchObject({ "kubernetes.io/os": "linux" });

  await world.client.delete(nodes, { name: "node-1" });
  await world.advance(10_100);
  expect(world.ready()).toBe("True MooringReady");
});

test("a node that was deleted registers with the volumes it has in use", async () => {
  const world = await given();
  world.start();
  await world.settle();
  expect(world.node()?.status?.volumesInUse).toBeUndefined();

  world.inUse.known = ["v", "w"];
  world.writes();
  await world.client.delete(nodes, { name: "node-1" });
  await world.advance(10_100);

  expect(world.node()?.status?.volumesInUse).toEqual(["v", "w"]);
  expect(world.writes().filter((line) => line.includes("/nodes/node-1"))).toEqual([]);
});

test("a node that registers before it knows what is mounted says so until it does", async () => {
  const world = await given();
  world.inUse.known = undefined;
  world.start();
  await world.advance(400_000);
  expect(world.ready()).toBe("True MooringVolumesUnread");

  world.inUse.known = [];
  await world.advance(10_100);

  expect(world.ready()).toBe("True MooringReady");
});

test("what was said of a node before its process started stays said while that finds out what is mounted", async () => {
  const world = await given();
  world.start();
  await world.settle();

  world.inUse.known = undefined;
  await world.advance(400_000);
  expect(world.ready()).toBe("True MooringReady");

  await world.client.delete(nodes, { name: "node-1" });
  await world.advance(10_100);
  expect(world.ready()).toBe("True MooringVolumesUnread");
});

test("a stop is said, and the object stays; the next start takes it up", async () => {
  const world = await given();
  world.start();
  await world.settle();
  const uid = world.node()?.metadata.uid;

  void world.program.stop();
  await world.settle();

  expect(world.ready()).toBe("False MooringStopped");
  expect(world.node()?.metadata.uid).toBe(uid);
});

test("a server that is away is told of at its return, with one line in the log", async () => {
  const world = await given();
  world.start();
  world.transport.cut();
  await world.advance(60_000);
  expect(world.heartbeat?.registered()).toBe(false);

  world.transport.mend();
  await world.advance(60_000);

  expect(world.ready()).toBe("True MooringReady");
  expect(world.lines.filter((line) => line.startsWith("warn"))).toHaveLength(1);
});
