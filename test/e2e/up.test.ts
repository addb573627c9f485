import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Running, scratch } from "./mooring.ts";

const place = scratch();
afterAll(place.remove);

const started: Running[] = [];
afterEach(async () => {
  for (const process of started.splice(0)) {
    process.kill("SIGKILL");
    await process.exit();
  }
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

    for (const component of ["data directory", "certificates", "apiserver", "client"]) {
      expect(process.stdout).toMatch(new RegExp(`^${component} +ready +\\d+ ms  \\S`, "m"));
    }
    const data = join(place.path, "ready");
    expect(process.stdout).toContain(`kubeconfig  ${data}/admin.kubeconfig`);
    expect(process.stdout).toContain(`kubectl --kubeconfig ${data}/admin.kubeconfig get nodes`);
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

const kubectlIsHere = spawnSync("kubectl", ["version", "--client"]).status === 0;
// eslint-disable-next-line no-console -- the task that runs all tests looks for this line
if (!kubectlIsHere) console.log("left out: kubectl checks: no kubectl on this machine");

describe.runIf(kubectlIsHere)("kubectl", () => {
  let server: Running;
  let base: string[];
  beforeAll(async () => {
    const data = join(place.path, "kubectl");
    server = new Running("up", "--data-dir", data, "--listen", "127.0.0.1:0");
    await server.says(/Press Ctrl-C/);
    base = ["--kubeconfig", join(data, "admin.kubeconfig"), "--cache-dir", join(place.path, "kubectl-cache")];
  });
  afterAll(async () => {
    server.kill("SIGTERM");
    await server.exit();
  });

  function kubectl(...args: string[]): string {
    const { status, stdout, stderr } = spawnSync("kubectl", [...base, ...args], {
      encoding: "utf8",
      timeout: 30_000,
    });
    if (status !== 0) throw new Error(`kubectl ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  function manifest(name: string, ...objects: object[]): string {
    const file = join(place.path, `${name}.json`);
    writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
    return file;
  }

  test("lists the namespaces every cluster has", () => {
    expect(kubectl("get", "namespaces", "-o", "name").trim().split("\n")).toEqual([
      "namespace/default",
      "namespace/kube-node-lease",
      "namespace/kube-public",
      "namespace/kube-system",
    ]);
  });

  test("creates, reads, changes and deletes", () => {
    const file = manifest(
      "objects",
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data: { k: "1" } },
      { apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "s" }, provisioner: "x.io" },
    );

    kubectl("create", "-f", file); // a List, which kubectl validates by the old document
    kubectl("patch", "configmap", "a", "--type=merge", "-p", '{"data":{"k":"2"}}');
    kubectl("label", "configmap", "a", "x=y");

    expect(kubectl("get", "configmap", "a", "-o", "jsonpath={.data.k} {.metadata.labels.x}")).toBe("2 y");
    expect(kubectl("get", "sc", "s", "-o", "jsonpath={.reclaimPolicy}")).toBe("Delete");
    expect(kubectl("delete", "-f", file)).toMatch(/configmap "a" deleted.*\n.*storageclass.* "s" deleted/);
    expect(kubectl("get", "configmaps", "-o", "name")).toBe("configmap/kube-root-ca.crt\n");
  });

  test("deletes a namespace with what is in it, and waits until it is gone", () => {
    kubectl(
      "create",
      "--validate=false",
      "-f",
      manifest(
        "namespace",
        { apiVersion: "v1", kind: "Namespace", metadata: { name: "demo" } },
        {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { name: "s", namespace: "demo" },
          stringData: { k: "v" },
        },
      ),
    );

    kubectl("delete", "namespace", "demo");

    expect(kubectl("get", "namespaces", "-o", "name")).not.toContain("demo");
  });

  test("waits for what is true already without waiting", () => {
    kubectl("wait", "namespace/default", "--for=jsonpath={.status.phase}=Active", "--timeout=5s");
  });

  test("watches", async () => {
    const watching = spawn("kubectl", [...base, "get", "configmaps", "-w", "-o", "name"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let seen = "";
    watching.stdout.setEncoding("utf8").on("data", (text: string) => (seen += text));
    kubectl(
      "create",
      "--validate=false",
      "-f",
      manifest("watched", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "watched" } }),
    );
    while (!seen.includes("configmap/watched\n")) await once(watching.stdout, "data");
    const before = seen.length;

    kubectl("annotate", "configmap", "watched", "a=b");
    while (seen.length === before) await once(watching.stdout, "data");

    expect(seen.slice(before)).toBe("configmap/watched\n");
    watching.kill();
    await once(watching, "close");
  });
});

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
