import { inParallel } from "../../bench/attach-detach/api.ts";
import { createEstate, createPod, deletePod, type Estate } from "../../bench/attach-detach/estate.ts";
import { nodes, type Node } from "../../src/kube/api/node.ts";
import { volumeAttachments, type VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import type { ObjectList } from "../../src/kube/client/client.ts";
import type { Informer } from "../../src/kube/informer/informer.ts";
import type { KubeObject } from "../../src/kube/object.ts";
import { ATTACH_DETACH, startController } from "../harness/cast.ts";
import { startControlPlane, type ControlPlane } from "../harness/control-plane.ts";
import { attachAtOnce, attachmentsOf, builderOf, untilAttached } from "../harness/fleet.ts";
import type { Stage } from "../harness/stage.ts";
import type { Performance } from "./suite.ts";

/** Volumes that belong to pods nobody touches. */
const STABLE: Estate = { name: "stable", nodes: 50, volumes: 500 };
/** Volumes whose pods come and go meanwhile: a controller that does nothing would pass otherwise. */
const BUSY: Estate = { name: "busy", nodes: 10, volumes: 40 };
const IN_FLIGHT = 16;
/** Far above: all steps together take 12 s on a machine at rest, and 97 s where 27 processes want its two cores. */
const STEP_MS_MAX = 300_000;

/** The built-in controller, ours, and the built-in one again; what belongs where it is may not move. */
export async function takeover({ stage, binaries }: Performance): Promise<string> {
  await binaries.need("etcd", "kube-apiserver", "kube-controller-manager");
  const plane = await startControlPlane(stage, binaries);
  try {
    const attachments = await plane.api.follow(volumeAttachments);
    attachAtOnce(plane.api, attachments);
    const builtIn = await plane.startManager(ATTACH_DETACH);
    const builder = builderOf(plane.api);
    for (const estate of [STABLE, BUSY]) await createEstate(builder, estate);
    await inParallel(STABLE.volumes, IN_FLIGHT, (index) => createPod(builder, STABLE, index));
    await untilAttached(stage, attachments, { estate: STABLE, count: STABLE.volumes, withinMs: STEP_MS_MAX });
    await untilListed(stage, plane);
    const witness = await watchStable(plane, attachments);

    await builtIn.end();
    // What it had still to tell it told on its way out; from here on the events are those of its successor.
    await witness.forgetEvents();
    const ours = startController(stage, plane.kubeconfig);
    await workBusy(stage, plane, attachments);
    const told = await witness.events();
    await ours.end();
    await plane.startManager(ATTACH_DETACH);
    await workBusy(stage, plane, attachments);

    const toldBack = (await witness.events()).length - told.length;
    const { moved, unlisted } = witness;
    if (moved.size > 0)
      throw new Error(`${moved.size} VolumeAttachments changed: ${[...moved].slice(0, 3).join(", ")}`);
    if (unlisted.size > 0) throw new Error(`${unlisted.size} volumes left volumesAttached meanwhile`);
    if (told.length > 0)
      throw new Error(`${told.length} events about pods that nobody touched: ${told.slice(0, 3).join(", ")}`);
    return `${STABLE.volumes} volumes: 0 changed, 0 unlisted, 0 events by ours, ${toldBack} on the way back`;
  } finally {
    await plane.close();
  }
}

/** Pods come, are attached, go, and are detached: the controller that took over is at work. */
async function workBusy(
  stage: Stage,
  { api }: ControlPlane,
  attachments: Informer<VolumeAttachment>,
): Promise<void> {
  const builder = builderOf(api);
  await inParallel(BUSY.volumes, IN_FLIGHT, (index) => createPod(builder, BUSY, index));
  await untilAttached(stage, attachments, { estate: BUSY, count: BUSY.volumes, withinMs: STEP_MS_MAX });
  await inParallel(BUSY.volumes, IN_FLIGHT, (index) => deletePod(builder, BUSY, index));
  await untilAttached(stage, attachments, { estate: BUSY, count: 0, withinMs: STEP_MS_MAX });
}

function untilListed(stage: Stage, { api }: ControlPlane): Promise<boolean> {
  return stage.until("every volume in volumesAttached", STEP_MS_MAX, async () => {
    const { items } = await api.send<ObjectList<Node>>("GET", "/api/v1/nodes");
    const listed = items.reduce((sum, { status }) => sum + (status?.volumesAttached?.length ?? 0), 0);
    return listed === STABLE.volumes;
  });
}

/** Follows the stable volumes: which attachment was made anew or deleted, which volume a node forgot, what was said. */
async function watchStable({ api }: ControlPlane, attachments: Informer<VolumeAttachment>) {
  const uids = new Map(
    attachmentsOf(attachments, STABLE).map(({ metadata }) => [metadata.name, metadata.uid]),
  );
  const moved = new Set<string>();
  attachments.addHandler(({ kind, object: { metadata, status } }) => {
    const uid = uids.get(metadata.name);
    if (uid === undefined) return;
    const same = kind !== "deleted" && metadata.uid === uid && metadata.deletionTimestamp === undefined;
    if (!same || status?.attached !== true) moved.add(metadata.name ?? "");
  });
  const unlisted = new Set<string>();
  (await api.follow(nodes)).addHandler(({ object: { metadata, status } }) => {
    const perNode = STABLE.volumes / STABLE.nodes;
    const name = metadata.name ?? "";
    if (name.startsWith(`${STABLE.name}-`) && (status?.volumesAttached?.length ?? 0) !== perNode)
      unlisted.add(name);
  });
  const eventsNow = async () =>
    (await api.send<ObjectList<Told>>("GET", `/api/v1/namespaces/${STABLE.name}/events`)).items;
  const before = new Set<string | undefined>();
  return {
    moved,
    unlisted,
    async forgetEvents() {
      for (const { metadata } of await eventsNow()) before.add(metadata.uid);
    },
    events: async () => (await eventsNow()).filter(({ metadata }) => !before.has(metadata.uid)).map(tellOf),
  };
}

type Told = KubeObject & { readonly reason?: string; readonly source?: { readonly component?: string } };

function tellOf({ metadata, reason = "", source }: Told): string {
  return `${source?.component ?? "?"}: ${reason} ${metadata.name ?? ""}`;
}
