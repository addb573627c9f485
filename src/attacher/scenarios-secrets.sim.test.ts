import { expect, test } from "vitest";
import { secrets } from "../kube/api/secret.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { DRIVER, given, type AttacherWorld } from "./stage.testing.ts";

/** Secrets of the driver, on every way by which a text leaves: log, status, page, metrics. */

async function withSecret(data: Readonly<Record<string, string>>): Promise<AttacherWorld> {
  const world = await given({ driver: { listsPublishedNodes: true }, options: { reconcileSyncMs: 10_000 } });
  await world.client.create(secrets, { metadata: { name: "s1", namespace: "default" }, data });
  const controllerPublishSecretRef = { namespace: "default", name: "s1" };
  await world.createVolume("pv1", { csi: { driver: DRIVER, volumeHandle: "v", controllerPublishSecretRef } });
  world.start();
  return world;
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

async function everythingTold(world: AttacherWorld): Promise<string> {
  const { items } = await world.client.list(volumeAttachments);
  const bare = items.map(({ metadata: { managedFields: _, ...metadata }, ...rest }) => ({
    ...rest,
    metadata,
  }));
  return JSON.stringify([world.log, bare, world.report()]);
}

test("a value from before a rotation, which the driver repeats, is told nobody", async () => {
  const world = await withSecret({ password: base64("old-password-1") });
  await world.createAttachment("va1");
  await world.settle();
  const value = { data: { password: base64("new-password-2") } };
  await world.client.patch(secrets, { name: "s1", namespace: "default" }, { type: "merge", value });

  world.driver.fail("unpublish", 16, "session of old-password-1 ended; tried new-password-2");
  world.driver.fail("list", 13, "no list for old-password-1");
  await world.deleteAttachment("va1");
  await world.settle();

  const told = await everythingTold(world);
  expect(told).toContain("session of ***stripped*** ended; tried ***stripped***");
  expect(told).not.toMatch(/old-password-1|new-password-2/);
});

test("a value that is also the name of something: what refuses an attachment is still known, and ends its wait", async () => {
  const world = await withSecret({ user: base64("first") });
  await world.createNode("n2");
  await world.createAttachment("first");
  await world.settle();
  await world.createAttachment("second", { node: "n2" });
  await world.advance(60_000);
  expect(world.waitOf("second")).toBe("held-by-other-node VolumeAttachment/first");

  await world.deleteAttachment("first");
  await world.settle();

  expect(world.driver.publishedOn("v")).toEqual(["id-n2"]);
});

test("a value that is no text is not sent as another one: it is refused, by secret and key", async () => {
  const world = await withSecret({ token: Buffer.from([0xff, 0xfe, 0x00, 0x41]).toString("base64") });

  await world.createAttachment("va1");
  await world.settle();

  expect(world.driver.publishes).toEqual([]);
  expect(world.waitOf("va1")).toBe("secret-unavailable Secret/s1");
  const message = (await world.attachment("va1"))?.status?.attachError?.message;
  expect(message).toContain("secret default/s1 for attaching by VolumeAttachment va1");
  expect(message).toContain('the value of "token" is not UTF-8 text');
  expect(await everythingTold(world)).not.toContain("\uFFFD");
});

test("a value with a byte order mark, quotes and lines arrives as it is", async () => {
  const odd = '\uFEFFa "b"\r\n\\c\u0000 ü𝄞';
  const world = await withSecret({ key: base64(odd) });

  await world.createAttachment("va1");
  await world.settle();

  expect(world.driver.publishes[0]?.secrets?.reveal()).toEqual({ key: odd });
});
