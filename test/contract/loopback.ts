import { createAuthority, type Authority, type CertificatePair } from "../../src/apiserver/certificates.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { anonymous, type ClusterAccess } from "../../src/kube/transport/access.ts";
import { createHttpTransport, type HttpTransportOptions } from "../../src/kube/transport/http-transport.ts";
import type { Transport } from "../../src/kube/transport/transport.ts";
import { createFaultyServer, type FaultyServer, type FaultyServerOptions } from "./faulty-server.ts";

const HOUR_MS = 3_600_000;

/** An authority, servers that it vouches for and transports to them; `close` ends all that was made. */
export interface Loopback {
  readonly authority: Authority;
  serve(options: Partial<FaultyServerOptions> & Pick<FaultyServerOptions, "protocol">): Promise<FaultyServer>;
  connect(url: string, access?: Partial<ClusterAccess>, options?: HttpTransportOptions): Transport;
  /** Closed with the rest, after the transports and in the order added. */
  alsoClose(closable: { close(): Promise<void> }): void;
  close(): Promise<void>;
}

export async function createLoopback(): Promise<Loopback> {
  const { authority, certificate } = await sharedCertificates();
  const transports: Transport[] = [];
  const others: { close(): Promise<void> }[] = [];
  return {
    authority,
    async serve(options) {
      const server = await createFaultyServer({ ...certificate, ...options });
      others.push(server);
      return server;
    },
    connect(server, access = {}, options = {}) {
      const tls = { ca: authority.certificate };
      const transport = createHttpTransport(
        { server, tls, credentials: anonymous, impersonation: {}, ...access },
        options,
      );
      transports.push(transport);
      return transport;
    },
    alsoClose: (closable) => void others.push(closable),
    async close() {
      for (const transport of transports) await transport.close();
      for (const other of others) await other.close();
    },
  };
}

let shared: Promise<{ authority: Authority; certificate: CertificatePair }> | undefined;

/** Made once a process: keys take milliseconds each, and no test changes them. */
function sharedCertificates() {
  shared ??= (async () => {
    const clock = createSystemClock();
    const authority = await createAuthority({ clock }, { commonName: "test-ca", validForMs: HOUR_MS });
    const names = { names: ["localhost"], addresses: ["127.0.0.1"] };
    return { authority, certificate: await authority.issueServer({ ...names, validForMs: HOUR_MS }) };
  })();
  return shared;
}
