import { afterAll, beforeAll, expect, test } from "vitest";
import { volumeAttachments } from "../../src/kube/api/volume-attachment.ts";
import {
  attach,
  deletePod,
  DRIVER,
  eventFor,
  givenNode,
  givenPod,
  givenVolume,
  lists,
  startWorld,
  type ControllerWorld,
} from "../e2e/controller-world.ts";
import { mooring, Running, scratch } from "../e2e/mooring.ts";

/** The controller as a process, beside somebody who makes VolumeAttachments by hand. */

const place = scratch();
let world: ControllerWorld;
let controller: Running;

beforeAll(async () => {
  world = await startWorld(`${place.path}/data`);
  for (const node of ["node-a", "node-b"]) await givenNode(world, node);
  controller = new Running("controller", "--kubeconfig", world.kubeconfig, "--http-endpoint", "127.0.0.1:0");
  await controller.says(/"message":"became leader"/);
});

afterAll(async () => {
  controller.kill("SIGKILL");
  await controller.exit();
  await world.stop();
  place.remove();
});

test("a VolumeAttachment made by hand keeps its disk from another node until its owner deletes it", async () => {
  const { client } = world.admin;
  const ref = { name: "made-by-hand" };
  await givenVolume(world, "disk");
  const made = await client.create(volumeAttachments, {
    metadata: ref,
    spec: { attacher: DRIVER, nodeName: "node-a", source: { persistentVolumeName: "disk" } },
  });
  await attach(world, made);
  await eventFor(world, "node-a", "ForeignAttachment");

  await givenPod(world, "disk", "node-b");
  expect(await eventFor(world, "disk", "WaitingForDetach")).toMatchObject({
    message: expect.stringContaining("VolumeAttachment made-by-hand") as string,
  });
  const why = mooring("why", "pod/disk", "-o", "wide", "--kubeconfig", `${place.path}/data/admin.kubeconfig`);
  expect(why.stdout).toContain("VolumeAttachment made-by-hand, which no attach/detach controller made");
  const left = await client.get(volumeAttachments, ref);
  expect(left.metadata.uid).toBe(made.metadata.uid);
  expect(left.metadata.deletionTimestamp).toBeUndefined();
  expect((await client.list(volumeAttachments)).items).toHaveLength(1);

  await client.delete(volumeAttachments, ref);
  await client.patch(volumeAttachments, ref, {
    type: "merge",
    value: { metadata: { finalizers: null } },
  });
  const ours = await world.attachments.until((all) => all.find(({ spec }) => spec.nodeName === "node-b"));
  await attach(world, ours);
  await lists(world, "node-b", "disk", true);
  await deletePod(world, "disk");
});
