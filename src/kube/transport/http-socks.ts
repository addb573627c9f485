import { isIPv4, type Socket } from "node:net";
import { DialError } from "./http-errors.ts";
import { event, openTcp, targetOf, type Target, type Waiting } from "./http-socket.ts";

const VERSION = 5;
const DEFAULT_PORT = 1080;
const NO_LOGIN = 0;
const USER_AND_PASSWORD = 2;
const CONNECT = 1;
const IPV4 = 1;
const DOMAIN = 3;
const IPV6 = 4;

/** RFC 1928, section 6, by number. */
const REPLIES = [
  "succeeded",
  "general failure",
  "not allowed by its rules",
  "network unreachable",
  "host unreachable",
  "connection refused",
  "TTL expired",
  "command not supported",
  "address type not supported",
];

/** A SOCKS 5 proxy as RFC 1928 describes it, with the login of RFC 1929 where the URL has one. */
export async function socksTunnel(proxy: URL, target: Target, signal: AbortSignal): Promise<Socket> {
  const at = targetOf(proxy, DEFAULT_PORT);
  const waiting = { peer: `proxy ${at.host}:${at.port}`, signal };
  const socket = await openTcp(at, signal);
  try {
    await greet(socket, proxy, waiting);
    socket.write(connectCommand(target));
    await readReply(socket, target, waiting);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

async function greet(socket: Socket, proxy: URL, waiting: Waiting): Promise<void> {
  const login = proxy.username === "" ? NO_LOGIN : USER_AND_PASSWORD;
  socket.write(Buffer.from([VERSION, 1, login]));
  const [version, chosen] = await read(socket, 2, waiting);
  if (version !== VERSION)
    throw new DialError(`connect to ${waiting.peer}: it does not speak SOCKS 5; check proxy-url`);
  if (chosen !== login) {
    throw new DialError(
      `connect to ${waiting.peer}: it wants another login; put user and password into proxy-url`,
    );
  }
  if (login === USER_AND_PASSWORD) await logIn(socket, proxy, waiting);
}

async function logIn(socket: Socket, proxy: URL, waiting: Waiting): Promise<void> {
  const user = Buffer.from(decodeURIComponent(proxy.username));
  const password = Buffer.from(decodeURIComponent(proxy.password));
  socket.write(
    Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([password.length]), password]),
  );
  const [, status] = await read(socket, 2, waiting);
  if (status !== 0)
    throw new DialError(`connect to ${waiting.peer}: it refused user and password; check proxy-url`);
}

function connectCommand({ host, port }: Target): Buffer {
  const name = Buffer.from(host);
  const address = isIPv4(host)
    ? Buffer.from([IPV4, ...host.split(".").map(Number)])
    : Buffer.concat([Buffer.from([DOMAIN, name.length]), name]);
  return Buffer.concat([Buffer.from([VERSION, CONNECT, 0]), address, Buffer.from([port >> 8, port & 0xff])]);
}

async function readReply(socket: Socket, { host, port }: Target, waiting: Waiting): Promise<void> {
  const [, reply = 1, , type] = await read(socket, 4, waiting);
  if (reply !== 0) {
    throw new DialError(`connect to ${host}:${port}: ${waiting.peer} answered "${REPLIES[reply] ?? reply}"`);
  }
  // The address it bound for us has no use here but stands before the first byte of the tunnel.
  const addressBytes = type === IPV4 ? 4 : type === IPV6 ? 16 : (await read(socket, 1, waiting)).readUInt8(0);
  await read(socket, addressBytes + 2, waiting);
}

/** Exactly `count` bytes; what follows them stays in the socket for TLS. */
async function read(socket: Socket, count: number, waiting: Waiting): Promise<Buffer> {
  for (;;) {
    const bytes = socket.read(count) as Buffer | null;
    if (bytes !== null) return bytes;
    await event(socket, "readable", waiting);
  }
}
