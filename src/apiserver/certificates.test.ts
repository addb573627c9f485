import { createPrivateKey, X509Certificate } from "node:crypto";
import { connect, createServer, type PeerCertificate, type TLSSocket } from "node:tls";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createAuthority, expiresAtMs, loadAuthority, type CertificatePair } from "./certificates.ts";

const DAY_MS = 24 * 3_600_000;

function givenClock() {
  return { clock: new SimScheduler(createSeededRandom(1)).createClock() };
}

async function givenAuthority() {
  const deps = givenClock();
  return {
    deps,
    authority: await createAuthority(deps, { commonName: "mooring-ca", validForMs: 3_650 * DAY_MS }),
  };
}

describe("the authority", () => {
  test("may sign certificates and nothing else, and names its own key", async () => {
    const { authority } = await givenAuthority();

    const certificate = new X509Certificate(authority.certificate);

    expect(certificate.ca).toBe(true);
    expect(certificate.subject).toBe("CN=mooring-ca");
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.checkPrivateKey(createPrivateKey(authority.key))).toBe(true);
  });

  test("survives a restart: what the loaded one issues, the first one's certificate verifies", async () => {
    const { deps, authority } = await givenAuthority();

    const loaded = await loadAuthority(deps, { certificate: authority.certificate, key: authority.key });
    const issued = await loaded.issueClient({ user: "ada", groups: [], validForMs: DAY_MS });

    const parent = new X509Certificate(authority.certificate);
    const child = new X509Certificate(issued.certificate);
    expect(child.checkIssued(parent)).toBe(true);
    expect(child.verify(parent.publicKey)).toBe(true);
  });

  test("is refused when its key belongs to another one", async () => {
    const { deps, authority } = await givenAuthority();
    const other = await createAuthority(deps, { commonName: "other", validForMs: DAY_MS });

    const loading = loadAuthority(deps, { certificate: authority.certificate, key: other.key });

    await expect(loading).rejects.toThrow(/BadConfig: .*the key does not belong to the certificate/);
  });

  for (const [what, broken, message] of [
    ["no certificate", { certificate: "nonsense" }, /the certificate is not PEM/],
    ["no key", { key: "nonsense" }, /the key is not an unencrypted PEM key/],
  ] as const) {
    test(`is refused where there is ${what}`, async () => {
      const { deps, authority } = await givenAuthority();

      const loading = loadAuthority(deps, {
        certificate: authority.certificate,
        key: authority.key,
        ...broken,
      });

      await expect(loading).rejects.toThrow(message);
    });
  }

  test("is refused when it is a leaf, which may not sign", async () => {
    const { deps, authority } = await givenAuthority();
    const leaf = await authority.issueClient({ user: "ada", groups: [], validForMs: DAY_MS });

    await expect(loadAuthority(deps, leaf)).rejects.toThrow(/may not sign others/);
  });
});

describe("what it issues", () => {
  test("a server is known by every name and address, of both families", async () => {
    const { authority } = await givenAuthority();

    const { certificate } = await authority.issueServer({
      names: ["localhost", "kubernetes.default.svc"],
      addresses: ["127.0.0.1", "::1"],
      validForMs: DAY_MS,
    });

    const parsed = new X509Certificate(certificate);
    expect(parsed.checkHost("localhost")).toBe("localhost");
    expect(parsed.checkHost("kubernetes.default.svc")).toBe("kubernetes.default.svc");
    expect(parsed.checkIP("127.0.0.1")).toBe("127.0.0.1");
    expect(parsed.checkIP("::1")).toBe("::1");
    expect(parsed.checkHost("elsewhere")).toBeUndefined();
    expect(parsed.ca).toBe(false);
  });

  test("a client carries its user and its groups, colons and commas included", async () => {
    const { authority } = await givenAuthority();

    const { certificate } = await authority.issueClient({
      user: "system:node:a, b",
      groups: ["system:nodes", "system:masters"],
      validForMs: DAY_MS,
    });

    const subject = new X509Certificate(certificate).subject.split("\n");
    expect(subject).toEqual(["O=system:nodes", "O=system:masters", "CN=system:node:a\\, b"]);
  });

  test("begins five minutes ago and ends when asked, but never after its authority", async () => {
    const { deps, authority } = await givenAuthority();
    const nowMs = deps.clock.wall().getTime();

    const short = await authority.issueClient({ user: "ada", groups: [], validForMs: DAY_MS });
    const long = await authority.issueClient({ user: "ada", groups: [], validForMs: 9_999 * DAY_MS });

    expect(Date.parse(new X509Certificate(short.certificate).validFrom)).toBe(nowMs - 300_000);
    expect(expiresAtMs(short.certificate)).toBe(nowMs + DAY_MS);
    expect(expiresAtMs(long.certificate)).toBe(expiresAtMs(authority.certificate));
  });

  test("no two share a serial number or a key", async () => {
    const { authority } = await givenAuthority();

    const pairs = await Promise.all(
      Array.from({ length: 20 }, () =>
        authority.issueClient({ user: "ada", groups: [], validForMs: DAY_MS }),
      ),
    );

    expect(new Set(pairs.map(({ certificate }) => new X509Certificate(certificate).serialNumber)).size).toBe(
      20,
    );
    expect(new Set(pairs.map(({ key }) => key)).size).toBe(20);
  });

  test("both ends of a TLS connection accept it, and the server learns who called", async () => {
    // Real time on purpose: OpenSSL compares the dates with its own clock.
    const clock = createSystemClock();
    const authority = await createAuthority({ clock }, { commonName: "mooring-ca", validForMs: DAY_MS });
    const server = await authority.issueServer({
      names: ["localhost"],
      addresses: ["127.0.0.1"],
      validForMs: DAY_MS,
    });
    const client = await authority.issueClient({ user: "ada", groups: ["ops"], validForMs: DAY_MS });

    const caller = await handshake(authority.certificate, server, client);

    expect(caller.subject).toMatchObject({ CN: "ada", O: "ops" });
  });
});

async function handshake(
  ca: string,
  server: CertificatePair,
  client: CertificatePair,
): Promise<PeerCertificate> {
  const listener = createServer({ cert: server.certificate, key: server.key, ca, requestCert: true });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const socket = connect({
    host: "127.0.0.1",
    port: (listener.address() as AddressInfo).port,
    ca,
    cert: client.certificate,
    key: client.key,
  });
  try {
    const [accepted] = (await once(listener, "secureConnection")) as [TLSSocket];
    expect(accepted.authorized).toBe(true);
    return accepted.getPeerCertificate();
  } finally {
    socket.destroy();
    listener.close();
  }
}
