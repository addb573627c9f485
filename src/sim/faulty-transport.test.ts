import { expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import type { Method, Transport } from "../kube/transport/transport.ts";
import { createFaultyTransport, NO_FAULTS } from "./faulty-transport.ts";
import { SimScheduler } from "./scheduler.ts";

test("409 is an answer to what replaces an object, and to nothing else", async () => {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const arrived: Method[] = [];
  const inner = {
    request: async ({ method }) => {
      arrived.push(method);
      return { status: 200, headers: {}, body: "{}" };
    },
  } as Partial<Transport> as Transport;
  const deps = { clock: scheduler.createClock(), random: createSeededRandom(2) };
  const transport = createFaultyTransport(inner, deps, () => ({ ...NO_FAULTS, conflict: 1 }));
  const answers: [Method, number][] = [];

  for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"] as const)
    void transport
      .request({ method, path: "/x", headers: {} })
      .then(({ status }) => answers.push([method, status]));
  await scheduler.runFor(1_000);

  expect(Object.fromEntries(answers)).toEqual({ GET: 200, POST: 200, PUT: 409, PATCH: 409, DELETE: 200 });
  expect(arrived.sort()).toEqual(["DELETE", "GET", "POST"]);
});
