import { once } from "node:events";
import { connect as connectHttp2, createSecureServer, type Http2SecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { installServerCertificate } from "../../src/apiserver/auth/rotation.ts";
import { createAuthority, type Authority, type CertificatePair } from "../../src/apiserver/certificates.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";

const HOUR_MS = 3_600_000;
const LOCAL = { names: ["localhost"], addresses: ["127.0.0.1"], validForMs: HOUR_MS };

let authority: Authority;
let first: CertificatePair;
let server: Http2SecureServer;
let port: number;
const open: (() => void)[] = [];

beforeEach(async () => {
  authority = await newAuthority();
  first = await authority.issueServer(LOCAL);
  // As the API server makes it: everybody may connect, and a certificate is judged, not demanded.
  server = createSecureServer({
    allowHTTP1: true,
    cert: first.certificate,
    key: first.key,
    ca: authority.certificate,
    minVersion: "TLSv1.2",
    requestCert: true,
    rejectUnauthorized: false,
  });
  server.on("request", (request, response) => {
    const session = "stream" in request ? request.stream.session : undefined;
    const socket = (session?.socket ?? request.socket) as TLSSocket;
    response.end(socket.authorized ? "known" : "unknown");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
});

afterEach(async () => {
  for (const close of open.splice(0)) close();
  server.close();
  await once(server, "close");
});

describe("a server that takes a new certificate while it runs", () => {
  test("shows it to new connections, and those that are open go on undisturbed", async () => {
    const before = await dial(authority.certificate);
    const second = await authority.issueServer(LOCAL);

    installServerCertificate(server, { ...second, clientCas: [authority.certificate] });

    const after = await dial(authority.certificate);
    expect(serialOf(before)).not.toBe(serialOf(after));
    expect(await ask(before)).toBe("unknown");
    expect(await ask(after)).toBe("unknown");
  });

  test("keeps its HTTP/2 sessions: a watch does not notice", async () => {
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: authority.certificate });
    open.push(() => session.destroy());
    await once(session, "connect");
    const second = await authority.issueServer(LOCAL);

    installServerCertificate(server, { ...second, clientCas: [authority.certificate] });

    const stream = session.request({ ":path": "/" });
    stream.setEncoding("utf8");
    const [text] = (await once(stream, "data")) as [string];
    expect(text).toBe("unknown");
  });

  test("with a new authority knows clients of both, and lets go of the old one when told", async () => {
    const next = await newAuthority();
    const oldClient = await clientOf(authority);
    const newClient = await clientOf(next);
    expect(await ask(await dial(authority.certificate, oldClient))).toBe("known");
    expect(await ask(await dial(authority.certificate, newClient))).toBe("unknown");

    const second = await next.issueServer(LOCAL);
    installServerCertificate(server, { ...second, clientCas: [next.certificate, authority.certificate] });
    expect(await ask(await dial(next.certificate, oldClient))).toBe("known");
    expect(await ask(await dial(next.certificate, newClient))).toBe("known");

    installServerCertificate(server, { ...second, clientCas: [next.certificate] });
    expect(await ask(await dial(next.certificate, oldClient))).toBe("unknown");
    expect(await ask(await dial(next.certificate, newClient))).toBe("known");
  });
});

function newAuthority(): Promise<Authority> {
  return createAuthority({ clock: createSystemClock() }, { commonName: "ca", validForMs: HOUR_MS });
}

function clientOf(issuer: Authority): Promise<CertificatePair> {
  return issuer.issueClient({ user: "admin", groups: ["system:masters"], validForMs: HOUR_MS });
}

/** A new connection that trusts `ca` alone: it fails unless the server shows a certificate of it. */
async function dial(ca: string, client?: CertificatePair): Promise<TLSSocket> {
  const credentials = client === undefined ? {} : { cert: client.certificate, key: client.key };
  const socket = connect({ host: "127.0.0.1", port, ca, ALPNProtocols: ["http/1.1"], ...credentials });
  open.push(() => socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

async function ask(socket: TLSSocket): Promise<string> {
  socket.setEncoding("utf8");
  socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  let text = "";
  while (!/\r\n\r\n.*known/s.test(text)) {
    const [chunk] = (await once(socket, "data")) as [string];
    text += chunk;
  }
  return /unknown|known/.exec(text.slice(text.indexOf("\r\n\r\n")))?.[0] ?? "";
}

function serialOf(socket: TLSSocket): string {
  return socket.getPeerCertificate().serialNumber;
}
