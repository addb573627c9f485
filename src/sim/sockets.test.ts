import { expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { Controller } from "../csi/gen/csi_pb.ts";
import { createClient, serve } from "../csi/methods.ts";
import { Life } from "./life.ts";
import { SimScheduler } from "./scheduler.ts";
import { NO_CALL_FAULTS, Sockets } from "./sockets.ts";

function given({ locks }: { readonly locks: boolean }) {
  const random = createSeededRandom(1);
  const scheduler = new SimScheduler(random.fork("scheduler"));
  const sockets = new Sockets({ clock: scheduler.createClock(), random: random.fork("sockets") });
  const calls: string[] = [];
  const take = (call: string) => {
    calls.push(call);
    return {};
  };
  const served = serve(Controller, {
    controllerPublishVolume: async ({ volumeId, nodeId }) => take(`publish ${volumeId} ${nodeId}`),
    controllerUnpublishVolume: async ({ volumeId, nodeId }) => take(`unpublish ${volumeId} ${nodeId}`),
  });
  sockets.listen("/csi.sock", served, new Life(scheduler, "driver"), { locks });
  const driver = createClient(Controller, sockets.connect("/csi.sock", new Life(scheduler, "attacher")));
  return { scheduler, sockets, driver, calls };
}

const OPTIONS = { timeoutMs: 5_000 };

test("a driver with locks of its own takes up the calls of a volume in the order in which they were sent, also after their callers have gone", async () => {
  const { scheduler, sockets, driver, calls } = given({ locks: true });
  sockets.faults = { ...NO_CALL_FAULTS, takesMsMax: 30_000 };
  const sent: string[] = [];
  for (let at = 0; at < 20; at++)
    for (const volumeId of ["v", "w"]) {
      const nodeId = `n${at}`;
      const call = at % 2 === 0 ? "publish" : "unpublish";
      sent.push(`${call} ${volumeId} ${nodeId}`);
      const method = at % 2 === 0 ? driver.controllerPublishVolume : driver.controllerUnpublishVolume;
      void method({ volumeId, nodeId }, OPTIONS).catch(() => undefined);
    }
  await scheduler.runUntilTrue(() => calls.length === sent.length, { withinMs: 60_000 });

  for (const volume of [" v ", " w "])
    expect(calls.filter((call) => call.includes(volume))).toEqual(
      sent.filter((call) => call.includes(volume)),
    );
});

test("a call that is refused or hangs keeps none that comes after it from the driver", async () => {
  const { scheduler, sockets, driver, calls } = given({ locks: true });
  for (const fault of [{ refused: 1, codes: ["INTERNAL"] as const }, { hung: 1 }]) {
    sockets.faults = { ...NO_CALL_FAULTS, ...fault };
    void driver.controllerPublishVolume({ volumeId: "v", nodeId: "n1" }, OPTIONS).catch(() => undefined);
    await scheduler.runFor(1_000);
  }
  sockets.faults = NO_CALL_FAULTS;
  void driver.controllerUnpublishVolume({ volumeId: "v", nodeId: "n1" }, OPTIONS).catch(() => undefined);
  await scheduler.runFor(1_000);

  expect(calls).toEqual(["unpublish v n1"]);
});

test("a driver without locks of its own refuses a call of a volume while another is under way", async () => {
  const { scheduler, driver, calls } = given({ locks: false });
  const failed: string[] = [];
  void driver.controllerPublishVolume({ volumeId: "v", nodeId: "n1" }, OPTIONS).catch(() => undefined);
  driver
    .controllerUnpublishVolume({ volumeId: "v", nodeId: "n1" }, OPTIONS)
    .catch((error: unknown) => failed.push((error as { code: string }).code));
  await scheduler.runFor(1_000);

  expect(calls).toEqual(["publish v n1"]);
  expect(failed).toEqual(["ABORTED"]);
});
