import { expect, test } from "vitest";
import { createFaultyHandler } from "../../../test/contract/faulty-handler.ts";
import { transportContract } from "../../../test/contract/transport.ts";
import { createMemoryTransport } from "./memory-transport.ts";

transportContract(
  "in memory",
  async () => {
    const server = createFaultyHandler();
    const transport = createMemoryTransport(server.handler);
    return {
      transport,
      server,
      withCredentials: (credentials) => createMemoryTransport(server.handler, { credentials }),
      close: () => transport.close(),
    };
  },
  { can: [] },
);

test("the handler learns who calls, and that the caller gave up", async () => {
  const reason = new Error("deadline");
  const caller = new AbortController();
  let gaveUp: unknown;
  let called: () => void = () => {};
  const handling = new Promise<void>((resolve) => (called = resolve));
  const transport = createMemoryTransport(
    ({ user, signal }) =>
      new Promise((_resolve, reject) => {
        expect(user).toEqual({ name: "ada", groups: ["ops"] });
        called();
        signal.addEventListener("abort", () => {
          gaveUp = signal.reason;
          reject(new Error("stopped"));
        });
      }),
    { user: { name: "ada", groups: ["ops"] } },
  );

  const waiting = transport.request({ method: "GET", path: "/it", signal: caller.signal });
  await handling;
  caller.abort(reason);

  await expect(waiting).rejects.toBe(reason);
  expect(gaveUp).toBe(reason);
});

test("the source of a streamed body is returned when its reader leaves", async () => {
  let returned = false;
  const transport = createMemoryTransport(async () => ({
    status: 200,
    headers: {},
    body: (async function* () {
      try {
        yield "1";
        yield "2";
      } finally {
        returned = true;
      }
    })(),
  }));

  for await (const _chunk of (await transport.stream({ method: "GET", path: "/it" })).body) break;

  expect(returned).toBe(true);
});

test("a character split between two chunks is whole again in the text", async () => {
  const bytes = Buffer.from("✓");
  const transport = createMemoryTransport(async () => ({
    status: 200,
    headers: {},
    body: (async function* () {
      yield bytes.subarray(0, 1);
      yield bytes.subarray(1);
    })(),
  }));

  const response = await transport.request({ method: "GET", path: "/it" });

  expect(response.body).toBe("✓");
});
