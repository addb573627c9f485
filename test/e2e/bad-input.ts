import { once } from "node:events";
import { connect, type ClientHttp2Session } from "node:http2";
import { Agent, request as httpsRequest } from "node:https";
import type { IncomingMessage } from "node:http";
import { connect as tlsConnect } from "node:tls";
import { createAuthority } from "../../src/apiserver/certificates.ts";
import { createHandler } from "../../src/apiserver/handler.ts";
import { createSystemNamespaces } from "../../src/apiserver/namespaces.ts";
import { startServer } from "../../src/apiserver/server.ts";
import { createMemoryStore } from "../../src/apiserver/store/memory.ts";
import type { ObjectStore } from "../../src/apiserver/store/store.ts";
import type { Clock } from "../../src/base/clock.ts";
import { createLogger } from "../../src/base/log.ts";
import { noMetrics } from "../../src/base/metrics.ts";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";

/** A request as a hostile client would make it: nothing is checked, escaped or completed. */
export interface Sent {
  readonly method?: string;
  readonly path: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

export type Protocol = "http/1.1" | "http/2";

const HOUR_MS = 3_600_000;

/**
 * The embedded API server on a real TLS socket, as its own process runs it. `bodyClock` is the clock of the socket's
 * side alone, so that a test can let its deadlines pass; `faults` are the errors it logged, which bad input must not make.
 */
export async function serveBadInput({ bodyClock }: { bodyClock?: Clock } = {}) {
  const clock = createSystemClock();
  const random = createSeededRandom(7);
  const store = createMemoryStore({ clock });
  await createSystemNamespaces({ store, clock, random });
  const watches = countWatches(store);
  const faults: string[] = [];
  const log = createLogger((level, message, fields) => {
    if (level === "error" || level === "warn") faults.push(`${message}: ${String(fields["error"])}`);
  });
  const handler = createHandler({ store, clock, random, log, metrics: noMetrics });
  const authority = await createAuthority({ clock }, { commonName: "bad-input", validForMs: HOUR_MS });
  const pair = await authority.issueServer({ names: [], addresses: ["127.0.0.1"], validForMs: HOUR_MS });
  const ca = authority.certificate;
  const server = await startServer(
    { handler, clock: bodyClock ?? clock, log },
    { host: "127.0.0.1", port: 0, tls: { ...pair, clientCa: ca }, stopMs: 2_000 },
  );
  const { port } = server.address;
  let session: ClientHttp2Session | undefined;
  const agent = new Agent({ keepAlive: false });

  /** One for all, and another after a test has let so much time pass that the server closed it. */
  function openSession(): ClientHttp2Session {
    if (session !== undefined && !session.closed && !session.destroyed) return session;
    // In MB. Otherwise the client would stop at a large body of its own before the server does.
    session = connect(`https://127.0.0.1:${port}`, { ca, maxSessionMemory: 256 });
    session.on("error", () => undefined); // the streams on it tell
    return session;
  }

  return {
    store,
    watches,
    faults,
    port,
    ca,
    send: (protocol: Protocol, sent: Sent) =>
      protocol === "http/2" ? sendHttp2(openSession(), sent) : sendHttp1({ port, ca, agent }, sent),
    /** Bytes on a connection of their own; resolves with all that came back once the server has closed it. */
    raw: (text: string) => sendRaw({ port, ca }, text),
    async stop() {
      session?.destroy();
      agent.destroy();
      await server.stop();
    },
  };
}

export type BadInputServer = Awaited<ReturnType<typeof serveBadInput>>;

/** How many watches are open at the store: the last thing that a watch lets go of. */
function countWatches(store: ObjectStore): { open: number } {
  const count = { open: 0 };
  const watch = store.watch.bind(store);
  store.watch = (options, wake) => {
    const opened = watch(options, wake);
    const close = opened.close.bind(opened);
    count.open++;
    opened.close = () => {
      count.open--;
      close();
    };
    return opened;
  };
  return count;
}

async function sendHttp1(
  target: { port: number; ca: string; agent: Agent },
  { method = "GET", path, headers = {}, type, body }: Sent,
): Promise<Answered> {
  const request = httpsRequest({
    host: "127.0.0.1",
    ...target,
    method,
    path,
    headers: {
      ...(type === undefined ? {} : { "content-type": type }),
      // Node sends the body of a DELETE without a word about its length.
      ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
      ...headers,
    },
  });
  const answer = once(request, "response") as Promise<[IncomingMessage]>;
  // A body that is refused half-way ends in a reset behind the answer; whoever got the answer is content.
  request.on("error", () => undefined);
  request.end(body);
  const [response] = await answer;
  const text = (await response.setEncoding("utf8").toArray()).join("");
  return { status: response.statusCode ?? 0, headers: response.headers, text };
}

async function sendHttp2(
  session: ClientHttp2Session,
  { method = "GET", path, headers = {}, type, body }: Sent,
): Promise<Answered> {
  const stream = session.request(
    {
      ":method": method,
      ":path": path,
      ...(type === undefined ? {} : { "content-type": type }),
      ...headers,
    },
    { endStream: body === undefined },
  );
  const answer = once(stream, "response") as Promise<[Record<string, unknown>]>;
  if (body !== undefined) stream.end(body);
  const [response] = await answer;
  let text = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  // An answer that comes before the body is whole is followed by a reset, which is no error of the answer; what is
  // left of the body would keep the stream open on this side.
  stream.on("error", () => undefined);
  if (!stream.readableEnded && !stream.closed) {
    await new Promise((resolve) => stream.once("end", resolve).once("close", resolve));
  }
  stream.destroy();
  return { status: Number(response[":status"]), headers: response, text };
}

async function sendRaw({ port, ca }: { port: number; ca: string }, bytes: string): Promise<string> {
  const socket = tlsConnect({ host: "127.0.0.1", port, ca, ALPNProtocols: ["http/1.1"] });
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  socket.on("error", () => undefined);
  socket.write(bytes);
  await new Promise((resolve) => socket.once("close", resolve));
  return text;
}
