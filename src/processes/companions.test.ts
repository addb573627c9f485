import { expect, test } from "vitest";
import type { Client } from "../kube/client/client.ts";
import { KubeError } from "../kube/errors.ts";
import { refuseOriginals } from "./companions.ts";

const NOW = new Date("2026-01-01T00:10:00Z");

/** `later` is what stands there once somebody has waited. */
function withLease(of: string, spec: object, later = spec) {
  let waitedMs = 0;
  const get = async (_: unknown, { name }: { name: string }) => {
    if (name !== of) throw new KubeError("NotFound", "no such lease");
    return { metadata: { name }, spec: waitedMs === 0 ? spec : later };
  };
  const clock = { wall: () => NOW, sleep: async (ms: number) => void (waitedMs += ms) };
  return { client: { get: get as unknown as Client["get"] }, clock, waitedMs: () => waitedMs };
}

for (const [what, of, spec, refused] of [
  ["no Lease at all", "other", {}, false],
  [
    "a controller manager at work",
    "kube-controller-manager",
    { holderIdentity: "a", renewTime: "2026-01-01T00:09:55Z" },
    true,
  ],
  ["a scheduler at work", "kube-scheduler", { holderIdentity: "b", renewTime: "2026-01-01T00:09:55Z" }, true],
  [
    "one whose clock is ahead",
    "kube-scheduler",
    { holderIdentity: "b", renewTime: "2026-01-01T00:10:30Z" },
    true,
  ],
  ["one that let go", "kube-scheduler", { holderIdentity: "", renewTime: "2026-01-01T00:09:55Z" }, false],
  [
    "one that is long gone",
    "kube-scheduler",
    { holderIdentity: "b", renewTime: "2026-01-01T00:08:00Z" },
    false,
  ],
] as const)
  test(`${what}: ${refused ? "refused by name" : "starts"}`, async () => {
    const { client, clock } = withLease(of, spec);
    const start = refuseOriginals(client, clock, new AbortController().signal);

    if (refused) await expect(start).rejects.toThrow(`${of} works on this cluster`);
    else await start;
  });

test("one whose clock is an hour behind ours, and which renews: refused by name", async () => {
  const spec = { holderIdentity: "b", renewTime: "2025-12-31T23:10:00Z", leaseDurationSeconds: 15 };
  const later = { ...spec, renewTime: "2025-12-31T23:10:14Z" };
  const { client, clock, waitedMs } = withLease("kube-scheduler", spec, later);

  const start = refuseOriginals(client, clock, new AbortController().signal);

  await expect(start).rejects.toThrow("kube-scheduler works on this cluster");
  expect(waitedMs()).toBeLessThan(60_000);
});
