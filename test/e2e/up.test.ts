import { once } from "node:events";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { Running, scratch } from "./mooring.ts";
import { letGoOf, loopDevicesBelow, mountsBelow, shell } from "./up-world.ts";

const place = scratch();
afterAll(place.remove);

const started: Running[] = [];
afterEach(async () => {
  for (const process of started.splice(0)) {
    process.kill("SIGKILL");
    await process.exit();
  }
  letGoOf(place.path);
});

function start(...args: string[]): Running {
  const process = new Running(...args);
  started.push(process);
  return process;
}

function up(name: string, ...flags: string[]): Running {
  return start("up", "--data-dir", join(place.path, name), "--listen", "127.0.0.1:0", ...flags);
}

async function portOf(process: Running): Promise<number> {
  const [, port] = await process.says(/apiserver +ready.*https:\/\/127\.0\.0\.1:(\d+)/);
  return Number(port);
}

describe("mooring up", () => {
  test("says what becomes ready and how to use it, then ends cleanly when asked", async () => {
    const process = up("ready");
    await process.says(/Press Ctrl-C/);

    const parts = ["data directory", "certificates", "apiserver", "client", "storage", "controller"];
    for (const component of [...parts, "attacher", "companions", "node-1", "node-2", "node-3"]) {
      expect(process.stdout).toMatch(new RegExp(`^${component} +ready +\\d+ ms  \\S`, "m"));
    }
    const data = join(place.path, "ready");
    expect(process.stdout).toContain(`kubeconfig  ${data}/admin.kubeconfig`);
    expect(process.stdout).toContain("the next start finds them");
    for (const file of [
      "admin.kubeconfig",
      "pki/ca.key",
      "pki/apiserver.key",
      "pki/admin.key",
      "mooring.log",
    ]) {
      expect([file, statSync(join(data, file)).mode & 0o777]).toEqual([file, 0o600]);
    }
    expect(statSync(data).mode & 0o777).toBe(0o700);

    process.kill("SIGTERM");

    expect(await process.exit()).toEqual({ code: 0, signal: null });
    expect(process.stdout).toMatch(/stopping \(SIGTERM\)\nstopped\n$/);
    expect(process.stderr).toBe("");
    expect(mountsBelow(data)).toEqual([]);
  });

  test("the three commands it prints work word for word", async () => {
    const process = up("commands");
    await process.says(/Press Ctrl-C/);

    const [, text = ""] = /Try next:\n((?: {2}.*\n)+)/.exec(process.stdout) ?? [];
    const commands = text.trim().split(/\n +/);
    expect(commands).toHaveLength(3);
    const [apply = "", get = "", why = ""] = commands;

    expect(shell(apply)).toMatchObject({
      code: 0,
      output: expect.stringContaining("pod/web created") as string,
    });
    expect(kubectl("commands", "wait --for=condition=Ready pod/web --timeout=30s").code).toBe(0);
    const volumes = shell(get);
    expect([volumes.code, volumes.output]).toEqual([
      0,
      expect.stringMatching(/web +data +pvc-\S+ +node-\d +mounted/),
    ]);
    expect(shell(why)).toMatchObject({
      code: 0,
      output: expect.stringContaining("Pod default/web is healthy") as string,
    });
  });

  test("what a pod's volume holds on node-1 is read on node-2 after a move, and after kill -9, and after Ctrl-C", async () => {
    const first = up("moves");
    await first.says(/Press Ctrl-C/);
    expect(kubectl("moves", "apply -f -", claim + pod("here", "node-1")).code).toBe(0);
    expect(kubectl("moves", "wait --for=condition=Ready pod/here --timeout=30s").output).toContain("met");
    writeFileSync(join(volumeOn("moves", "node-1"), "note"), "written on node-1");

    kubectl("moves", "delete pod here");
    kubectl("moves", "apply -f -", pod("there", "node-2"));
    expect(kubectl("moves", "wait --for=condition=Ready pod/there --timeout=30s").output).toContain("met");
    expect(readFileSync(join(volumeOn("moves", "node-2"), "note"), "utf8")).toBe("written on node-1");
    expect(volumesOn("moves", "node-1")).toEqual([]);

    first.kill("SIGKILL");
    await first.exit();
    const second = up("moves");
    await second.says(/Press Ctrl-C/);
    expect(readFileSync(join(volumeOn("moves", "node-2"), "note"), "utf8")).toBe("written on node-1");

    second.kill("SIGINT");
    expect((await second.exit()).code).toBe(0);
    const data = join(place.path, "moves");
    expect([mountsBelow(data), loopDevicesBelow(data)]).toEqual([[], []]);

    const third = up("moves");
    await third.says(/Press Ctrl-C/);
    await vi.waitFor(() => volumeOn("moves", "node-2"), { timeout: 30_000, interval: 50 });
    expect(readFileSync(join(volumeOn("moves", "node-2"), "note"), "utf8")).toBe("written on node-1");
  });

  test("--once where nothing can be mounted: nodes are simulated, and the story is told all the same", async () => {
    const process = up("simulated", "--node-mode", "simulated", "--once", "examples/set-of-pods.yaml");

    expect((await process.exit()).code).toBe(0);
    expect(process.stdout).toMatch(/node-1 +ready.*simulated: asked for by --node-mode/);
    expect(process.stdout).toMatch(/pod\/db-2 +\d+ ms {2}ready on node-\d/);
  });

  test("--once of what does not become ready ends with 1 and says why, the call that fails by name", async () => {
    const fault = ["--faults", "NodeStageVolume=error:13", "--timeout", "6s"];
    const process = up("late", "--nodes", "1", "--once", "examples/claim-and-pod.yaml", ...fault);

    expect((await process.exit()).code).toBe(1);
    const [, answer = ""] = process.stdout.split("pod/web is not ready (Pending)\n");
    expect(answer.replace(/\s+/g, " ")).toMatch(
      /^Pod default\/web waits: .*NodeStageVolume.*an error on purpose/,
    );
    expect(answer).not.toContain("-o wide");
    expect(Math.max(...answer.split("\n").map(({ length }) => length))).toBeLessThanOrEqual(80);
    expect(mountsBelow(join(place.path, "late"))).toEqual([]);
  });

  test("--once with a file that holds a mistake starts nothing and names the place", async () => {
    const file = join(place.path, "mistake.yaml");
    writeFileSync(file, "apiVersion: v1\nkind: Pod\nmetadata: {}\n");
    const process = up("mistake", "--once", file);

    expect((await process.exit()).code).toBe(1);
    expect(process.stderr).toBe(
      `mooring: ${file}, document 1 (line 1): metadata.name of this Pod is missing; a generated name could not be waited for\n`,
    );
    expect(existsSync(join(place.path, "mistake"))).toBe(false);
  });

  test("Ctrl-C ends it cleanly too, watches and all", async () => {
    const process = up("interrupted");
    const port = await portOf(process);
    await process.says(/Press Ctrl-C/);
    const watch = request({ ...adminTls("interrupted"), port, path: "/api/v1/pods?watch=true" }).end();
    const [response] = (await once(watch, "response")) as [NodeJS.ReadableStream];
    const ended = once(response.resume(), "end");

    process.kill("SIGINT");

    await ended;
    expect((await process.exit()).code).toBe(0);
  });

  test("a reader that leaves the pipe stops it as Ctrl-C does, without a stack trace", () => {
    const data = join(place.path, "piped");
    const up = `bin/mooring up --data-dir ${data} --listen 127.0.0.1:0 --nodes 1`;

    const { output } = shell(`{ ${up}; echo "code $?" >&2; } | sed '/^node-1 *ready/q'`);

    expect(output).toMatch(/^node-1 +ready .*\ncode 0\n$/m);
    expect(readFileSync(join(data, "mooring.log"), "utf8")).toMatch(/"message":"stopped"/);
    expect([mountsBelow(data), loopDevicesBelow(data)]).toEqual([[], []]);
  });

  test("a second one on the same directory is refused and names the first; the first goes on", async () => {
    const first = up("twice");
    await first.says(/Press Ctrl-C/);

    const second = up("twice");

    expect((await second.exit()).code).toBe(1);
    expect(second.stderr).toContain(`is used by process ${first.pid}`);
    expect(await get(await portOf(first), "/readyz")).toEqual({ status: 200, text: "ok" });
  });

  test("killed, it starts again with the same certificates", async () => {
    const first = up("killed");
    await first.says(/Press Ctrl-C/);
    const authority = readFileSync(join(place.path, "killed/pki/ca.crt"), "utf8");
    first.kill("SIGKILL");
    await first.exit();

    const second = up("killed");
    await second.says(/Press Ctrl-C/);

    expect(second.stdout).toMatch(/certificates +ready.*kept from before/);
    expect(readFileSync(join(place.path, "killed/pki/ca.crt"), "utf8")).toBe(authority);
  });

  test("a port that is taken is named, with the flag to change it", async () => {
    const holder = createServer().listen(0, "127.0.0.1");
    await once(holder, "listening");
    const { port } = holder.address() as AddressInfo;

    const process = start("up", "--data-dir", join(place.path, "taken"), "--listen", `127.0.0.1:${port}`);

    expect((await process.exit()).code).toBe(1);
    expect(process.stderr).toMatch(
      new RegExp(`^mooring: cannot listen on 127\\.0\\.0\\.1:${port}: .*--listen`),
    );
    holder.close();
  });

  test("strangers may ask for health and nothing else", async () => {
    const process = up("strangers");
    const port = await portOf(process);

    expect(await get(port, "/healthz")).toEqual({ status: 200, text: "ok" });
    const refused = await get(port, "/api/v1/secrets");
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([
      403,
      { kind: "Status", reason: "Forbidden" },
    ]);
  });
});

describe("mooring apiserver", () => {
  test("logs JSON to stderr, nothing to stdout, and serves metrics to its administrator", async () => {
    const data = join(place.path, "apiserver");
    const process = start("apiserver", "--data-dir", data, "--listen", "127.0.0.1:0");
    const [, port] = await process.says(/"message":"serving"|"url":"https:\/\/127\.0\.0\.1:(\d+)"/);
    await process.says(/"message":"serving"/);

    const metrics = await get(Number(port), "/metrics", adminTls("apiserver"));

    expect(metrics.status).toBe(200);
    expect(metrics.text).toContain("# TYPE apiserver_request_total counter");
    process.kill("SIGTERM");
    expect((await process.exit()).code).toBe(0);
    expect(process.stdout).toBe("");
    const lines = process.stderr.trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual([
      "ready",
      "ready",
      "ready",
      "ready",
      "serving",
      "stopping",
      "stopped",
    ]);
  });
});

function kubectl(name: string, command: string, input = "") {
  const args = ["--kubeconfig", join(place.path, name, "admin.kubeconfig"), ...command.split(" ")];
  const { status, stdout, stderr } = spawnSync("kubectl", args, { encoding: "utf8", input });
  return { code: status, output: stdout + stderr };
}

/** The folders that pods of a node have mounted volumes of the driver at. */
function volumesOn(name: string, node: string): readonly string[] {
  const folder = join(place.path, name, "nodes", node, "pods");
  return mountsBelow(folder).filter((path) => path.includes("kubernetes.io~csi"));
}

function volumeOn(name: string, node: string): string {
  const [path] = volumesOn(name, node);
  if (path === undefined) throw new Error(`nothing is mounted on ${node}`);
  return path;
}

const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: data }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 64Mi } } }
`;

function pod(name: string, node: string): string {
  return `
---
apiVersion: v1
kind: Pod
metadata: { name: ${name} }
spec:
  nodeSelector: { kubernetes.io/hostname: ${node} }
  containers: [{ name: main, image: none, volumeMounts: [{ name: data, mountPath: /data }] }]
  volumes: [{ name: data, persistentVolumeClaim: { claimName: data } }]
`;
}

interface ClientTls {
  readonly host: string;
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

function adminTls(name: string): ClientTls {
  const read = (file: string) => readFileSync(join(place.path, name, "pki", file), "utf8");
  return { host: "127.0.0.1", ca: read("ca.crt"), cert: read("admin.crt"), key: read("admin.key") };
}

/** Without a certificate unless one is given; whose server it is does not matter to these tests. */
async function get(
  port: number,
  path: string,
  tls?: ClientTls,
): Promise<{ status: number | undefined; text: string }> {
  const sent = request({
    host: "127.0.0.1",
    port,
    path,
    agent: false,
    ...(tls ?? { rejectUnauthorized: false }),
  }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return { status: response.statusCode, text: (await response.setEncoding("utf8").toArray()).join("") };
}
