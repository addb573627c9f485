import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createAuthority, type CertificatePair } from "../../src/apiserver/certificates.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import type { Credential, Credentials } from "../../src/kube/transport/access.ts";
import type { Transport } from "../../src/kube/transport/transport.ts";
import { scripted } from "../contract/faults.ts";
import { createLoopback, type Loopback } from "../contract/loopback.ts";

const HOUR_MS = 3_600_000;
const PROTOCOLS = ["https/1.1", "https/2"] as const;

let loopback: Loopback;
beforeEach(async () => {
  loopback = await createLoopback();
});
afterEach(() => loopback.close());

const get = (transport: Transport) => transport.request({ method: "GET", path: "/it" });
const errorOf = (transport: Transport): Promise<Error & { code: string }> =>
  get(transport).then(
    () => expect.unreachable("it succeeded"),
    (error: unknown) => error as Error & { code: string },
  );
const holding = (credential: () => Credential): Credentials => ({
  current: async () => credential(),
  rejected: () => false,
});
const otherAuthority = () =>
  createAuthority({ clock: createSystemClock() }, { commonName: "other-ca", validForMs: HOUR_MS });

for (const protocol of PROTOCOLS) {
  describe(`the server's certificate, over ${protocol}`, () => {
    test("is not trusted without its authority, and the error says where to put that", async () => {
      const server = await loopback.serve({ protocol });

      const error = await errorOf(loopback.connect(server.url, { tls: {} }));

      expect(error).toMatchObject({ code: "Unreachable", outcomeUnknown: false });
      expect(error.message).toMatch(/GET \/it: connect to 127\.0\.0\.1:\d+: .*certificate-authority-data/);
      expect(server.seen).toHaveLength(0);
    });

    test("of another authority is not trusted", async () => {
      const server = await loopback.serve({ protocol });
      const ca = (await otherAuthority()).certificate;

      expect(await errorOf(loopback.connect(server.url, { tls: { ca } }))).toMatchObject({
        code: "Unreachable",
      });
    });

    test("is trusted as soon as the access names its authority, on connections of its own", async () => {
      const server = await loopback.serve({ protocol });
      const tls = { ca: (await otherAuthority()).certificate };
      const transport = loopback.connect(server.url, { tls });
      expect((await errorOf(transport)).code).toBe("Unreachable");

      tls.ca += loopback.authority.certificate;

      expect((await get(transport)).status).toBe(200);
    });

    test("for another name is refused until tls-server-name says that name", async () => {
      const names = { names: ["kubernetes.example"], addresses: [], validForMs: HOUR_MS };
      const server = await loopback.serve({ protocol, ...(await loopback.authority.issueServer(names)) });
      const ca = loopback.authority.certificate;

      const error = await errorOf(loopback.connect(server.url, { tls: { ca } }));
      const named = loopback.connect(server.url, { tls: { ca, serverName: "kubernetes.example" } });

      expect(error.code).toBe("Unreachable");
      expect(error.message).toContain("set tls-server-name");
      expect((await get(named)).status).toBe(200);
    });

    test("for an address is accepted when tls-server-name is that address", async () => {
      const names = { names: [], addresses: ["10.0.0.1"], validForMs: HOUR_MS };
      const server = await loopback.serve({ protocol, ...(await loopback.authority.issueServer(names)) });
      const ca = loopback.authority.certificate;

      const named = loopback.connect(server.url, { tls: { ca, serverName: "10.0.0.1" } });

      expect((await get(named)).status).toBe(200);
    });

    test("that has expired is named so", async () => {
      const names = { names: [], addresses: ["127.0.0.1"], validForMs: -1_000 };
      const server = await loopback.serve({ protocol, ...(await loopback.authority.issueServer(names)) });

      const error = await errorOf(loopback.connect(server.url));

      expect(error.code).toBe("Unreachable");
      expect(error.message).toContain("has expired; renew it, or check the clock");
    });

    test("is not looked at when insecure-skip-tls-verify says so", async () => {
      const server = await loopback.serve({ protocol });

      const response = await get(loopback.connect(server.url, { tls: { insecureSkipVerify: true } }));

      expect(response.status).toBe(200);
    });
  });

  describe(`a client certificate, over ${protocol}`, () => {
    const issue = (user: string) => loopback.authority.issueClient({ user, groups: [], validForMs: HOUR_MS });

    test("lets us in, and its absence is named", async () => {
      const server = await loopback.serve({ protocol, clientCa: loopback.authority.certificate });
      const clientCertificate = await issue("ada");

      const error = await errorOf(loopback.connect(server.url));
      const credentials = holding(() => ({ clientCertificate }));

      if (protocol === "https/2") {
        expect(error.code).toBe("Unreachable");
        expect(error.message).toMatch(
          /refused the TLS handshake \(CERTIFICATE_REQUIRED\); check the client cert/,
        );
      } else {
        // TLS 1.3 refuses after we began to send, and undici drops the alert: then all we know is that it ended.
        expect(error.code).toBe("ConnectionLost");
      }
      expect((await get(loopback.connect(server.url, { credentials }))).status).toBe(200);
    });

    test("that is renewed is used from then on, while what runs on the old one goes on", async () => {
      const server = await loopback.serve({ protocol, clientCa: loopback.authority.certificate });
      let clientCertificate: CertificatePair = await issue("ada");
      const transport = loopback.connect(server.url, { credentials: holding(() => ({ clientCertificate })) });
      const { behaviour, reply } = scripted();
      server.on("/watch", behaviour);
      const body = (await transport.stream({ method: "GET", path: "/watch" })).body[Symbol.asyncIterator]();
      await get(transport);
      const before = server.connections.accepted;

      clientCertificate = await issue("ada");
      await get(transport);
      await (await reply).write("still here");

      expect(server.connections.accepted).toBe(before + 1);
      expect(Buffer.from((await body.next()).value).toString()).toBe("still here");
      (await reply).end();
      expect((await body.next()).done).toBe(true);
    });

    test("whose key belongs to another is a mistake in the configuration, told without the key", async () => {
      const server = await loopback.serve({ protocol });
      const [mine, other] = [await issue("ada"), await issue("eve")];
      const clientCertificate = { certificate: mine.certificate, key: other.key };

      const error = await errorOf(
        loopback.connect(server.url, { credentials: holding(() => ({ clientCertificate })) }),
      );

      expect(error.code).toBe("BadConfig");
      expect(error.message).toContain("cannot be used together");
      expect(error.message).not.toContain("PRIVATE KEY");
    });
  });
}

test("a server that speaks plain HTTP where we expect TLS is named so", async () => {
  const plain = createServer((_request, response) => response.end());
  plain.listen(0, "127.0.0.1");
  await once(plain, "listening");

  const error = await errorOf(loopback.connect(`https://127.0.0.1:${(plain.address() as AddressInfo).port}`));

  expect(error.code).toBe("Unreachable");
  expect(error.message).toContain("should not begin with http");
  plain.close();
});

test("a server that is not a web address is a mistake in the configuration", () => {
  expect(() => loopback.connect("ftp://127.0.0.1")).toThrow(/BadConfig: .*https:\/\/ or http:\/\//);
  expect(() => loopback.connect("nonsense")).toThrow(/BadConfig: /);
});
