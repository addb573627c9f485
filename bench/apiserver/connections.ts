import { connect, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import type { Target } from "./server.ts";

/**
 * The plainest HTTP/2 client there is, because what it takes is part of every figure: no retries, no decoding, and
 * anything but success is the end of the measurement.
 */
export interface Connection {
  /** The whole answer. */
  send(method: string, path: string, body?: string): Promise<Buffer>;
  /** Resolves when its headers are here; `onData` gets what follows. */
  watch(path: string, onData: (chunk: Buffer) => void): Promise<void>;
  close(): void;
}

export function openConnection({ url, token }: Target): Connection {
  // In MB: a list of 100,000 objects waits in it while it is read.
  const session = connect(url, {
    rejectUnauthorized: false,
    maxSessionMemory: 1_000,
    settings: { initialWindowSize: 2 ** 20 },
  });
  session.on("error", () => undefined); // every stream on it tells
  session.setMaxListeners(0);
  const open = (method: string, path: string, hasBody: boolean) =>
    session.request(
      {
        ":method": method,
        ":path": path,
        authorization: `Bearer ${token}`,
        ...(hasBody ? { "content-type": "application/json" } : {}),
      },
      { endStream: !hasBody },
    );
  return {
    send: (method, path, body) => read(open(method, path, body !== undefined), `${method} ${path}`, body),
    watch: (path, onData) => follow(open("GET", path, false), path, onData),
    close: () => close(session),
  };
}

function read(stream: ClientHttp2Stream, what: string, body: string | undefined): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let status = 0;
    stream.on("error", reject);
    stream.on("response", (headers) => (status = Number(headers[":status"])));
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      const answer = Buffer.concat(chunks);
      if (status >= 200 && status < 300) resolve(answer);
      else reject(new Error(`${what}: ${status} ${answer.toString().slice(0, 300)}`));
    });
    if (body !== undefined) stream.end(body);
  });
}

function follow(stream: ClientHttp2Stream, path: string, onData: (chunk: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.on("error", reject);
    stream.on("response", (headers) => {
      if (headers[":status"] === 200) resolve();
      else reject(new Error(`watch ${path}: ${headers[":status"] ?? "?"}`));
    });
    stream.on("data", onData);
  });
}

function close(session: ClientHttp2Session): void {
  session.destroy();
}
