import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Credentials } from "../../src/kube/transport/access.ts";
import type { Transport, TransportStream } from "../../src/kube/transport/transport.ts";
import {
  answer,
  cutBeforeHeaders,
  cutMidBody,
  cutWatch,
  duplicateEvents,
  expiredAtOnce,
  expiredInStream,
  garbageLine,
  goAway,
  halfLine,
  halfOpen,
  reorderedEvents,
  resetStream,
  scripted,
  silentWatch,
  status,
  tooManyRequests,
  watchLines,
  type Behaviour,
  type FaultScript,
} from "./faults.ts";

/** What a transport needs around it to be put through the contract. */
export interface TransportFixture {
  readonly transport: Transport;
  readonly server: FaultScript;
  /** The same server, reached with these credentials. */
  withCredentials(credentials: Credentials): Transport;
  /** A transport to where nobody listens. */
  unreachable?(): Promise<Transport>;
  close(): Promise<void>;
}

/** What only some fixtures can express; a case that needs one is named where it is left out. */
export type Capability = "unreachable" | "streams on one connection" | "go away";

/** The contract of `src/kube/transport.ts`, for every implementation of it. */
export function transportContract(
  name: string,
  makeFixture: () => Promise<TransportFixture>,
  { can }: { can: readonly Capability[] },
): void {
  describe(`transport contract: ${name}`, () => {
    let fixture: TransportFixture;
    let transport: Transport;
    let server: FaultScript;

    beforeEach(async () => {
      fixture = await makeFixture();
      ({ transport, server } = fixture);
    });
    afterEach(() => fixture.close());

    const testWith = (capability: Capability, claim: string, body: () => Promise<void>) => {
      if (can.includes(capability)) test(claim, body);
      else
        process.stdout.write(
          `left out: transport contract, ${name}: ${claim} (cannot express: ${capability})\n`,
        );
    };
    const get = (path: string, signal?: AbortSignal) => transport.request({ method: "GET", path, signal });
    const watch = (path: string, signal?: AbortSignal) => transport.stream({ method: "GET", path, signal });
    const failure = (work: Promise<unknown>): Promise<unknown> =>
      work.then(notThrown, (error: unknown) => error);

    describe("a request", () => {
      test("arrives as it was sent, and the answer comes back as it was given", async () => {
        server.on(
          "/api/v1/pods",
          answer({ status: 201, headers: { "X-Kind": "pod" }, body: '{"name":"grün ✓"}' }),
        );

        const response = await transport.request({
          method: "POST",
          path: "/api/v1/pods?dryRun=All&fieldManager=a%20b",
          headers: { "content-type": "application/json", "x-request": "7" },
          body: '{"größe":"1 KiB"}',
        });

        expect(response).toMatchObject({ status: 201, body: '{"name":"grün ✓"}' });
        expect(response.headers["x-kind"]).toBe("pod");
        expect(server.seen).toHaveLength(1);
        expect(server.seen[0]).toMatchObject({
          method: "POST",
          path: "/api/v1/pods?dryRun=All&fieldManager=a%20b",
          body: '{"größe":"1 KiB"}',
        });
        expect(server.seen[0]!.headers).toMatchObject({
          "content-type": "application/json",
          "x-request": "7",
        });
      });

      for (const [method, body] of [
        ["GET", undefined],
        ["POST", "{}"],
        ["PUT", "{}"],
        ["PATCH", "{}"],
        ["DELETE", undefined],
        ["DELETE", '{"kind":"DeleteOptions"}'],
      ] as const) {
        test(`${method} ${body === undefined ? "without" : "with"} a body arrives`, async () => {
          await transport.request({ method, path: "/it", ...(body === undefined ? {} : { body }) });

          expect(server.seen[0]).toMatchObject({ method, body: body ?? "" });
        });
      }

      for (const [code, behaviour] of [
        [301, answer({ status: 301, headers: { location: "/elsewhere" } })],
        [404, status(404, "NotFound")],
        [410, expiredAtOnce()],
        [429, tooManyRequests(7)],
        [500, status(500, "InternalError")],
      ] as const) {
        test(`${code} is an answer, given once and not followed or repeated`, async () => {
          server.on("/it", behaviour);

          const response = await get("/it");

          expect(response.status).toBe(code);
          expect(server.seen).toHaveLength(1);
          if (code === 429) expect(response.headers["retry-after"]).toBe("7");
          if (code === 301) expect(response.headers["location"]).toBe("/elsewhere");
        });
      }

      test("a storm of 429 is a hundred answers", async () => {
        server.on("/it", tooManyRequests(1));

        const responses = await Promise.all(Array.from({ length: 100 }, () => get("/it")));

        expect(responses.filter((response) => response.status === 429)).toHaveLength(100);
        expect(server.seen).toHaveLength(100);
      });

      test("a header sent several times is joined", async () => {
        server.on("/it", answer({ headers: { warning: ["299 - one", "299 - two"] } }));

        expect((await get("/it")).headers["warning"]).toBe("299 - one, 299 - two");
      });

      test("an empty answer is an empty text", async () => {
        server.on("/it", answer({ status: 200 }));

        expect(await get("/it")).toMatchObject({ status: 200, body: "" });
      });

      test("8 MiB arrive whole, characters of several bytes included", async () => {
        const body = "ä✓𝄞-".repeat((8 * 1024 * 1024) / 10);
        server.on("/it", answer({ body }));

        const response = await get("/it");

        expect(response.body === body).toBe(true);
      });

      test("8 MiB can be sent", async () => {
        const body = "ä✓𝄞-".repeat((8 * 1024 * 1024) / 10);

        await transport.request({ method: "PUT", path: "/it", body });

        expect(server.seen[0]!.body === body).toBe(true);
      });

      test("a connection cut before the answer is lost, not repeated, and the next request works", async () => {
        server.on("/it", cutBeforeHeaders(), answer({ body: "again" }));

        const error = await failure(transport.request({ method: "POST", path: "/it", body: "{}" }));

        expect(error).toMatchObject({ name: "KubeError", code: "ConnectionLost", outcomeUnknown: true });
        expect(String(error)).toContain("POST /it");
        expect(server.seen).toHaveLength(1);
        expect((await get("/it")).body).toBe("again");
      });

      test("a connection cut within the answer is lost", async () => {
        server.on("/it", cutMidBody('{"items":['));

        expect(await failure(get("/it"))).toMatchObject({ code: "ConnectionLost", outcomeUnknown: true });
      });

      testWith(
        "unreachable",
        "where nobody listens it is unreachable, so certainly not carried out",
        async () => {
          const nowhere = await fixture.unreachable!();

          const error = await failure(nowhere.request({ method: "POST", path: "/it", body: "{}" }));

          expect(error).toMatchObject({ name: "KubeError", code: "Unreachable", outcomeUnknown: false });
          expect(String(error)).toMatch(/POST \/it: connect to .*check that the API server runs/);
          await nowhere.close();
        },
      );
    });

    describe("an aborted signal", () => {
      test("that was aborted before keeps the request from being sent", async () => {
        const reason = new Error("never mind");

        const error = await failure(get("/it", AbortSignal.abort(reason)));

        expect(error).toBe(reason);
        expect(server.seen).toHaveLength(0);
      });

      test("ends the wait for an answer that never comes, and the next request works", async () => {
        server.on("/it", halfOpen(), answer({ body: "awake" }));
        const deadline = new AbortController();
        const reason = new Error("deadline");
        const waiting = failure(get("/it", deadline.signal));
        await server.arrived("/it");

        deadline.abort(reason);

        expect(await waiting).toBe(reason);
        expect((await get("/it")).body).toBe("awake");
      });

      test("ends the wait for the rest of an answer, and the server notices", async () => {
        const { behaviour, reply } = scripted();
        server.on("/it", behaviour);
        const deadline = new AbortController();
        const waiting = failure(get("/it", deadline.signal));
        await (await reply).write("half");

        deadline.abort(new Error("deadline"));

        expect(await waiting).toBe(deadline.signal.reason);
        await (
          await reply
        ).closed;
      });

      test("ends the wait for a stream's headers", async () => {
        server.on("/it", halfOpen());
        const deadline = new AbortController();
        const waiting = failure(watch("/it", deadline.signal));
        await server.arrived("/it");

        deadline.abort(new Error("deadline"));

        expect(await waiting).toBe(deadline.signal.reason);
      });

      test("ends the wait for a stream's next chunk, and the server notices", async () => {
        const { behaviour, reply } = scripted();
        server.on("/it", behaviour);
        const deadline = new AbortController();
        const stream = await watch("/it", deadline.signal);
        const waiting = failure(textOf(stream));

        deadline.abort(new Error("deadline"));

        expect(await waiting).toBe(deadline.signal.reason);
        await (
          await reply
        ).closed;
      });

      test("ends the wait for credentials", async () => {
        const slow: Credentials = { current: () => new Promise(() => {}), rejected: () => false };
        const deadline = new AbortController();
        const waiting = failure(
          fixture.withCredentials(slow).request({ method: "GET", path: "/it", signal: deadline.signal }),
        );

        deadline.abort(new Error("deadline"));

        expect(await waiting).toBe(deadline.signal.reason);
        expect(server.seen).toHaveLength(0);
      });

      test("after the answer changes nothing", async () => {
        const deadline = new AbortController();
        const response = await get("/it", deadline.signal);

        deadline.abort(new Error("late"));

        expect(response.body).toBe("{}");
        expect((await get("/it")).status).toBe(200);
      });
    });

    describe("a stream", () => {
      test("is here with its headers, before any of its body", async () => {
        server.on("/it", silentWatch());

        const stream = await watch("/it?watch=true");

        expect(stream.status).toBe(200);
        expect(stream.headers["content-type"]).toBe("application/json");
        await leave(stream);
      });

      test("gives each chunk when it comes, not when it is complete", async () => {
        const { behaviour, reply } = scripted();
        server.on("/it", behaviour);
        const body = (await watch("/it")).body[Symbol.asyncIterator]();

        for (const piece of ['{"ty', 'pe":"ADDED"}', "\n"]) {
          await (await reply).write(piece);

          expect(Buffer.from((await body.next()).value).toString()).toBe(piece);
        }
        await body.return?.();
      });

      for (const [what, behaviour, expected] of [
        ["events", watchLines("1", "2"), "1\n2\n"],
        ["an expired version in the stream", expiredInStream("1"), /^1\n\{"type":"ERROR".*"code":410\}\}\n$/],
        ["duplicates", duplicateEvents("1", "2"), "1\n1\n2\n2\n"],
        ["events out of order", reorderedEvents("1", "2"), "2\n1\n"],
        ["a line of garbage", garbageLine("1", "2"), "1\n}{ not json\n2\n"],
        ["half a line before the end", halfLine("1", "2345"), "1\n23"],
      ] as const) {
        test(`passes ${what} on as bytes and ends where the server ended it`, async () => {
          server.on("/it", behaviour);

          expect(await textOf(await watch("/it"))).toEqual(
            typeof expected === "string" ? expected : expect.stringMatching(expected),
          );
        });
      }

      test("that is refused is an answer with a body to read", async () => {
        server.on("/it", expiredAtOnce());

        const stream = await watch("/it");

        expect(stream.status).toBe(410);
        expect(JSON.parse(await textOf(stream))).toMatchObject({ reason: "Expired" });
      });

      for (const [what, behaviour] of [
        ["connection is cut", cutWatch("1", "2")],
        ["stream is reset", resetStream("1", "2")],
      ] as const) {
        test(`whose ${what} gives what had arrived and then fails as lost`, async () => {
          server.on("/it", behaviour);
          const received: string[] = [];

          const error = await failure(collect(await watch("/it"), received));

          expect(received.join("")).toBe("1\n2\n");
          expect(error).toMatchObject({ name: "KubeError", code: "ConnectionLost" });
          expect(String(error)).toContain("GET /it");
        });
      }

      test("cut before its headers is lost", async () => {
        server.on("/it", cutBeforeHeaders());

        expect(await failure(watch("/it"))).toMatchObject({ code: "ConnectionLost" });
      });

      test("that is left closes at the server", async () => {
        const { behaviour, reply } = scripted();
        server.on("/it", behaviour);
        const stream = await watch("/it");
        await (await reply).write("1\n");

        for await (const chunk of stream.body) {
          expect(Buffer.from(chunk).toString()).toBe("1\n");
          break;
        }

        await (
          await reply
        ).closed;
      });

      test("that is left by an error closes at the server, and the error stays what it was", async () => {
        const { behaviour, reply } = scripted();
        server.on("/it", behaviour);
        const stream = await watch("/it");
        await (await reply).write("1\n");
        const mistake = new Error("mistake");

        const error = await failure(
          (async () => {
            for await (const _chunk of stream.body) throw mistake;
          })(),
        );

        expect(error).toBe(mistake);
        await (
          await reply
        ).closed;
      });

      test("holds the server back while its reader is busy", async () => {
        const chunk = Buffer.alloc(64 * 1024, "x");
        const floodBytes = 64 * 1024 * 1024;
        const flood = floodOf(chunk, floodBytes);
        server.on("/it", flood.behaviour);
        const stream = await watch("/it");
        const body = stream.body[Symbol.asyncIterator]();
        await body.next();

        // Until it stands still while other exchanges still get through.
        for (let before = -1; before !== flood.written();) {
          before = flood.written();
          for (let round = 0; round < 20; round++) await get("/other");
        }

        expect(flood.written()).toBeLessThan(floodBytes / 2);
        await body.return?.();
      });

      test("loses nothing to a reader that is slower than the server", async () => {
        const line = `${"x".repeat(1_023)}\n`;
        server.on("/it", async (reply) => {
          reply.head(200);
          for (let index = 0; index < 4_096; index++) await reply.write(line);
          reply.end();
        });
        let bytes = 0;

        for await (const chunk of (await watch("/it")).body) {
          bytes += chunk.byteLength;
          if (bytes % 7 === 0) await get("/other");
        }

        expect(bytes).toBe(4_096 * 1_024);
      });
    });

    describe("many at a time", () => {
      test("200 watches and 200 requests all get on, also those that write", async () => {
        const opened: Promise<TransportStream>[] = [];
        server.on("/watch", silentWatch());
        for (let index = 0; index < 200; index++) opened.push(watch("/watch"));
        const requests = Array.from({ length: 200 }, (_, index) =>
          transport.request({
            method: index % 2 === 0 ? "GET" : "POST",
            path: "/it",
            ...(index % 2 === 0 ? {} : { body: "{}" }),
          }),
        );

        const answers = await Promise.all(requests);
        const streams = await Promise.all(opened);

        expect(answers.filter((response) => response.status === 200)).toHaveLength(200);
        await Promise.all(streams.map(leave));
      });

      testWith(
        "streams on one connection",
        "a stream that is left or reset takes no other with it",
        async () => {
          const kept = scripted();
          server.on("/kept", kept.behaviour);
          server.on("/left", silentWatch());
          server.on("/reset", resetStream("1"));
          const stream = await watch("/kept");
          const first = stream.body[Symbol.asyncIterator]();

          await leave(await watch("/left"));
          expect(await failure(textOf(await watch("/reset")))).toMatchObject({ code: "ConnectionLost" });
          await (await kept.reply).write("still here");

          expect(Buffer.from((await first.next()).value).toString()).toBe("still here");
          await first.return?.();
        },
      );

      testWith(
        "go away",
        "GOAWAY moves what comes next elsewhere and lets what is under way finish",
        async () => {
          const kept = scripted();
          server.on("/kept", kept.behaviour);
          server.on("/last", goAway({ body: "done" }));
          const stream = await watch("/kept");

          const last = await transport.request({ method: "POST", path: "/last", body: "{}" });
          const next = await get("/next");
          await (await kept.reply).write("still here");
          (await kept.reply).end();

          expect(last.body).toBe("done");
          expect(next.status).toBe(200);
          expect(await textOf(stream)).toBe("still here");
        },
      );
    });

    describe("credentials", () => {
      const refreshable = (
        ...tokens: readonly string[]
      ): Credentials & { readonly refused: (string | undefined)[] } => {
        const refused: (string | undefined)[] = [];
        return {
          refused,
          current: async () => ({
            authorization: `Bearer ${tokens[Math.min(refused.length, tokens.length - 1)]!}`,
          }),
          rejected(credential) {
            refused.push(credential.authorization);
            return refused.length < tokens.length;
          },
        };
      };
      const only =
        (token: string): Behaviour =>
        (reply, request) =>
          (request.headers["authorization"] === `Bearer ${token}`
            ? answer({ body: "in" })
            : status(401, "Unauthorized"))(reply, request);

      test("are sent, and refreshed once when the server no longer knows them, with the same body", async () => {
        server.on("/it", only("new"));
        const credentials = refreshable("old", "new");

        const response = await fixture
          .withCredentials(credentials)
          .request({ method: "POST", path: "/it", body: '{"a":1}' });

        expect(response.body).toBe("in");
        expect(credentials.refused).toEqual(["Bearer old"]);
        expect(server.seen.map(({ body }) => body)).toEqual(['{"a":1}', '{"a":1}']);
      });

      test("of a stream are refreshed the same way", async () => {
        server.on("/it", only("new"));

        const stream = await fixture
          .withCredentials(refreshable("old", "new"))
          .stream({ method: "GET", path: "/it" });

        expect(await textOf(stream)).toBe("in");
      });

      test("that stay unknown are tried twice and no more", async () => {
        server.on("/it", only("none of these"));

        const response = await fixture
          .withCredentials(refreshable("one", "two", "three"))
          .request({ method: "GET", path: "/it" });

        expect(response.status).toBe(401);
        expect(server.seen).toHaveLength(2);
      });

      test("that cannot be refreshed make 401 the answer", async () => {
        server.on("/it", only("other"));

        const response = await fixture
          .withCredentials(refreshable("mine"))
          .request({ method: "GET", path: "/it" });

        expect(response.status).toBe(401);
        expect(server.seen).toHaveLength(1);
      });

      test("never appear in an error", async () => {
        server.on("/it", cutBeforeHeaders());

        const error = await failure(
          fixture.withCredentials(refreshable("opensesame")).request({ method: "GET", path: "/it" }),
        );

        expect(error).toMatchObject({ code: "ConnectionLost" });
        expect(wholeText(error)).not.toContain("opensesame");
      });
    });

    describe("after close", () => {
      test("streams are cut as lost, requests refused as never sent, and closing again is nothing", async () => {
        server.on("/it", silentWatch());
        const stream = await watch("/it");
        const waiting = failure(textOf(stream));

        await transport.close();

        expect(await waiting).toMatchObject({ code: "ConnectionLost" });
        expect(await failure(get("/it"))).toMatchObject({ code: "Unreachable" });
        expect(await failure(watch("/it"))).toMatchObject({ code: "Unreachable" });
        await transport.close();
      });

      test("a request under way is cut, in doubt", async () => {
        server.on("/it", halfOpen());
        const waiting = failure(get("/it"));
        await server.arrived("/it");

        await transport.close();

        expect(await waiting).toMatchObject({ code: "ConnectionLost" });
      });
    });
  });
}

/** Writes as fast as it may; counts what the transport took. */
function floodOf(chunk: Uint8Array, total: number): { behaviour: Behaviour; written: () => number } {
  let written = 0;
  return {
    written: () => written,
    behaviour: async (reply) => {
      reply.head(200);
      while (written < total) {
        await reply.write(chunk);
        written += chunk.byteLength;
      }
      reply.end();
    },
  };
}

async function textOf(stream: TransportStream): Promise<string> {
  const received: string[] = [];
  await collect(stream, received);
  return received.join("");
}

async function collect(stream: TransportStream, into: string[]): Promise<void> {
  for await (const chunk of stream.body) into.push(Buffer.from(chunk).toString("utf8"));
}

async function leave(stream: TransportStream): Promise<void> {
  await stream.body[Symbol.asyncIterator]().return?.();
}

function notThrown(): never {
  throw new Error("it succeeded, and should have failed");
}

/** Message, stack, causes and own fields: everywhere a secret could hide. */
function wholeText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return `${error.stack ?? ""} ${JSON.stringify(error)} ${error.cause === undefined ? "" : wholeText(error.cause)}`;
}
