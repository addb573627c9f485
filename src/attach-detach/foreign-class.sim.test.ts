import { expect, test } from "vitest";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import { volumeAttachments, type VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { DRIVER } from "../sim/cluster-objects.ts";
import { attacherFinalizer } from "../sim/external-attacher.ts";
import { HANDLE_ANNOTATION, volumeAttachmentName } from "../volumes/names.ts";

/**
 * Every way in which a VolumeAttachment can be something else than its name says, in every state, with pods in every place and
 * a controller in every condition. Whatever comes of it: what is not ours is not touched, a single-node disk is on one
 * node, nothing is taken from a pod, and when the owner deletes what he made, the pods run.
 */

const DISK = { driver: DRIVER, volumeHandle: "v" };
const own = (volumeHandle: string, node: string) =>
  volumeAttachmentName({ driver: DRIVER, volumeHandle }, node);

interface Maker {
  readonly name: string;
  readonly source: VolumeAttachment["spec"]["source"];
  readonly attacher?: string;
  readonly annotations?: Record<string, string>;
  /** The claim that pods use; `v`, and `renamed` for another PersistentVolume of the same disk. */
  readonly label?: "renamed";
  /** The PersistentVolume `pv-v` is gone, or is another disk by now. */
  readonly pv?: "gone" | "replaced";
  /** Ours: the controller may delete it. */
  readonly ours?: true;
  /** Nobody can know that it is this disk. */
  readonly unknowable?: true;
}

const PV = { persistentVolumeName: "pv-v" };
const INLINE = { inlineVolumeSpec: { accessModes: ["ReadWriteOnce"], csi: DISK } };

const MAKERS: Readonly<Record<string, Maker>> = {
  "under our name": { name: own("v", "n1"), source: PV, ours: true },
  "under our name, inline": { name: own("v", "n1"), source: INLINE, ours: true },
  "under our name, of a renamed volume": {
    name: own("v", "n1"),
    source: PV,
    label: "renamed",
    pv: "gone",
    ours: true,
  },
  "under our name, of a replaced volume": {
    name: own("v", "n1"),
    source: PV,
    label: "renamed",
    pv: "replaced",
  },
  "under a foreign name": { name: "by-hand", source: PV },
  "under a foreign name, inline": { name: "by-hand", source: INLINE },
  "under a foreign name, of a renamed volume, recorded": {
    name: "by-hand",
    source: PV,
    annotations: { [HANDLE_ANNOTATION]: "v" },
    label: "renamed",
    pv: "gone",
  },
  "under a foreign name, of a renamed volume, not recorded": {
    name: "by-hand",
    source: PV,
    label: "renamed",
    pv: "gone",
    unknowable: true,
  },
  "under a foreign name, for another driver": { name: "by-hand", source: PV, attacher: "other.example.com" },
  "under the name of another volume": { name: own("w", "n1"), source: PV },
  "under our name on the other node": { name: own("v", "n2"), source: PV },
};

const STATES = ["attached", "attaching", "error", "deleting"] as const;
const PODS = { nobody: [], "on its node": ["n1"], "on the other": ["n2"], "on both": ["n1", "n2"] } as const;
const CONTROLLERS = ["running", "restarted", "failing over", "with a stale cache"] as const;

interface Case {
  readonly made: keyof typeof MAKERS;
  readonly state: (typeof STATES)[number];
  readonly pods: keyof typeof PODS;
  readonly controller: (typeof CONTROLLERS)[number];
}

const CASES: readonly Case[] = Object.keys(MAKERS).flatMap((made) =>
  STATES.flatMap((state) =>
    (Object.keys(PODS) as Case["pods"][]).flatMap((pods) =>
      CONTROLLERS.map((controller) => ({ made, state, pods, controller })),
    ),
  ),
);

/** All of them take a minute; every tenth, with a step that meets every value of every dimension, a few seconds. */
const EVERY = process.env["MOORING_EVERY_STEP"] === "1" ? 1 : 11;
const RUN = CASES.filter((_, index) => index % EVERY === 0);

async function worldFor({ made }: Case, seed: number): Promise<AttachDetachWorld> {
  const world = await given({
    seed,
    nodes: ["n1", "n2"],
    volumes: { v: {}, w: {}, renamed: { handle: "v" } },
    kubelets: true,
    started: false,
  });
  const { pv } = MAKERS[made] ?? {};
  if (pv !== undefined) await world.deletePersistentVolume("v");
  if (pv === "replaced") {
    const spec = {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      csi: { driver: DRIVER, volumeHandle: "another" },
    };
    await world.client.create(persistentVolumes, { metadata: { name: "pv-v" }, spec });
  }
  return world;
}

/** In the state of the case; from then on only the controller could change it. */
async function makeIt(world: AttachDetachWorld, { made, state }: Case): Promise<void> {
  const { name, source, attacher = DRIVER, annotations = {}, ours } = MAKERS[made] as Maker;
  if (!ours) world.attacherOf(DRIVER).ignored.add(name);
  const finalizers = state === "attaching" ? [] : [attacherFinalizer(DRIVER)];
  const metadata = { name, annotations, finalizers };
  await world.client.create(volumeAttachments, { metadata, spec: { attacher, nodeName: "n1", source } });
  const error = { message: "no", time: "2026-01-01T00:00:00Z" };
  const status = state === "error" ? { attached: false, attachError: error } : { attached: true };
  if (state !== "attaching") {
    const patch = { type: "merge", value: { status } } as const;
    await world.client.patch(volumeAttachments, { name }, patch, { subresource: "status" });
    world.storages.publish(world.labels.uniqueName("v"), "n1");
  }
  if (state === "deleting") await world.client.delete(volumeAttachments, { name });
}

async function play(world: AttachDetachWorld, one: Case): Promise<string[]> {
  const { pods, controller, made } = one;
  const label = MAKERS[made]?.label ?? "v";
  const started = controller !== "restarted";
  if (started) world.startController();
  await world.settle();
  await makeIt(world, one);
  await world.settle();
  if (controller === "with a stale cache")
    for (const plural of ["volumeattachments", "persistentvolumes"]) world.held.add(plural);
  if (controller === "failing over") world.spoil("POST va", { kind: "answer-lost" }, 1);
  const names: string[] = [];
  for (const node of PODS[pods]) {
    names.push(`pod-${node}`);
    await world.createPod(`pod-${node}`, { on: node, uses: [label] });
  }
  if (!started) world.startController();
  await world.settle();
  if (controller === "failing over") await world.restartController();
  await world.advance(60_000);
  world.held.clear();
  await world.advance(3 * 60_000);
  return names;
}

/** The owner gets rid of what he made; where nothing else has the disk on the node, the driver takes it off. */
async function removeIt(world: AttachDetachWorld, { made }: Case): Promise<void> {
  const { name } = MAKERS[made] as Maker;
  const value = { metadata: { finalizers: null } };
  if (world.attachmentOf("v", "n1") === undefined || name === own("v", "n1"))
    world.storages.unpublish(world.labels.uniqueName("v"), "n1");
  await world.client.patch(volumeAttachments, { name }, { type: "merge", value });
  await world.client.delete(volumeAttachments, { name }).catch(() => undefined);
  world.attacherOf(DRIVER).ignored.delete(name);
  await world.advance(5 * 60_000);
}

const find = (world: AttachDetachWorld, name: string) => world.read(volumeAttachments, { name });

async function check(one: Case, seed: number): Promise<void> {
  const maker = MAKERS[one.made] as Maker;
  const world = await worldFor(one, seed);
  const pods = await play(world, one);
  const left = find(world, maker.name);

  if (!maker.unknowable) expect(world.violations).toEqual([]);
  if (maker.ours) return;
  // Created, one status, at most one deletion: whatever else was written to it we wrote.
  expect(left?.metadata.generation ?? 1).toBe(1);
  expect(left?.metadata.deletionTimestamp !== undefined).toBe(one.state === "deleting");
  expect(
    world.requests().filter((line) => /^(DELETE|PATCH|PUT) va/.test(line) && isIt(world, line, maker)),
  ).toEqual([]);
  if (!maker.unknowable) expect(find(world, own("v", "n2"))?.spec.nodeName).not.toBe("n2");

  await removeIt(world, one);

  if (!maker.unknowable) expect(world.violations).toEqual([]);
  const running = pods.filter((name) => world.pod(name)?.status?.phase === "Running");
  expect(running.length).toBe(Math.min(1, pods.length));
}

const isIt = (world: AttachDetachWorld, line: string, { name }: Maker) =>
  line.endsWith(` ${world.labels.attachment(name)}`);

test(`${RUN.length} of ${CASES.length} cases: what is not ours is not touched, and one node has a single-node disk`, async () => {
  for (const [index, one] of RUN.entries())
    await check(one, index + 1).catch((error: unknown) => {
      throw new Error(`${Object.values(one).join(", ")} (case ${index})`, { cause: error });
    });
  expect(RUN.length).toBeGreaterThan(50);
}, 240_000);
