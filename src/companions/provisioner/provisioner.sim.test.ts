import { expect, test } from "vitest";
import { persistentVolumeClaims } from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../../kube/api/persistent-volume.ts";
import { secrets } from "../../kube/api/secret.ts";
import { volumeAttachments } from "../../kube/api/volume-attachment.ts";
import { PROVISIONED_BY, PROVISIONER_FINALIZER, PROVISIONING_FINALIZER, SELECTED_NODE } from "../names.ts";
import { DRIVER, given, type StorageWorld } from "../stage.testing.ts";

async function select(world: StorageWorld, claim: string, node: string): Promise<void> {
  const value = { metadata: { annotations: { [SELECTED_NODE]: node } } };
  await world.client.patch(
    persistentVolumeClaims,
    { name: claim, namespace: "default" },
    { type: "merge", value },
  );
}

test("a claim of our class gets a volume of the driver, which goes with it", async () => {
  const world = await given();
  await world.createClass("xfs", {
    parameters: { "csi.storage.k8s.io/fstype": "xfs", provisioning: "thick" },
    mountOptions: ["noatime"],
  });
  world.start();
  await world.createClaim("data", { storageClassName: "xfs", resources: { requests: { storage: "400Mi" } } });
  await world.settle();

  const claim = await world.claim("data");
  const name = `pvc-${claim?.metadata.uid}`;
  const volume = await world.volume(name);
  expect(claim?.spec?.volumeName).toBe(name);
  expect(claim?.metadata.finalizers).toEqual(["kubernetes.io/pvc-protection"]);
  expect(volume?.metadata.annotations?.[PROVISIONED_BY]).toBe(DRIVER);
  expect(volume?.metadata.finalizers).toContain(PROVISIONER_FINALIZER);
  expect(volume?.spec).toMatchObject({
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "400Mi" },
    csi: { driver: DRIVER, fsType: "xfs" },
    mountOptions: ["noatime"],
    persistentVolumeReclaimPolicy: "Delete",
    storageClassName: "xfs",
    volumeMode: "Filesystem",
  });
  expect(world.events.map((event) => event.split(":")[0])).toEqual([
    "PersistentVolumeClaim/data ExternalProvisioning",
    "PersistentVolumeClaim/data Provisioning",
    "PersistentVolumeClaim/data ProvisioningSucceeded",
  ]);

  await world.deleteClaim("data");
  await world.advance(5_000);

  expect(await world.claim("data")).toBeUndefined();
  expect(await world.volume(name)).toBeUndefined();
  expect(world.driver.counts().volumes).toBe(0);
});

test("with WaitForFirstConsumer nothing is made before a node is chosen", async () => {
  const world = await given();
  await world.createClass("later", { volumeBindingMode: "WaitForFirstConsumer" });
  world.start();
  await world.createClaim("data", { storageClassName: "later" });
  await world.advance(60_000);
  expect(world.driver.counts().volumes).toBe(0);
  expect(world.events).toEqual([
    "PersistentVolumeClaim/data WaitForFirstConsumer: waiting for first consumer to be created before binding",
  ]);

  await select(world, "data", "n2");
  await world.settle();

  expect((await world.claim("data"))?.status?.phase).toBe("Bound");
});

test("a node that cannot have the volume is given up, so that the scheduler chooses again", async () => {
  const world = await given({ driver: { nodes: [] } });
  await world.createClass("later", {
    volumeBindingMode: "WaitForFirstConsumer",
    allowedTopologies: [{ matchLabelExpressions: [{ key: `topology.${DRIVER}/node`, values: ["n2"] }] }],
  });
  world.start();
  await world.createClaim("data", { storageClassName: "later" });
  await select(world, "data", "n2");
  await world.settle();

  expect((await world.claim("data"))?.metadata.annotations?.[SELECTED_NODE]).toBeUndefined();
  expect(world.events.join()).toContain('node "n2" is given up, the scheduler chooses again');
  // The driver may have begun: the claim is held until that is known.
  expect((await world.claim("data"))?.metadata.finalizers).toContain(PROVISIONING_FINALIZER);
});

test("a volume is not deleted while an attachment names it", async () => {
  const world = await given();
  world.start();
  await world.createClaim("data");
  await world.settle();
  const name = (await world.claim("data"))?.spec?.volumeName ?? "";
  await world.client.create(volumeAttachments, {
    metadata: { name: "va" },
    spec: { attacher: DRIVER, nodeName: "n1", source: { persistentVolumeName: name } },
  });

  await world.deleteClaim("data");
  await world.advance(60_000);
  expect((await world.volume(name))?.status?.phase).toBe("Released");
  expect(world.driver.counts().volumes).toBe(1);

  await world.client.delete(volumeAttachments, { name: "va" });
  await world.advance(5_000);
  expect(await world.volume(name)).toBeUndefined();
  expect(world.driver.counts().volumes).toBe(0);
});

test("a volume is not deleted while an attachment names it that no cache has seen", async () => {
  const world = await given();
  world.start();
  await world.createClaim("data");
  await world.settle();
  const name = (await world.claim("data"))?.spec?.volumeName ?? "";
  world.held.add("volumeattachments");
  await world.client.create(volumeAttachments, {
    metadata: { name: "va" },
    spec: { attacher: DRIVER, nodeName: "n1", source: { persistentVolumeName: name } },
  });

  await world.deleteClaim("data");
  await world.advance(60_000);

  expect((await world.volume(name))?.metadata.deletionTimestamp).toBeUndefined();
  expect(world.driver.counts().volumes).toBe(1);
});

test("a driver that will not delete: the volume is Failed with its words, and goes once the driver can", async () => {
  const world = await given();
  world.start();
  await world.createClaim("data");
  await world.settle();
  const name = (await world.claim("data"))?.spec?.volumeName ?? "";
  world.misbehave([{ rpc: "DeleteVolume", effect: { kind: "error", code: "INTERNAL" }, probability: 1 }]);

  await world.deleteClaim("data");
  await world.advance(10_000);
  expect((await world.volume(name))?.status?.phase).toBe("Failed");
  expect((await world.volume(name))?.status?.message).toContain("INTERNAL");
  expect(world.events.some((event) => event.startsWith(`PersistentVolume/${name} VolumeFailedDelete`))).toBe(
    true,
  );

  world.misbehave([]);
  await world.advance(300_000);
  expect(await world.volume(name)).toBeUndefined();
  expect(world.driver.counts().volumes).toBe(0);
});

test("with Retain the volume stays when the claim goes, and the driver keeps it when a person deletes it", async () => {
  const world = await given();
  await world.createClass("keep", { reclaimPolicy: "Retain" });
  world.start();
  await world.createClaim("data", { storageClassName: "keep" });
  await world.settle();
  const name = (await world.claim("data"))?.spec?.volumeName ?? "";

  await world.deleteClaim("data");
  await world.advance(5_000);
  expect((await world.volume(name))?.status?.phase).toBe("Released");

  await world.client.delete(persistentVolumes, { name });
  await world.advance(5_000);
  expect(await world.volume(name)).toBeUndefined();
  expect(world.driver.counts().volumes).toBe(1);
});

test("a claim deleted while the driver's answer is lost takes the volume with it", async () => {
  const world = await given();
  world.misbehave([{ rpc: "CreateVolume", effect: { kind: "lost" }, probability: 1 }]);
  world.start();
  await world.createClaim("data");
  await world.advance(70_000);
  expect(world.driver.counts().volumes).toBe(1);
  await world.deleteClaim("data");
  await world.advance(5_000);
  expect((await world.claim("data"))?.metadata.finalizers).toContain(PROVISIONING_FINALIZER);

  world.kill();
  world.misbehave([]);
  world.start();
  await world.advance(10_000);

  expect(await world.claim("data")).toBeUndefined();
  expect(world.driver.counts().volumes).toBe(0);
  expect(world.list(persistentVolumes)).toEqual([]);
});

test("a claim that every answer refused goes at once: the driver certainly has nothing", async () => {
  const world = await given();
  world.misbehave([{ rpc: "CreateVolume", effect: { kind: "error", code: "INTERNAL" }, probability: 1 }]);
  world.start();
  await world.createClaim("data");
  await world.advance(20_000);
  expect(world.events.at(-1)).toContain('failed to provision volume with StorageClass "fast": INTERNAL');
  const calls = world.take().filter((line) => line === "CreateVolume").length;
  expect(calls).toBeLessThanOrEqual(6); // 1 s, 2 s, 4 s, 8 s

  await world.deleteClaim("data");
  await world.settle();

  expect(await world.claim("data")).toBeUndefined();
});

test("no volume is made on the word of a watch that is behind: the claim may have been let go since", async () => {
  const world = await given();
  world.start();
  world.misbehave([{ rpc: "CreateVolume", effect: { kind: "error", code: "UNAVAILABLE" }, probability: 1 }]);
  await world.createClaim("data");
  await world.settle();

  // Somebody who knows that the driver has no volume lets it go.
  world.held.add("persistentvolumeclaims");
  await world.deleteClaim("data");
  await world.client.patch(
    persistentVolumeClaims,
    { name: "data", namespace: "default" },
    { type: "merge", value: { metadata: { finalizers: [] } } },
  );
  world.misbehave([]);
  world.take();
  await world.advance(10_000);

  expect(world.take().filter((line) => line === "CreateVolume")).toEqual([]);
  expect(world.driver.counts().volumes).toBe(0);
});

test("the secret a class names goes to the driver and into no event", async () => {
  const world = await given();
  await world.createClass("secret", {
    parameters: {
      "csi.storage.k8s.io/provisioner-secret-name": "s-${pvc.name}",
      "csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
    },
  });
  world.start();
  await world.createClaim("data", { storageClassName: "secret" });
  await world.settle();
  expect(world.events.at(-1)).toContain("get secret default/s-data: NotFound");

  await world.client.create(secrets, {
    metadata: { name: "s-data", namespace: "default" },
    data: { key: Buffer.from("not for events").toString("base64") },
  });
  await world.advance(10_000);

  expect((await world.claim("data"))?.status?.phase).toBe("Bound");
  expect(JSON.stringify([world.events, world.log])).not.toContain("not for events");
});

test("a clone is made of its source, once that is bound", async () => {
  const world = await given();
  world.start();
  const dataSource = { kind: "PersistentVolumeClaim", name: "source" };
  await world.createClaim("copy", { dataSource });
  await world.settle();
  expect(world.events.at(-1)).toContain('source claim "source" does not exist');

  await world.createClaim("source");
  await world.advance(2_000);

  expect((await world.claim("copy"))?.status?.phase).toBe("Bound");
  expect(world.driver.counts().volumes).toBe(2);
});

test("classes and volumes of other drivers are left alone", async () => {
  const world = await given();
  await world.createClass("foreign", { provisioner: "other.driver" });
  await world.createVolume("theirs", {
    persistentVolumeReclaimPolicy: "Delete",
    csi: { driver: "other.driver", volumeHandle: "h" },
    claimRef: { namespace: "default", name: "gone", uid: "gone" },
  });
  world.start();
  await world.createClaim("data", { storageClassName: "foreign" });
  await world.advance(30_000);

  expect((await world.claim("data"))?.status?.phase).toBe("Pending");
  expect((await world.volume("theirs"))?.status?.phase).toBe("Released");
  expect(world.take().filter((line) => /^[A-Z][a-z]/.test(line))).toEqual([]);
});
