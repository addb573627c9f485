import { expect, test } from "vitest";
import { createFencedTransport } from "./fenced-transport.ts";
import { createMemoryTransport } from "./memory-transport.ts";
import type { Method } from "./transport.ts";

function given() {
  const seen: string[] = [];
  const inner = createMemoryTransport(async ({ method }) => {
    seen.push(method);
    return { status: 200, headers: {}, body: "" };
  });
  const lease = { held: true };
  return { lease, seen, transport: createFencedTransport(inner, () => lease.held) };
}

test("while the lease is held everything passes", async () => {
  const { transport, seen } = given();

  for (const method of ["GET", "POST", "PATCH", "DELETE"] as const)
    await transport.request({ method, path: "/x" });

  expect(seen).toEqual(["GET", "POST", "PATCH", "DELETE"]);
});

for (const method of ["POST", "PUT", "PATCH", "DELETE"] satisfies Method[])
  test(`once it is lost, a ${method} is not sent, which the error says`, async () => {
    const { transport, seen, lease } = given();
    lease.held = false;

    await expect(transport.request({ method, path: "/x" })).rejects.toMatchObject({ code: "Unreachable" });
    await transport.request({ method: "GET", path: "/x" });

    expect(seen).toEqual(["GET"]);
  });
