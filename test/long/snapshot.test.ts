import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { request } from "node:https";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import {
  connect,
  freePort,
  pathOf,
  startCluster,
  type Cluster,
  type Seen,
  type SeenList,
} from "../e2e/cluster.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { restoreSnapshot } from "../../src/processes/restore.ts";
import { readSnapshotStatus, saveSnapshot } from "../../src/processes/snapshot.ts";
import { mooring, Running, scratch } from "../e2e/mooring.ts";

const place = scratch();
afterAll(place.remove);
const at = (name: string) => join(place.path, name);

const started: Cluster[] = [];
afterEach(async () => {
  for (const cluster of started.splice(0)) await cluster.kill();
});

async function start(name: string, port: number): Promise<Cluster> {
  const cluster = await startCluster(at(name), port);
  started.push(cluster);
  return cluster;
}

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

/** Creates, changes and deletes as fast as answers come, until told to stop. */
async function write(cluster: Cluster, writer: number, done: AbortSignal): Promise<number> {
  let writes = 0;
  for (; !done.aborted; writes++) {
    const name = `w${writer}-${writes % 40}`;
    const created = await cluster.call("POST", CONFIG_MAPS, {
      metadata: { name },
      data: { n: String(writes) },
    });
    if (created.status === 201) continue;
    const isDelete = writes % 3 === 0;
    const patch = { data: { n: String(writes) } };
    if (isDelete) await cluster.call("DELETE", `${CONFIG_MAPS}/${name}`);
    else await cluster.call("PATCH", `${CONFIG_MAPS}/${name}`, patch, "application/merge-patch+json");
  }
  return writes;
}

/** Every object of these resources, by path; as of a revision if one is given. */
async function stateOf(cluster: Cluster, resources: readonly string[], revision?: number) {
  const query = revision === undefined ? "" : `?resourceVersion=${revision}&resourceVersionMatch=Exact`;
  const state: Record<string, readonly Seen[]> = {};
  for (const resource of resources)
    state[resource] = (await cluster.list(`${pathOf(resource)}${query}`)).items;
  return state;
}

interface Status {
  readonly revision: number;
  readonly objects: number;
  readonly resources: Readonly<Record<string, number>>;
}

async function save(file: string, dataDir: string): Promise<Status> {
  const process = new Running(
    "apiserver",
    "snapshot",
    "save",
    at(file),
    "--data-dir",
    at(dataDir),
    "-o",
    "json",
  );
  const { code } = await process.exit();
  expect([code, process.stderr]).toEqual([0, expect.stringContaining("private keys")]);
  return JSON.parse(process.stdout) as Status;
}

describe("a snapshot of a server that is being written to", () => {
  test("holds one revision, and after a kill serves exactly that to the clients of before", async () => {
    const port = await freePort();
    const cluster = await start("lost", port);
    copyFileSync(at("lost/admin.kubeconfig"), at("old.kubeconfig"));
    const token = await tokenFrom(cluster);
    const done = new AbortController();
    const writers = [1, 2, 3, 4].map((writer) => write(cluster, writer, done.signal));

    const early = await save("early.snapshot", "lost");
    const { revision, objects, resources } = await save("late.snapshot", "lost");
    done.abort();
    const writes = (await Promise.all(writers)).reduce((sum, count) => sum + count, 0);

    // Writers went on through both, and everything is as it was at the revision each one names.
    expect(revision).toBeGreaterThan(early.revision);
    const names = Object.keys(resources);
    const then = await stateOf(cluster, names, revision);
    const { metadata: last } = await cluster.list(CONFIG_MAPS);
    expect(Number(last.resourceVersion)).toBeGreaterThan(revision);
    expect(Object.values(then).flat()).toHaveLength(objects);
    await cluster.kill();
    const { code, stdout } = mooring(
      ...[
        "apiserver",
        "snapshot",
        "restore",
        at("late.snapshot"),
        "--data-dir",
        at("restored"),
        "-o",
        "json",
      ],
    );
    expect(code).toBe(0);
    const { startRevision } = JSON.parse(stdout) as { startRevision: number };
    const restored = await start("restored", port);
    expect(await stateOf(restored, names)).toEqual(then);

    await expectOldClientsWelcome(restored, token, port);
    await expectOldRevisionsGone(restored, [revision - 1, revision, Number(last.resourceVersion)]);
    const { status, body } = await restored.call("POST", CONFIG_MAPS, { metadata: { name: "after" } });
    expect([status, Number(body.metadata.resourceVersion) > startRevision]).toEqual([201, true]);
    process.stdout.write(
      `snapshot under load: ${writes} writes, revisions ${early.revision} and ${revision}\n`,
    );
  });

  test("of a server that was killed is the same as the one that it would have given", async () => {
    const cluster = await start("killed", await freePort());
    await cluster.call("POST", CONFIG_MAPS, { metadata: { name: "a" }, data: { k: "v" } });
    const running = await save("running.snapshot", "killed");
    await cluster.kill();

    const stopped = await save("stopped.snapshot", "killed");

    expect(stopped.revision).toBe(running.revision);
    const objectsOf = (file: string) => readFileSync(at(file), "utf8").split("\n").slice(1, -2);
    expect(objectsOf("stopped.snapshot")).toEqual(objectsOf("running.snapshot"));
    expect(mooring("apiserver", "snapshot", "status", at("stopped.snapshot")).stdout).toMatch(
      new RegExp(`^revision {2}${running.revision}\nobjects   ${running.objects}$`, "m"),
    );
  });
});

async function tokenFrom(cluster: Cluster): Promise<string> {
  const path = "/api/v1/namespaces/default/serviceaccounts/default/token";
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  for (;;) {
    const answer = await cluster.call<{ status: { token: string } }>("POST", path, body);
    // The account is made by a controller, right after the start.
    if (answer.status !== 404) return answer.body.status.token;
  }
}

/** The kubeconfig and the token of the lost server, word for word. */
async function expectOldClientsWelcome(cluster: Cluster, token: string, port: number): Promise<void> {
  const transport = await connect(at("old.kubeconfig"));
  expect((await transport.request({ method: "GET", path: "/api/v1/secrets" })).status).toBe(200);
  await transport.close();
  const ca = readFileSync(at("restored/pki/ca.crt"));
  const headers = { authorization: `Bearer ${token}` };
  const sent = request({ host: "127.0.0.1", port, path: "/api", ca, headers, agent: false }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.resume();
  expect(response.statusCode).toBe(200);
  expect(cluster.process.stderr).toContain("kept from before");
}

async function expectOldRevisionsGone(cluster: Cluster, revisions: readonly number[]): Promise<void> {
  for (const revision of revisions) {
    const path = `${CONFIG_MAPS}?watch=true&resourceVersion=${revision}`;
    const { body } = await cluster.transport.stream({ method: "GET", path });
    let text = "";
    for await (const chunk of body) text += Buffer.from(chunk).toString("utf8");
    expect(JSON.parse(text)).toMatchObject({ type: "ERROR", object: { code: 410, reason: "Expired" } });
    const exact = `${CONFIG_MAPS}?resourceVersion=${revision}&resourceVersionMatch=Exact`;
    expect((await cluster.call<SeenList>("GET", exact)).status).toBe(410);
  }
}

describe("killed before each of its acts on the file system", () => {
  /** Each place is a process. All of them with MOORING_CRASH_ROUNDS; by default every sixth of a restore. */
  const STRIDE = process.env["MOORING_CRASH_ROUNDS"] === undefined ? 6 : 1;
  const STEPS = fileURLToPath(new URL("../e2e/snapshot-steps.mjs", import.meta.url));

  /** The number of acts if it came to its end; undefined if it was killed. */
  function run(act: "save" | "restore", options: object, stopBefore: number): number | undefined {
    const input = JSON.stringify({ act, options, stopBefore });
    const { status, signal, stdout, stderr } = spawnSync(process.execPath, [STEPS, input], {
      encoding: "utf8",
    });
    expect([status, signal], stderr).toEqual(status === 0 ? [0, null] : [null, "SIGKILL"]);
    return status === 0 ? Number(stdout) : undefined;
  }

  const clock = createSystemClock();
  const drafts = () => readdirSync(place.path).filter((name) => name.includes(".partial"));

  test("saving leaves no snapshot or a whole one, and the next save clears up", async () => {
    await (await start("steps", await freePort())).kill();
    const options = { dataDir: at("steps"), file: at("steps.snapshot"), overwrite: true };

    let step = 1;
    for (; run("save", options, step) === undefined; step++) {
      if (existsSync(options.file)) await readSnapshotStatus(options.file);

      await saveSnapshot({ clock }, options);
      expect([step, statSync(options.file).mode & 0o777, drafts()]).toEqual([step, 0o600, []]);
      rmSync(options.file);
    }

    expect(step).toBeGreaterThan(8);
    process.stdout.write(`save: killed at ${step - 1} places\n`);
  });

  test("restoring leaves no directory or a whole one, and the next restore clears up", async () => {
    await (await start("steps", await freePort())).kill();
    const options = { dataDir: at("steps-restored"), file: at("whole.snapshot") };
    const { objects } = await saveSnapshot({ clock }, { ...options, dataDir: at("steps"), overwrite: true });

    let step = 1;
    for (; run("restore", options, step) === undefined; step += STRIDE) {
      if (!existsSync(options.dataDir)) await restoreSnapshot({ clock }, options);

      // Whole: all of it can be read, checksums and all, and saved again.
      const again = { dataDir: options.dataDir, file: at("again.snapshot"), overwrite: true };
      expect([step, (await saveSnapshot({ clock }, again)).objects, drafts()]).toEqual([step, objects, []]);
      rmSync(options.dataDir, { recursive: true });
    }

    expect(step).toBeGreaterThan(20);
    const restored = await start("steps-restored", await freePort());
    expect((await restored.list("/api/v1/namespaces")).items).toHaveLength(4);
    process.stdout.write(`restore: killed at every ${STRIDE}. of ${step - STRIDE} places\n`);
  });
});
