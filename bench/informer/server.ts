import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createAuthority } from "../../src/apiserver/certificates.ts";
import { withType, type Kind } from "./kind.ts";
import { createNodes } from "./nodes.ts";
import { createPods } from "./pods.ts";
import { createVolumeAttachments } from "./volume-attachments.ts";

/**
 * The API server of the benchmark: TLS on loopback, HTTP/2 or HTTP/1.1 as the client likes, every object made
 * from its number when it is sent. It knows the four questions that informers and getters ask: a list (in pages
 * or whole), a streaming list, a watch (on which nothing ever happens), and one object by its name. Answers
 * are not compressed, for nobody.
 */
export interface Scale {
  readonly pods: number;
  readonly nodes: number;
  readonly volumeAttachments: number;
}

export interface Served {
  readonly server: string;
  /** PEM. */
  readonly ca: string;
}

const HOUR_MS = 3_600_000;

/** As a child of the benchmark: until its process ends. */
export async function serve(scale: Scale): Promise<Served> {
  return (await startServer(scale)).served;
}

export async function startServer(scale: Scale): Promise<{ served: Served; stop(): void }> {
  const kinds = [
    createPods({ count: scale.pods, nodes: scale.nodes }),
    createVolumeAttachments({ count: scale.volumeAttachments, nodes: scale.nodes }),
    createNodes({ count: scale.nodes }),
  ];
  const authority = await createAuthority(
    { clock: createSystemClock() },
    { commonName: "bench", validForMs: HOUR_MS },
  );
  const pair = await authority.issueServer({
    names: ["localhost"],
    addresses: ["127.0.0.1"],
    validForMs: HOUR_MS,
  });
  const server = createSecureServer({ allowHTTP1: true, key: pair.key, cert: pair.certificate });
  server.on("request", (request, response) => void answer(kinds, request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    served: { server: `https://127.0.0.1:${port}`, ca: authority.certificate },
    stop: () => void server.close(),
  };
}

async function answer(
  kinds: readonly Kind[],
  request: Http2ServerRequest,
  response: Http2ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url, "https://localhost");
  const collection = kinds.find(({ path }) => path === pathname);
  try {
    if (collection === undefined) sendObject(kinds, pathname, response);
    else if (searchParams.get("watch") !== "true") await sendList(collection, searchParams, response);
    else await sendWatch(collection, searchParams, response);
  } catch {
    // The client left in the middle.
    response.stream.destroy();
  }
}

const JSON_HEADERS = { "content-type": "application/json" };

/** The version of every collection: above that of any object in it. */
const VERSION = "9000000000";

function sendObject(kinds: readonly Kind[], pathname: string, response: Http2ServerResponse): void {
  const name = pathname.slice(pathname.lastIndexOf("/") + 1);
  const kind = kinds.find((kind) => kind.pathOf?.(kind.indexOf?.(name) ?? 0) === pathname);
  if (kind === undefined) {
    response.writeHead(404, JSON_HEADERS);
    response.end(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`);
    return;
  }
  const body = Buffer.from(withType(kind, kind.json(kind.indexOf?.(name) ?? 0)), "latin1");
  response.writeHead(200, { ...JSON_HEADERS, "content-length": body.length });
  response.end(body);
}

async function sendList(kind: Kind, query: URLSearchParams, response: Http2ServerResponse): Promise<void> {
  const start = Number(query.get("continue") ?? 0);
  const limit = Number(query.get("limit") ?? 0);
  const end = limit === 0 ? kind.count : Math.min(kind.count, start + limit);
  response.writeHead(200, JSON_HEADERS);
  await pipeline(Readable.from(inChunks(listPieces(kind, start, end)), QUEUE), response);
}

async function sendWatch(kind: Kind, query: URLSearchParams, response: Http2ServerResponse): Promise<void> {
  response.writeHead(200, JSON_HEADERS);
  // Both kinds of response have it; the types of HTTP/2's forget it.
  (response as unknown as ServerResponse).flushHeaders();
  if (query.get("sendInitialEvents") !== "true") return;
  await pipeline(Readable.from(inChunks(initialEvents(kind)), QUEUE), response, { end: false });
}

function* listPieces(kind: Kind, start: number, end: number): Generator<string> {
  const rest = kind.count - end;
  const more = rest === 0 ? "" : `,"continue":"${end}","remainingItemCount":${rest}`;
  yield `{"kind":"${kind.kind}List","apiVersion":"${kind.apiVersion}",`;
  yield `"metadata":{"resourceVersion":"${VERSION}"${more}},"items":[`;
  for (let index = start; index < end; index++) yield (index > start ? "," : "") + kind.json(index);
  yield "]}\n";
}

function* initialEvents(kind: Kind): Generator<string> {
  for (let index = 0; index < kind.count; index++)
    yield `{"type":"ADDED","object":${withType(kind, kind.json(index))}}\n`;
  const metadata = `{"resourceVersion":"${VERSION}","annotations":{"k8s.io/initial-events-end":"true"}}`;
  yield `{"type":"BOOKMARK","object":${withType(kind, `{"metadata":${metadata}}`)}}\n`;
}

/** Large enough that TLS and the loopback cost little a byte. */
const CHUNK_CHARACTERS = 64 * 1024;

/** Chunks made ahead of the socket. */
const QUEUE = { highWaterMark: 2 };

function* inChunks(pieces: Iterable<string>): Generator<Buffer> {
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length < CHUNK_CHARACTERS) continue;
    // All of it is ASCII.
    yield Buffer.from(text, "latin1");
    text = "";
  }
  if (text !== "") yield Buffer.from(text, "latin1");
}
