import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type ClientHttp2Session } from "node:http2";
import { connect as tcpConnect } from "node:net";
import { join } from "node:path";
import { connect as tlsConnect } from "node:tls";
import { afterAll, afterEach, expect, test } from "vitest";
import { Running, scratch } from "./mooring.ts";

/** What `mooring apiserver` gives requests that are in progress when it is asked to end. */
const GRACE_MS = 5_000;

const place = scratch();
afterAll(place.remove);

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

test("asked to end, the process does within its bound, whoever holds on to it", async () => {
  const server = await givenProcess();
  const maps = "/api/v1/namespaces/default/configmaps";
  const session = dial(server);
  const watch = session.request({ ":path": `${maps}?watch=true` });
  const watched = watch.setEncoding("utf8").toArray();
  const half = session.request({ ":method": "POST", ":path": maps, "content-type": "application/json" });
  half.on("error", () => undefined);
  half.write("{");
  const deaf = dial(server).request({ ":path": `${maps}?watch=true` });
  deaf.on("error", () => undefined).pause();
  const { port, ca } = server;
  const silent = [
    tcpConnect({ host: "127.0.0.1", port }),
    tlsConnect({ host: "127.0.0.1", port, ca, ALPNProtocols: ["h2"] }),
    tlsConnect({ host: "127.0.0.1", port, ca, ALPNProtocols: ["http/1.1"] }),
  ];
  closing.push(() => silent.forEach((socket) => socket.on("error", () => undefined).destroy()));
  await Promise.all([
    once(watch, "response"),
    ...silent.slice(1).map((socket) => once(socket, "secureConnect")),
  ]);

  const askedAtMs = performance.now();
  server.process.kill("SIGTERM");
  await once(session, "goaway");
  const farewellMs = performance.now() - askedAtMs;
  await watched;
  const { code } = await server.process.exit();

  expect(code).toBe(0);
  // The farewell is first; a watch ends cleanly; what never ends is cut.
  expect(farewellMs).toBeLessThan(GRACE_MS - 1_000);
  expect(performance.now() - askedAtMs).toBeLessThan(GRACE_MS + 3_000);
  expect(watch.rstCode).toBe(0);
});

async function givenProcess() {
  const dataDir = join(place.path, "data");
  const process = new Running("apiserver", "--data-dir", dataDir, "--listen", "127.0.0.1:0");
  closing.push(async () => {
    process.kill("SIGKILL");
    await process.exit();
  });
  const [, port] = await process.says(/"url":"https:\/\/127\.0\.0\.1:(\d+)"/);
  const read = (name: string) => readFileSync(join(dataDir, "pki", name), "utf8");
  return { process, port: Number(port), ca: read("ca.crt"), cert: read("admin.crt"), key: read("admin.key") };
}

function dial({ port, ...tls }: { port: number; ca: string; cert: string; key: string }): ClientHttp2Session {
  const session = connect(`https://127.0.0.1:${port}`, tls);
  session.on("error", () => undefined); // the streams tell
  closing.push(() => session.destroy());
  return session;
}
