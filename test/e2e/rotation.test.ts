import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { hostname } from "node:os";
import { join } from "node:path";
import { connect as tlsConnect } from "node:tls";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { sleepWith, type Clock, type Timer } from "../../src/base/clock.ts";
import { createLogger } from "../../src/base/log.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createSystemRandom } from "../../src/base/system-random.ts";
import { createAuthority } from "../../src/apiserver/certificates.ts";
import { loadChangingAccess } from "../../src/kube/config/changing.ts";
import { loadClusterAccess } from "../../src/kube/config/load.ts";
import type { ClientCertificate } from "../../src/kube/transport/access.ts";
import { createHttpTransport } from "../../src/kube/transport/http-transport.ts";
import type { Transport } from "../../src/kube/transport/transport.ts";
import { startApiServer } from "../../src/processes/apiserver.ts";
import { openDataDirectory } from "../../src/processes/data-directory.ts";
import { createLocalWorld } from "../../src/processes/local-world.ts";
import { ensurePki } from "../../src/processes/pki.ts";
import { scratch } from "./mooring.ts";

/** Certificates of a server that runs for longer than they live: renewed in time, and nobody notices. */

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
/** Leaves are due thirty days before the end of their year, the authority thirty before the end of its ten. */
const LEAF_DUE_MS = 335 * DAY_MS;

const place = scratch();
afterAll(place.remove);

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

describe("a server whose certificates come due while it runs", () => {
  test("renews them: connections stay, new ones see the new certificate, the kubeconfig is rewritten", async () => {
    const server = await givenServer("leaves", { dueInMs: 20 * MINUTE_MS });
    const old = await accessOf(server.kubeconfig);
    const session = dial(old);
    const watch = session.request({ ":path": "/api/v1/namespaces/default/configmaps?watch=true" });
    const heard = listenTo(watch);
    await once(watch, "response");
    const shown = await shownBy(server.url, old.ca);

    server.clock.leap(19 * MINUTE_MS);
    expect(await shownBy(server.url, old.ca)).toBe(shown);
    server.clock.leap(2 * MINUTE_MS);
    await server.says("certificates renewed");

    // The connection that was open, with the certificate that was due: a write, and the watch hears of it.
    expect(await create(session, "after")).toBe(201);
    await heard('"name":"after"');
    // A new one of the same client, who trusts the authority and knows nothing of all this.
    expect(await shownBy(server.url, old.ca)).not.toBe(shown);
    expect(await create(dial(old), "same-client")).toBe(201);
    // Whoever reads the file again.
    const renewed = await accessOf(server.kubeconfig);
    expect(renewed.ca).toBe(old.ca);
    expect(serialOf(renewed.client)).not.toBe(serialOf(old.client));
    expect(await create(dial(renewed), "new-client")).toBe(201);
    expect(statSync(server.kubeconfig).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(server.dataDir, "pki/admin.crt"), "utf8")).toBe(renewed.client.certificate);
    expect(server.said.filter((line) => /^(warn|error)/.test(line))).toEqual([]);
  });

  test("keeps what it made for the next start", async () => {
    const server = await givenServer("again", { dueInMs: 20 * MINUTE_MS });
    server.clock.leap(21 * MINUTE_MS);
    await server.says("certificates renewed");
    const first = readFileSync(join(server.dataDir, "pki/apiserver.crt"), "utf8");

    await server.stop();
    const second = await givenServer("again");

    expect(second.said).toContain("ready certificates: kept from before");
    const { ca } = await accessOf(second.kubeconfig);
    expect(await shownBy(second.url, ca)).toBe(new X509Certificate(first).serialNumber);
  });
});

describe("a server whose authority ends while it runs", () => {
  test("publishes the next one, lets it sign, forgets the old one: who reads again is never cut off", async () => {
    const server = await givenServer("authority", { caEndsInMs: 30 * MINUTE_MS });
    const old = await accessOf(server.kubeconfig);
    const transport = await followKubeconfig(server);
    const configMap = () => rootCaOf(transport);
    const isServed = async () =>
      (await transport.request({ method: "GET", path: "/api/v1/nodes" })).status === 200;
    expect([await isServed(), await configMap()]).toEqual([true, old.ca]);

    // 45 minutes are the whole life of this authority. Half of it is left: the next one is published, and signs nothing.
    server.clock.leap(8 * MINUTE_MS);
    await server.says("certificates renewed announce");
    const published = await accessOf(server.kubeconfig);
    expect(published.ca.startsWith(old.ca)).toBe(true);
    expect(published.ca.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    await expect.poll(configMap).toBe(published.ca);
    expect(await create(dial(old), "before-the-switch")).toBe(201);
    expect(await create(dial(published), "with-both")).toBe(201);

    // A third of the life of the leaves is left: new ones, from the old authority.
    server.clock.leap(11 * MINUTE_MS);
    await server.says("certificates renewed");
    const lastOfOld = await accessOf(server.kubeconfig);
    expect(lastOfOld.ca).toBe(published.ca);
    expect(await create(dial(old), "shortly-before-the-switch")).toBe(201);
    expect(await isServed()).toBe(true);

    // A sixth of it is left: the next one signs.
    server.clock.leap(4 * MINUTE_MS);
    await server.says("certificates renewed switch");
    await expect(shownBy(server.url, old.ca)).rejects.toThrow(/certificate/);
    expect(await create(dial({ ...old, ca: published.ca }), "old-client-that-read-the-bundle")).toBe(201);
    expect(await create(dial(lastOfOld), "client-of-the-last-certificate")).toBe(201);
    const switched = await accessOf(server.kubeconfig);
    expect(await create(dial(switched), "new-client")).toBe(201);
    expect(await create(dial({ ...switched, ca: published.ca }), "new-client-old-bundle")).toBe(201);
    expect(await isServed()).toBe(true);
    expect(new Set(split(switched.ca))).toEqual(new Set(split(published.ca)));
    await expect.poll(configMap).toBe(switched.ca);

    // Its end: its clients are strangers, and no bundle names it any more.
    server.clock.leap(8 * MINUTE_MS);
    await server.says("certificates renewed drop");
    const dropped = await accessOf(server.kubeconfig);
    expect(split(dropped.ca)).toEqual(split(published.ca).slice(1));
    expect(await create(dial({ ...old, ca: published.ca }), "too-late")).toBe(401);
    expect(await create(dial(dropped), "at-the-end")).toBe(201);
    expect(await isServed()).toBe(true);
    await expect.poll(configMap).toBe(dropped.ca);
    expect(readFileSync(join(server.dataDir, "pki/ca.crt"), "utf8")).toBe(dropped.ca);
    expect(server.said.filter((line) => /^(warn|error)/.test(line))).toEqual([]);
  });

  test("goes on with both where it was stopped in between", async () => {
    const first = await givenServer("authority-again", { caEndsInMs: 30 * MINUTE_MS });
    first.clock.leap(8 * MINUTE_MS);
    await first.says("certificates renewed announce");
    const published = await accessOf(first.kubeconfig);
    await first.stop();

    const second = await givenServer("authority-again", { aheadMs: 8 * MINUTE_MS });

    expect(second.said).toContain("ready certificates: kept from before");
    const kept = await accessOf(second.kubeconfig);
    expect(kept.ca).toBe(published.ca);
    expect(await create(dial(kept), "after-the-start")).toBe(201);
    await expect.poll(async () => rootCaOf(await followKubeconfig(second))).toBe(published.ca);
  });
});

/** A client as `mooring up` has one: it reads the kubeconfig again as time goes by. */
async function followKubeconfig({ kubeconfig, clock }: { kubeconfig: string; clock: Clock }) {
  const world = createLocalWorld();
  const access = await loadChangingAccess({ world, clock }, kubeconfig);
  const transport = createHttpTransport(access, { clock });
  closing.push(() => transport.close());
  return transport;
}

/** What pods of the namespace `default` are told to trust; undefined until the controller has said so. */
async function rootCaOf(transport: Transport): Promise<string | undefined> {
  const path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
  for (;;) {
    const { status, body } = await transport.request({ method: "GET", path });
    if (status === 200) return (JSON.parse(body) as { data: Record<string, string> }).data["ca.crt"];
    if (status !== 404) throw new Error(`${path}: ${status} ${body}`);
  }
}

function split(bundle: string): string[] {
  return bundle.split(/(?<=-----END CERTIFICATE-----\n)/);
}

/**
 * The whole process but its exit, on a clock that can leap. It is 25 minutes slow at first, so that what it makes
 * after a leap is not from the future for TLS, which asks the machine's clock.
 */
async function givenServer(
  name: string,
  { dueInMs, caEndsInMs, aheadMs = 0 }: { dueInMs?: number; caEndsInMs?: number; aheadMs?: number } = {},
) {
  const dataDir = join(place.path, name);
  const clock = createLeapingClock(aheadMs - 25 * MINUTE_MS);
  const { said, says, log } = createListener();
  if (caEndsInMs !== undefined) await putAuthority(dataDir, clock, caEndsInMs);
  if (dueInMs !== undefined) {
    const madeAt = new Date(clock.wall().getTime() + dueInMs - LEAF_DUE_MS);
    const past = { ...clock, wall: () => madeAt };
    const directory = await openDataDirectory(dataDir);
    await ensurePki({ clock: past, directory }, { host: "127.0.0.1", hostname: hostname() });
  }
  const server = await startApiServer(
    {
      clock,
      random: createSystemRandom(),
      log,
      report: ({ component, detail }) => said.push(`ready ${component}: ${detail}`),
    },
    { dataDir, host: "127.0.0.1", port: 0, authorizationMode: "rbac" },
  );
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= server.stop());
  closing.push(stop);
  return { ...server, dataDir, clock, said, says, stop };
}

/** An authority of the owner's own, made ten minutes ago. Like every certificate it began five before that. */
async function putAuthority(dataDir: string, clock: Clock, endsInMs: number): Promise<void> {
  const madeAt = new Date(clock.wall().getTime() - 10 * MINUTE_MS);
  const past = { ...clock, wall: () => madeAt };
  const validForMs = 10 * MINUTE_MS + endsInMs;
  const { certificate, key } = await createAuthority(
    { clock: past },
    { commonName: "mooring-ca", validForMs },
  );
  const directory = await openDataDirectory(dataDir);
  await directory.write("pki/ca.crt", certificate);
  await directory.write("pki/ca.key", key);
}

function createListener() {
  const said: string[] = [];
  const waiting = new Set<() => void>();
  /** Lines before this one were waited for already. */
  let heard = 0;
  const log = createLogger((level, message, { authority }) => {
    said.push(`${level} ${message}${typeof authority === "string" ? ` ${authority}` : ""}`);
    for (const look of waiting) look();
  });
  const says = (message: string) =>
    new Promise<void>((resolve) => {
      const look = () => {
        const found = said.findIndex((line, index) => index >= heard && line.endsWith(message));
        if (found < 0) return;
        heard = found + 1;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
  return { said, says, log };
}

/** The machine's time, off by `offsetMs`. After a leap all that was due in between happens at once. */
function createLeapingClock(offsetMs: number): Clock & { leap(ms: number): void } {
  const system = createSystemClock();
  const pending = new Set<{ atMs: number; callback: () => void; timer: Timer }>();
  let leaptMs = 0;
  const now = () => system.now() + leaptMs;
  function after(ms: number, callback: () => void): Timer {
    const entry = { atMs: now() + ms, callback: fire, timer: system.after(ms, fire) };
    pending.add(entry);
    function fire(): void {
      pending.delete(entry);
      callback();
    }
    return {
      cancel() {
        pending.delete(entry);
        entry.timer.cancel();
      },
    };
  }
  return {
    now,
    wall: () => new Date(system.wall().getTime() + offsetMs + leaptMs),
    after,
    sleep: (ms, signal) => sleepWith(after, ms, signal),
    leap(ms) {
      leaptMs += ms;
      for (const entry of pending) {
        entry.timer.cancel();
        entry.timer = system.after(entry.atMs - now(), entry.callback);
      }
    },
  };
}

interface Access {
  readonly server: string;
  readonly ca: string;
  readonly client: ClientCertificate;
}

/** What the kubeconfig says now, as every client reads it. */
async function accessOf(kubeconfig: string): Promise<Access> {
  const log = createLogger(() => undefined);
  const deps = { world: createLocalWorld(), clock: createSystemClock(), log };
  const { server, tls, credentials } = await loadClusterAccess(deps, { kubeconfig });
  const { clientCertificate } = await credentials.current();
  if (tls.ca === undefined || clientCertificate === undefined)
    throw new Error(`${kubeconfig} lacks something`);
  return { server, ca: tls.ca, client: clientCertificate };
}

function dial({ server, ca, client }: Access): ClientHttp2Session {
  const session = connect(server, { ca, cert: client.certificate, key: client.key });
  closing.push(() => session.destroy());
  return session;
}

/** Resolves once the stream has brought that text; fails if it ends before. */
function listenTo(stream: ClientHttp2Stream): (text: string) => Promise<void> {
  let all = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => (all += chunk));
  return async (text) => {
    while (!all.includes(text)) {
      if (stream.closed) throw new Error(`the stream ended with ${all}`);
      await Promise.race([once(stream, "data"), once(stream, "close")]);
    }
  };
}

async function create(session: ClientHttp2Session, name: string): Promise<unknown> {
  const path = "/api/v1/namespaces/default/configmaps";
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/json" });
  stream.end(JSON.stringify({ metadata: { name } }));
  const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
  stream.resume();
  return headers[":status"];
}

/** The serial number of the certificate a new connection is shown; fails unless it is one of this authority. */
async function shownBy(url: string, ca: string): Promise<string> {
  const socket = tlsConnect({
    host: "127.0.0.1",
    port: Number(new URL(url).port),
    ca,
    ALPNProtocols: ["h2"],
  });
  closing.push(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket.getPeerCertificate().serialNumber;
}

function serialOf({ certificate }: ClientCertificate): string {
  return new X509Certificate(certificate).serialNumber;
}
