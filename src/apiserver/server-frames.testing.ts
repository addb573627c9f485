import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";

/** For tests: an HTTP/2 client that sends what it is told to, frame by frame, and nothing else by itself. */
export interface FrameClient {
  readonly socket: TLSSocket;
  /** Everything the server sent so far. */
  readonly frames: readonly Frame[];
  /** The preface and SETTINGS, with which every client begins. `unlimited`: the server may send all it has. */
  begin(options?: { unlimited: boolean }): void;
  /** A request without a body, or the beginning of one with. */
  request(streamId: number, request: { method: string; path: string; endStream: boolean }): void;
  data(streamId: number, bytes: number): void;
  ping(): void;
  /** Resolves with the first frame, past or to come, that fits; fails when the connection ends before. */
  frame(type: keyof typeof TYPES, streamId?: number): Promise<Frame>;
  readonly closed: Promise<unknown>;
}

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

const TYPES = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, window: 8 } as const;
const END_STREAM = 1;
const END_HEADERS = 4;
/** What a peer takes unless its SETTINGS say otherwise. */
const FRAME_BYTES_MAX = 16_384;

export async function connectFrames(target: { port: number; ca: string }): Promise<FrameClient> {
  const socket = connect({ host: "127.0.0.1", ...target, ALPNProtocols: ["h2"] });
  socket.on("error", () => undefined); // "close" follows
  // Otherwise every small frame waits 40 ms for an acknowledgement.
  socket.setNoDelay(true);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const frames: Frame[] = [];
  const waiting = new Set<() => void>();
  await once(socket, "secureConnect");
  let received: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    received = takeFrames(Buffer.concat([received, chunk]), frames);
    for (const look of waiting) look();
  });
  const send = (type: keyof typeof TYPES, flags: number, streamId: number, payload: Buffer) =>
    socket.write(encodeFrame(TYPES[type], flags, streamId, payload));

  return {
    socket,
    frames,
    closed,
    begin({ unlimited } = { unlimited: false }) {
      socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
      // INITIAL_WINDOW_SIZE of streams, then the window of the connection, which begins with 65,535.
      send("settings", 0, 0, Buffer.from(unlimited ? "00047fffffff" : "", "hex"));
      if (unlimited) send("window", 0, 0, Buffer.from("7fff0000", "hex"));
    },
    request(streamId, { method, path, endStream }) {
      const headers = { ":method": method, ":scheme": "https", ":path": path, ":authority": "a" };
      send("headers", END_HEADERS | (endStream ? END_STREAM : 0), streamId, encodeHeaders(headers));
    },
    data(streamId, bytes) {
      for (let left = bytes; left > 0; left -= FRAME_BYTES_MAX) {
        send("data", 0, streamId, Buffer.alloc(Math.min(left, FRAME_BYTES_MAX), "x"));
      }
    },
    ping: () => void send("ping", 0, 0, Buffer.alloc(8)),
    frame: (type, streamId = 0) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = frames.find((frame) => frame.type === TYPES[type] && frame.streamId === streamId);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
        void closed.then(() => reject(new Error(`the connection ended without ${type} on ${streamId}`)));
      }),
  };
}

/** Takes whole frames off the front and gives back the rest. */
function takeFrames(bytes: Buffer, frames: Frame[]): Buffer {
  let rest = bytes;
  while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
    const end = 9 + rest.readUIntBE(0, 3);
    frames.push({
      type: rest.readUInt8(3),
      flags: rest.readUInt8(4),
      streamId: rest.readUInt32BE(5) & 0x7fff_ffff,
      payload: rest.subarray(9, end),
    });
    rest = rest.subarray(end);
  }
  return rest;
}

function encodeFrame(type: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** HPACK at its plainest: each field literal, not indexed, names and values below 127 bytes. */
function encodeHeaders(headers: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [
      Buffer.from([0, name.length]),
      Buffer.from(name),
      Buffer.from([value.length]),
      Buffer.from(value),
    ]),
  );
}
