import { expect, test } from "vitest";
import { silentLogger } from "../../base/log.ts";
import { FakeFlexHost, NOT_SUPPORTED, SUCCESS } from "../../volumes/plugins/flex.testing.ts";
import { createFlexVolumes } from "./flex-volumes.ts";
import { createStage, inline, pod, POD_UID, ROOT, setUpOf, signal, tearDownOf } from "./plugins.testing.ts";

const TARGET = `${ROOT}/pods/${POD_UID}/volumes/acme~disk/v`;
const STAGING = `${ROOT}/plugins/kubernetes.io/flexvolume/acme/disk/mounts/v`;
const spec = inline({
  flexVolume: { driver: "acme/disk", fsType: "ext4", options: { size: "1" }, secretRef: { name: "s" } },
});

async function given(init = SUCCESS) {
  const stage = createStage();
  const flexHost = new FakeFlexHost();
  flexHost.drivers.set("acme~disk", { version: "1" });
  flexHost.replies.set("init", init);
  stage.secrets.set("ns/s", {
    type: "acme/disk",
    data: { password: Buffer.from("very secret").toString("base64") },
  });
  const flex = createFlexVolumes({ ...stage.deps, flexHost, log: silentLogger });
  await flex.probe(signal);
  const [plugin] = flex.plugins();
  if (plugin === undefined) throw new Error("the driver was not found");
  const mountDevice = {
    volume: "v" as never,
    spec,
    pod: pod(),
    devicePath: "/dev/sdb",
    deviceMountPath: STAGING,
    mayBeThere: false,
    signal,
  };
  return { ...stage, flexHost, flex, plugin, mountDevice };
}

test("a driver is a plugin with what its init said; a driver without attach has no step once a node", async () => {
  const attaching = await given();
  const plain = await given(`{"status":"Success","Capabilities":{"Attach":false,"supportsMetrics":true}}`);

  expect(attaching.plugin.traits(spec)).toMatchObject({
    attachable: "yes",
    deviceMountable: true,
    mountOptions: false,
  });
  expect("stats" in attaching.plugin).toBe(false);
  expect(plain.plugin.traits(spec)).toMatchObject({ attachable: "no", deviceMountable: false });
  expect(plain.plugin.device).toBeUndefined();
  expect("stats" in plain.plugin).toBe(true);
  expect(plain.flex.plugins()[0]).toBe(plain.plugin);
});

test("mount gets the pod, the group and the secret; volume options cannot pose as ours", async () => {
  const { plugin, flexHost } = await given();

  await plugin.setUp(setUpOf(spec, { fsGroup: 5, deviceMountPath: STAGING }));

  const [, verb, directory, options = "{}"] = flexHost.calls.at(-1) ?? [];
  expect([verb, directory]).toEqual(["mount", TARGET]);
  expect(JSON.parse(options)).toEqual({
    size: "1",
    "kubernetes.io/fsType": "ext4",
    "kubernetes.io/readwrite": "rw",
    "kubernetes.io/pvOrVolumeName": "v",
    "kubernetes.io/pod.name": "p1",
    "kubernetes.io/pod.namespace": "ns",
    "kubernetes.io/pod.uid": POD_UID,
    "kubernetes.io/serviceAccount.name": "sa",
    "kubernetes.io/mounterArgs.FsGroup": "5",
    "kubernetes.io/secret/password": Buffer.from("very secret").toString("base64"),
  });
});

test("scenario 129: a driver without mount is bound from its device directory, and is not asked again", async () => {
  const { plugin, flexHost, host, machine, mountDevice } = await given();
  machine.addDevice("/dev/sdb", 1 << 20);
  flexHost.replies.set("mountdevice", NOT_SUPPORTED);
  flexHost.replies.set("mount", NOT_SUPPORTED);
  flexHost.replies.set("unmount", NOT_SUPPORTED);
  flexHost.replies.set("unmountdevice", NOT_SUPPORTED);

  await plugin.device?.mount(mountDevice);
  for (const podUid of ["u1", "u2"]) await plugin.setUp(setUpOf(spec, { podUid, deviceMountPath: STAGING }));

  expect(flexHost.verbs.filter((verb) => verb === "mount")).toHaveLength(1);
  const points = (await host.mounts.table()).points.filter(({ source }) => source === "/dev/sdb");
  expect(points.map(({ path }) => path)).toEqual([STAGING, TARGET, TARGET.replace("u1", "u2")]);
  expect(await plugin.findStaged?.()).toMatchObject([{ volume: "acme/disk/v", path: STAGING }]);
  for (const podUid of ["u1", "u2"]) await plugin.tearDown(tearDownOf(spec, podUid));
  await plugin.device?.unmount(mountDevice);
  expect((await host.mounts.table()).points).toHaveLength(1);
  expect(await host.files.stat(STAGING)).toBeUndefined();
});

for (const [reply, problem] of [
  ["mounted!", /which is no JSON object/],
  [`{"status":"Failure","message":"no such disk"}`, /mount command failed, status "Failure", "no such disk"/],
  [`{"status":"Failure","message":"very secret is wrong"}`, /\*\*\* is wrong/],
  [{ stdout: SUCCESS, code: 3 }, /it answered Success, but exit code 3/],
] as const)
  test(`scenario 129: the answer ${JSON.stringify(reply).slice(0, 50)} is an error, and leaves no directory`, async () => {
    const { plugin, flexHost, host } = await given();
    flexHost.replies.set("mount", reply);

    const failed = plugin.setUp(setUpOf(spec, { deviceMountPath: STAGING }));

    await expect(failed).rejects.toThrow(problem);
    await expect(failed).rejects.toMatchObject({ outcome: "final" });
    await expect(failed).rejects.not.toThrow("very secret");
    expect(await host.files.stat(TARGET)).toBeUndefined();
  });

test("a driver that was stopped at its deadline may have mounted: uncertain, and the directory stays", async () => {
  const { plugin, flexHost, host } = await given();
  flexHost.replies.set("mount", Object.assign(new Error("took too long"), { code: "ETIMEDOUT" }));

  await expect(plugin.setUp(setUpOf(spec))).rejects.toMatchObject({ outcome: "uncertain" });

  expect(await host.files.stat(TARGET)).toBeDefined();
});

test("a driver that says unmounted while it is mounted is not believed", async () => {
  const { plugin, host } = await given();
  await host.files.makeDirectories(TARGET, 0o750);
  await host.mounts.mount({ source: "tmpfs", target: TARGET, type: "tmpfs", options: [] });

  await expect(plugin.tearDown(tearDownOf(spec))).rejects.toMatchObject({ outcome: "uncertain" });
});

test("a secret of another type is not handed over, and is waited for", async () => {
  const { plugin, secrets, flexHost } = await given();
  secrets.set("ns/s", { type: "Opaque", data: {} });

  await expect(plugin.setUp(setUpOf(spec))).rejects.toMatchObject({
    outcome: "transient",
    blockedBy: [{ kind: "secret", namespace: "ns", name: "s" }],
  });

  expect(flexHost.verbs).toEqual(["init"]);
});

test("waiting for an attached device answers with the driver's device, or the one that was given", async () => {
  const { plugin, flexHost } = await given();
  const request = { ...setUpOf(spec), devicePath: "/dev/given", timeoutMs: 1 };
  flexHost.replies.set("waitforattach", `{"status":"Success","device":"/dev/found"}`);
  expect(await plugin.attach?.waitForAttach(request)).toBe("/dev/found");

  flexHost.replies.set("waitforattach", NOT_SUPPORTED);
  expect(await plugin.attach?.waitForAttach(request)).toBe("/dev/given");
});

test("a driver that is replaced is another plugin: what it did not support is asked again", async () => {
  const { flex, flexHost, plugin, clock, scheduler } = await given();
  flexHost.replies.set("mount", NOT_SUPPORTED);
  await expect(plugin.setUp(setUpOf(spec))).rejects.toThrow("nothing to mount");

  flexHost.drivers.set("acme~disk", { version: "2" });
  flexHost.replies.set("mount", SUCCESS);
  await scheduler.runFor(10_000);
  await flex.probe(signal);

  expect(clock.now()).toBe(10_000);
  expect(flex.plugins()).toHaveLength(1);
  expect(flex.plugins()[0]).not.toBe(plugin);
  await flex.plugins()[0]?.setUp(setUpOf(spec));
});
