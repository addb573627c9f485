import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { createLogger } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { ControllerPublishVolumeRequestSchema, DeleteVolumeRequestSchema } from "../csi/gen/csi_pb.ts";
import { Controller, GroupController, Identity, Node, SnapshotMetadata } from "../csi/gen/csi_pb.ts";
import { serve } from "../csi/methods.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { parseFaults, withFaults, type Fault } from "./faults.ts";
import { RPC_NAMES } from "./rpc-names.ts";
import { requireSecret } from "./secrets.ts";
import { codeOf } from "./stage.testing.ts";

const parse = (text: string) =>
  parseFaults(text, (ms) => (/^\d+s$/.test(ms) ? Number(ms.slice(0, -1)) * 1_000 : undefined));

function given(faults: readonly Fault[]) {
  const scheduler = new SimScheduler(createSeededRandom("faults"));
  const lines: string[] = [];
  const deleted: string[] = [];
  const methods = serve(Controller, {
    deleteVolume: async ({ volumeId }) => (deleted.push(volumeId), {}),
    controllerPublishVolume: async () => ({ publishContext: { volume: "vol-1" } }),
  });
  const deps = {
    clock: scheduler.createClock(),
    random: createSeededRandom("faults"),
    log: createLogger((_, message) => lines.push(message)),
  };
  const served = withFaults(deps, methods, faults);
  const gone = new AbortController();
  const context = { path: "", signal: gone.signal };
  const call = (name: string, request: object) =>
    served
      .find(({ path }) => path.endsWith(`/${name}`))
      ?.handler(request as never, context) as Promise<object>;
  const remove = () => call("DeleteVolume", create(DeleteVolumeRequestSchema, { volumeId: "v" }));
  return {
    scheduler,
    lines,
    deleted,
    remove,
    gone,
    attach: () => call("ControllerPublishVolume", create(ControllerPublishVolumeRequestSchema)),
  };
}

test("the flag's text: every effect, shares of calls, and what is wrong with the rest", () => {
  const text =
    "NodeStageVolume=slow:5s,Probe=hang@0.5,*=error:14,CreateVolume=error:ABORTED,DeleteVolume=lost,ControllerPublishVolume=wrong-device";
  expect(parse(text)).toEqual([
    { rpc: "NodeStageVolume", effect: { kind: "slow", ms: 5_000 }, probability: 1 },
    { rpc: "Probe", effect: { kind: "hang" }, probability: 0.5 },
    { rpc: "*", effect: { kind: "error", code: "UNAVAILABLE" }, probability: 1 },
    { rpc: "CreateVolume", effect: { kind: "error", code: "ABORTED" }, probability: 1 },
    { rpc: "DeleteVolume", effect: { kind: "lost" }, probability: 1 },
    { rpc: "ControllerPublishVolume", effect: { kind: "wrong-device" }, probability: 1 },
  ]);
  for (const bad of ["", "=explode", "=slow", "=slow:soon", "=error:NONE", "=hang:5", "=hang@2", "=hang@0"]) {
    expect(parse(`Probe${bad}`), bad).toContain("is not RPC=");
  }
});

test("a fault that could never hit is refused, with the call that was meant", () => {
  expect(parse("NodeStageVolum=hang")).toContain(
    "no call NodeStageVolum in CSI; did you mean NodeStageVolume?",
  );
  expect(parse("nodepublishvolume=lost")).toContain("did you mean NodePublishVolume?");
  expect(parse("ControllerPublish=lost")).toContain("did you mean ControllerPublishVolume?");
  expect(parse("NodeStageVolume=wrong-device")).toContain(
    "only ControllerPublishVolume answers with a device",
  );
});

test("every call of every service of CSI can be given a fault, and nothing else", () => {
  const services = [Identity, Controller, GroupController, SnapshotMetadata, Node];
  const names = services.flatMap(({ methods }) => methods.map(({ name }) => name));

  expect([...RPC_NAMES].sort()).toEqual(names.sort());
});

test("without faults nothing is wrapped and nothing is logged", async () => {
  const { remove, lines, deleted } = given([]);

  await remove();

  expect(deleted).toEqual(["v"]);
  expect(lines).toEqual([]);
});

test("an error comes instead of the work, and is loud", async () => {
  const { remove, lines, deleted } = given(parse("DeleteVolume=error:8") as Fault[]);

  expect(await codeOf(remove())).toBe("RESOURCE_EXHAUSTED");
  expect(deleted).toEqual([]);
  expect(lines).toEqual(["FAULT INJECTION IS ON: this driver misbehaves on purpose", "fault injected"]);
});

test("a lost answer comes after the work", async () => {
  const { remove, deleted } = given(parse("DeleteVolume=lost") as Fault[]);

  expect(await codeOf(remove())).toBe("UNAVAILABLE");
  expect(deleted).toEqual(["v"]);
});

test("slow answers late; hanging ends when the caller gives up", async () => {
  const slow = given(parse("DeleteVolume=slow:5s") as Fault[]);
  const answer = slow.remove();
  await slow.scheduler.runFor(4_999);
  expect(slow.deleted).toEqual([]);
  await slow.scheduler.runFor(1);
  await answer;
  expect(slow.deleted).toEqual(["v"]);

  const hanging = given(parse("*=hang") as Fault[]);
  const code = codeOf(hanging.remove());
  hanging.gone.abort();
  expect(await code).toBe("UNAVAILABLE");
  expect(hanging.deleted).toEqual([]);
});

test("a wrong device is another volume's context", async () => {
  const { attach } = given(parse("ControllerPublishVolume=wrong-device") as Fault[]);

  expect(await attach()).toEqual({ publishContext: { volume: "vol-00000000-0000-4000-8000-000000000000" } });
});

test("a required secret: calls that can carry it must, and it is never told", async () => {
  const methods = requireSecret(
    serve(Controller, { deleteVolume: async () => ({}), listVolumes: async () => ({}) }),
    "sesame",
  );
  const call = async (name: string, request: object) =>
    (
      methods.find(({ path }) => path.endsWith(name))!.handler as (
        request: object,
        context: object,
      ) => Promise<object>
    )(request, {});

  expect(await codeOf(call("DeleteVolume", { secrets: { key: "sesame" } }))).toBe("OK");
  expect(await codeOf(call("DeleteVolume", { secrets: { key: "wrong" } }))).toBe("UNAUTHENTICATED");
  expect(await codeOf(call("ListVolumes", {}))).toBe("OK");
});
