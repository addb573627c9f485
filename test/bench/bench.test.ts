import { spawn } from "node:child_process";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { SyncResult } from "../../bench/informer/measure.ts";
import { judge, type Findings, type Large } from "../../bench/informer/report.ts";
import { startServer } from "../../bench/informer/server.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import { anonymous } from "../../src/kube/transport/access.ts";
import { createClient } from "../../src/kube/client/api-client.ts";
import { pods } from "../../src/kube/api/pod.ts";
import { volumeAttachments } from "../../src/kube/api/volume-attachment.ts";
import { createHttpTransport } from "../../src/kube/transport/http-transport.ts";
import { decodeWatch, endsInitialEvents } from "../../src/kube/informer/watch.ts";

const ROOT = join(import.meta.dirname, "..", "..");

describe("npm run bench", () => {
  test("the informer benchmark runs on tiny input and ends with its line of JSON", async () => {
    const { status, stdout, stderr } = await bench("informer", "--tiny");

    expect(status, stdout + stderr).toBe(0);
    const last: unknown = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
    expect(last).toMatchObject({
      bench: "informer",
      ok: true,
      tiny: true,
      ratio: expect.any(Number),
      heapRatio: expect.any(Number),
      getRatio: expect.any(Number),
      large: { nodes: 100, volumeAttachments: 1_000, heapMib: expect.any(Number) },
    });
  });

  test("the apiserver benchmark runs on tiny input, finds all it wrote, and says that it had no peer", async () => {
    const { status, stdout, stderr } = await bench("apiserver", "--tiny");

    expect(status, stdout + stderr).toBe(0);
    const lines = stdout.trim().split("\n");
    expect(lines).toContain("peer: left out, no --peer-apiserver URL --peer-token TOKEN");
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
      bench: "apiserver",
      ok: true,
      tiny: true,
      ratio: null,
      store: "lmdb",
      objects: 600,
      ours: { events: 200, writesPerSecond64: expect.any(Number), eventsPerSecond: expect.any(Number) },
      peer: null,
    });
  });

  test("the csi benchmark runs on tiny input, and the server's heap stays where it was", async () => {
    const { status, stdout, stderr } = await bench("csi", "--tiny");

    expect(status, stdout + stderr).toBe(0);
    expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toMatchObject({
      bench: "csi",
      ok: true,
      tiny: true,
      alone: { perSecond: expect.any(Number), p99Ms: expect.any(Number) },
      connections: { count: 100 },
    });
  });

  test("the attacher benchmark runs on tiny input and attaches everything", async () => {
    const { status, stdout, stderr } = await bench("attacher", "--tiny");

    expect(status, stdout + stderr).toBe(0);
    expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toMatchObject({
      bench: "attacher",
      ok: true,
      perSecond: expect.any(Number),
      ratio: expect.any(Number),
    });
  });

  test.skipIf(process.getuid?.() !== 0)(
    "the node benchmark runs on tiny input: every volume in use and published once, no config map torn",
    async () => {
      const { status, stdout, stderr } = await bench("node", "--tiny");

      expect(status, stdout + stderr).toBe(0);
      expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toMatchObject({
        bench: "node",
        ok: true,
        wrong: 0,
        ratio: expect.any(Number),
        tableRatio: expect.any(Number),
        content: { torn: 0, updates: expect.any(Number) },
        restart: { servedMs: expect.any(Number) },
        removal: { volumes: 24, childrenMax: expect.any(Number), rssMibMax: expect.any(Number) },
      });
    },
  );

  test("the attach-detach benchmark runs on tiny input, attaches everything, and sends no request too many", async () => {
    const { status, stdout, stderr } = await bench("attach-detach", "--tiny");

    expect(status, stdout + stderr).toBe(0);
    const lines = stdout.trim().split("\n");
    expect(lines).toContain("peer: left out, no --peer-controller BINARY");
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
      bench: "attach-detach",
      ok: true,
      tiny: true,
      ratio: null,
      eventRatio: expect.any(Number),
      scale: { middle: { size: 200, result: { placements: 200, reaction: { p99Ms: expect.any(Number) } } } },
      large: { size: 500, result: { placements: 500 } },
      cluster: [
        {
          load: { pods: 6, nodes: 3 },
          ours: [
            {
              attach: { perSecond: expect.any(Number) },
              requests: {
                "create volumeattachments.storage.k8s.io": 1,
                "patch nodes": 2,
                "get nodes": 1,
                "delete volumeattachments.storage.k8s.io": 1,
              },
            },
          ],
        },
      ],
    });
  });

  test("a peer that is not on this machine is refused before anything is sent to it", async () => {
    const args = ["--peer-apiserver", "https://192.0.2.1:6443", "--peer-token", "none"];
    const { status, stdout } = await bench("apiserver", "--tiny", ...args);

    expect(status).toBe(1);
    expect(stdout).toContain("must be https on 127.0.0.1");
  });

  for (const args of [
    ["nothing-like-it"],
    [],
    ["informer", "--huge"],
    ["informer", "--peer-token", "x"],
    ["apiserver", "--huge"],
    ["attach-detach", "--peer-token", "x"],
  ]) {
    test(`bench ${args.join(" ")} is a misuse and lists what there is`, async () => {
      const { status, stdout, stderr } = await bench(...args);

      expect(status).toBe(2);
      expect(stdout).toBe("");
      expect(stderr).toContain("one of: informer");
    });
  }
});

describe("the server of the informer benchmark", () => {
  test("pages, the whole list and the streaming list are the same objects", async () => {
    const client = await served({ pods: 25, volumeAttachments: 10, nodes: 5 });

    const whole = await client.list(pods);
    const first = await client.list(pods, { limit: 10 });
    const second = await client.list(pods, { limit: 10, continue: first.metadata.continue });
    const third = await client.list(pods, { limit: 10, continue: second.metadata.continue });
    const streamed: unknown[] = [];
    const stream = await client.watch(volumeAttachments, { sendInitialEvents: true });
    for await (const events of decodeWatch(stream.body)) {
      streamed.push(...events.filter(({ type }) => type === "ADDED").map(({ object }) => object));
      if (events.some(endsInitialEvents)) break;
    }

    expect(whole.items).toHaveLength(25);
    expect([...first.items, ...second.items, ...third.items]).toEqual(whole.items);
    expect(third.metadata.continue).toBeUndefined();
    const attachments = await client.list(volumeAttachments);
    expect(streamed).toMatchObject(attachments.items);
  });

  test("an object is found by its name, and only by that", async () => {
    const client = await served({ pods: 25, volumeAttachments: 0, nodes: 5 });
    const { items } = await client.list(pods);
    const { name = "", namespace } = items[17]!.metadata;

    expect(await client.get(pods, { name, namespace })).toEqual({
      kind: "Pod",
      apiVersion: "v1",
      ...items[17],
    });
    await expect(client.get(pods, { name, namespace: "elsewhere" })).rejects.toThrow("NotFound");
  });
});

describe("the verdict", () => {
  const large: Large = {
    scale: { pods: 0, nodes: 1, volumeAttachments: 1 },
    result: sync({ objects: 2 }),
  };

  test("a run that keeps every promise misses none, at the very limit too", () => {
    expect(judge(findings(), large)).toEqual([]);
  });

  for (const [what, slower, message] of [
    ["sync", findings({ ours: sync({ ms: 501 }) }), "times as fast, not 2"],
    ["heap", findings({ ours: sync({ heapBytes: 26 }) }), "of their heap, not 0.25"],
    ["gets", findings({ oursGets: 49 }), "times their GETs a second, not 5"],
    ["objects", findings({ theirs: sync({ ms: 1_000, heapBytes: 100, objects: 1 }) }), "every object"],
    ["checksum", findings({ ours: sync({ checksum: 2 }) }), "not hold the same objects"],
  ] as const) {
    test(`a run that misses on ${what} says so`, () => {
      const missed = judge(slower, large);

      expect(missed).toHaveLength(1);
      expect(missed[0]?.message).toContain(message);
    });
  }

  test("a large run that died or lost objects is a miss", () => {
    const died: Large = { scale: large.scale, error: "ended with SIGABRT" };
    const short: Large = { scale: large.scale, result: sync({ objects: 1 }) };

    expect(judge(findings(), died)).toMatchObject([{ message: "the large run failed: ended with SIGABRT" }]);
    expect(judge(findings(), short)).toMatchObject([{ message: "the large run does not hold every object" }]);
  });
});

function sync(overrides: Partial<SyncResult> = {}): SyncResult {
  return {
    ms: 500,
    cpuMs: 1,
    heapBytes: 25,
    rssBytes: 1,
    rssPeakBytes: 1,
    objects: 2,
    checksum: 1,
    ...overrides,
  };
}

/** A run exactly at the limit of every promise. */
function findings({
  ours = sync(),
  theirs = sync({ ms: 1_000, heapBytes: 100 }),
  oursGets = 50,
}: { ours?: SyncResult; theirs?: SyncResult; oursGets?: number } = {}): Findings {
  return {
    scale: { pods: 1, volumeAttachments: 1, nodes: 1 },
    syncs: { ours: [ours], theirs: [theirs] },
    gets: { ours: [{ perSecond: oursGets, count: 1 }], theirs: [{ perSecond: 10, count: 1 }] },
    untrimmed: { ...sync(), checksum: 1 },
  };
}

async function served(scale: { pods: number; volumeAttachments: number; nodes: number }) {
  const server = await startServer(scale);
  const transport = createHttpTransport({
    server: server.served.server,
    tls: { ca: server.served.ca },
    credentials: anonymous,
    impersonation: {},
  });
  onTestFinished(async () => {
    await transport.close();
    server.stop();
  });
  return createClient({ transport, clock: createSystemClock(), random: createSeededRandom(1) });
}

/** As `npm run bench -- ...` starts it. */
function bench(...args: string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(ROOT, "scripts", "task.mjs"), "bench", ...args]);
    const output = { stdout: "", stderr: "" };
    child.stdout.on("data", (chunk: Buffer) => (output.stdout += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output.stderr += chunk.toString()));
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, ...output }));
  });
}
