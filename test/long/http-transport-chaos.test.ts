import { expect, test } from "vitest";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import type { Random } from "../../src/base/random.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import type { Transport } from "../../src/kube/transport/transport.ts";
import {
  answer,
  cutBeforeHeaders,
  cutMidBody,
  cutWatch,
  goAway,
  halfOpen,
  resetStream,
  silentWatch,
  tooManyRequests,
  watchLines,
} from "../contract/faults.ts";
import type { FaultyServer } from "../contract/faulty-server.ts";
import { createLoopback } from "../contract/loopback.ts";

const BEHAVIOURS = [
  answer({ body: "{}" }),
  answer({ body: "x".repeat(200_000) }),
  tooManyRequests(1),
  watchLines("1", "2"),
  silentWatch(),
  halfOpen(),
  cutBeforeHeaders(),
  cutMidBody("half"),
  cutWatch("1"),
  resetStream("1"),
  goAway({ body: "last" }),
];

const CLIENTS = 20;
const EXCHANGES_EACH = 25;

for (const protocol of ["http/1.1", "https/1.1", "https/2"] as const) {
  for (const seed of [1, 2]) {
    test(`${protocol}, seed ${seed}: whatever the server does, each exchange ends and none is carried out twice`, async () => {
      const random = createSeededRandom(`${protocol}/${seed}`);
      const loopback = await createLoopback();
      const server = await loopback.serve({ protocol, streamsMax: 10 });
      const transport = loopback.connect(server.url);

      const endings = await Promise.all(
        Array.from({ length: CLIENTS }, async (_, client) => {
          const ended: string[] = [];
          for (let turn = 0; turn < EXCHANGES_EACH; turn++) {
            ended.push(
              await exchange(random.fork(`${client}/${turn}`), {
                server,
                transport,
                path: `/${client}/${turn}`,
              }),
            );
          }
          return ended;
        }),
      );

      // 500 exchanges over 11 behaviours: an ending that never came about would show that nothing was tried.
      expect(new Set(endings.flat())).toEqual(new Set(["answered", "left", "ConnectionLost", "given up"]));
      expect(new Set(server.seen.map(({ path }) => path)).size).toBe(server.seen.length);
      await loopback.close();
    });
  }
}

/** One request or stream, given up on arrival if the server will never end it, and sometimes when it would. */
async function exchange(
  random: Random,
  { server, transport, path }: { server: FaultyServer; transport: Transport; path: string },
): Promise<string> {
  const behaviour = random.int(BEHAVIOURS.length);
  const neverEnds = behaviour === 4 || behaviour === 5;
  server.on(path, BEHAVIOURS[behaviour]!);
  const caller = new AbortController();
  const request = {
    path,
    signal: caller.signal,
    ...(random.int(2) === 0 ? ({ method: "GET" } as const) : ({ method: "POST", body: "{}" } as const)),
  };
  if (neverEnds || random.int(8) === 0) {
    void server.arrived(path).then(() => caller.abort(new Error("given up")));
  }
  try {
    if (random.int(2) === 0) await transport.request(request);
    else if (await readSome(random, (await transport.stream(request)).body)) return "left";
    return "answered";
  } catch (error) {
    if (error === caller.signal.reason) return "given up";
    // A request that GOAWAY met three times is told to be sent again by whoever wants it.
    if (isKubeError(error, "Unreachable")) return "ConnectionLost";
    if (isKubeError(error)) return error.code;
    throw error;
  }
}

async function readSome(random: Random, body: AsyncIterable<Uint8Array>): Promise<boolean> {
  for await (const _chunk of body) if (random.int(4) === 0) return true;
  return false;
}
