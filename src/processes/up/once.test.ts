import { expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import type { Client } from "../../kube/client/client.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { parseManifest } from "./manifest.ts";
import { applyOnce, type OnceDeps } from "./once.ts";

const CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: settings }\n";

/** A server that never answers a write; what is read is not there. */
function given() {
  const scheduler = new SimScheduler(createSeededRandom("once"));
  const client = {
    patch: (...[, , , options]: Parameters<Client["patch"]>) =>
      new Promise((_, reject) => {
        options?.signal?.addEventListener("abort", () => reject(options.signal?.reason as Error));
      }),
    get: () => Promise.reject(new Error("not there")),
  } as unknown as Client;
  const deps: OnceDeps = {
    client,
    clock: scheduler.createClock(),
    random: createSeededRandom("once"),
    report: () => undefined,
    waits: async () => ({ waits: [], nodePages: [], notes: [] }),
  };
  return { scheduler, deps };
}

test("a step that does not end is given up after its time, on the clock that was handed in", async () => {
  const { scheduler, deps } = given();
  const signal = new AbortController().signal;
  let late: readonly string[] | undefined;

  const done = applyOnce(deps, parseManifest("f.yaml", CONFIG_MAP), { timeoutMs: 60_000, signal }).then(
    (items) => (late = items.map(({ label, state }) => `${label} ${state}`)),
  );
  await scheduler.runFor(59_999);
  expect(late).toBeUndefined();
  await scheduler.runFor(1);
  await done;

  expect(late).toEqual(["configmap/settings missing"]);
});

test("a request to end is not taken for the end of its time", async () => {
  const { scheduler, deps } = given();
  const stop = new AbortController();

  const done = applyOnce(deps, parseManifest("f.yaml", CONFIG_MAP), {
    timeoutMs: 60_000,
    signal: stop.signal,
  });
  await scheduler.runFor(10);
  stop.abort(new Error("SIGINT"));

  await expect(done).rejects.toThrow("SIGINT");
});
