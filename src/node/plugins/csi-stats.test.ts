import { expect, test } from "vitest";
import {
  NodeServiceCapability_RPC_Type as Rpc,
  VolumeHealthErrorType as Type,
} from "../../csi/gen/csi_pb.ts";
import { csi, givenCsi, inline, pv } from "./csi-stage.testing.ts";
import { stats } from "./csi-stats.ts";
import { stagingPathOf } from "./csi-device.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";

const USAGE = { usedBytes: 40 };

function given(...capabilities: Rpc[]) {
  const world = givenCsi({ capabilities });
  const ask = (health: boolean, spec: VolumeSpec = pv()) =>
    stats(
      world.context,
      { spec, podUid: "u1", volumePath: "/mnt", signal: new AbortController().signal },
      { health },
    );
  return { ...world, ask };
}

test("without the gate nobody asks how a volume does, whatever the driver could say", async () => {
  const { ask, backend } = given(Rpc.GET_VOLUME_STATS, Rpc.VOLUME_CONDITION, Rpc.GET_VOLUME_HEALTH);
  backend.condition = { abnormal: true, message: "a disk is slow" };

  const answer = await ask(false);

  expect(answer).toMatchObject(USAGE);
  expect(answer).not.toHaveProperty("condition");
  expect(backend.work()).toEqual(["stats h1 /mnt"]);
});

test("until CSI 1.12 the condition comes with the stats, from drivers that say they know", async () => {
  const able = given(Rpc.GET_VOLUME_STATS, Rpc.VOLUME_CONDITION);
  const unable = given(Rpc.GET_VOLUME_STATS);
  for (const { backend } of [able, unable]) backend.condition = { abnormal: true, message: "a disk is slow" };

  expect(await able.ask(true)).toMatchObject({
    ...USAGE,
    condition: { abnormal: true, message: "a disk is slow" },
  });
  expect(await unable.ask(true)).not.toHaveProperty("condition");
});

test("from CSI 1.13 on it is asked for, with both paths; kinds nobody knows are passed over", async () => {
  const { ask, backend, context } = given(Rpc.STAGE_UNSTAGE_VOLUME, Rpc.GET_VOLUME_HEALTH);
  const entry = (status: number, reason: string, message: string) => ({
    // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- a driver may know kinds that we do not
    status: status as Type,
    reason,
    message,
  });
  backend.health = {
    volumeHealth: {
      volumeId: "h1",
      healthStatuses: [
        entry(Type.DEGRADED, "DiskSlow", "one of three is slow"),
        entry(99, "Younger", "than this"),
        entry(Type.DATA_LOSS, "", ""),
      ],
    },
  };

  expect(await ask(true)).toEqual({
    condition: { abnormal: true, message: "Degraded: DiskSlow: one of three is slow; DataLoss" },
  });
  backend.health = {};
  expect(await ask(true)).toEqual({ condition: { abnormal: false, message: "" } });
  const staging = stagingPathOf(context.paths, { driver: "d", handle: "h1" });
  expect(backend.work()[0]).toBe(`health h1 /mnt ${staging}`);
});

test("volumes written into a pod have stats but no health of their own", async () => {
  const { ask, backend } = given(Rpc.GET_VOLUME_STATS, Rpc.GET_VOLUME_HEALTH);

  await ask(true, inline());

  expect(backend.work()).toEqual([expect.stringMatching(/^stats csi-[0-9a-f]{64} \/mnt$/)]);
});

test("a driver that has neither says so", async () => {
  await expect(given().ask(true, pv(csi({})))).rejects.toMatchObject({ kind: "not-supported" });
});
