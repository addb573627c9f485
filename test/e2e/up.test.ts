import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
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
