import type { Apps } from "../apps.ts";
import { reportedWaits, waitLine } from "../reported-waits.ts";
import type { World } from "../world.ts";
import { mountedOn } from "./node-status.ts";
import { clusterOf, whyPod } from "./why.ts";

/** Why the cluster is not where its workload wants it to be; none once every pod runs with its volume. */
export function unsettled(world: World, apps: Apps): readonly string[] {
  const waiting: string[] = [];
  for (const app of apps.apps.values()) {
    const pod = apps.podOf(app);
    const where = pod?.spec?.nodeName ?? "";
    const container = world.nodes.get(where)?.containers.running.get(pod?.metadata.uid ?? "");
    if (pod?.status?.phase === "Succeeded") continue;
    if (pod === undefined) waiting.push(`${app.name} has no pod`);
    else if (pod.metadata.deletionTimestamp !== undefined)
      waiting.push(`${app.name}'s pod on ${where} does not end`);
    else if (container === undefined || pod.status?.phase !== "Running")
      waiting.push(`${app.name}'s pod does not run on ${where === "" ? "any node" : where}`);
  }
  for (const { name, isGone } of world.nodes.values()) {
    if (isGone) continue;
    const ready = world.objects.get("nodes", name)?.status?.conditions?.find(({ type }) => type === "Ready");
    if (ready?.status !== "True") waiting.push(`${name} is not ready`);
  }
  return waiting;
}

/** What everybody says of why it is so: the answer of `mooring why` for each pod, and what the programs wait for. */
export function explained(world: World, apps: Apps): readonly string[] {
  const cluster = clusterOf(world);
  const answers = [...apps.apps.values()].flatMap(({ name }) => {
    const answer = whyPod(cluster, `${name}-0`);
    return answer === undefined || answer.healthy ? [] : [`why: ${answer.summary}`];
  });
  return [...answers, ...reportedWaits(world).map(waitLine)];
}

/** Snapshots, and disks that no PersistentVolume names, unless an operator has taken them over. */
function copiesLeft(world: World): readonly string[] {
  const handles = handlesOf(world);
  return [
    ...world.objects
      .all("volumesnapshots.snapshot.storage.k8s.io")
      .map(({ metadata }) => `VolumeSnapshot ${metadata.name}`),
    ...world.objects
      .all("volumesnapshotcontents.snapshot.storage.k8s.io")
      .map(({ metadata }) => `VolumeSnapshotContent ${metadata.name}`),
    ...[...world.san.snapshots.all.keys()].map((handle) => `snapshot ${handle} in the storage system`),
    ...[...world.san.volumes.values()]
      .filter(({ handle, byOperator }) => !byOperator && !handles.has(handle))
      .map(({ handle }) => `${handle} in the storage system`),
  ];
}

function handlesOf(world: World): ReadonlySet<string> {
  const volumes = world.objects.all("persistentvolumes");
  return new Set(volumes.map(({ spec }) => spec?.csi?.volumeHandle ?? ""));
}

/** What is left of a cluster whose workload is gone. */
export function leftovers(world: World): readonly string[] {
  const left: string[] = [];
  for (const { metadata } of world.objects.all("pods")) left.push(`pod ${metadata.name}`);
  for (const { metadata } of world.objects.all("persistentvolumeclaims")) left.push(`claim ${metadata.name}`);
  for (const { metadata } of world.objects.all("volumeattachments.storage.k8s.io"))
    left.push(`VolumeAttachment ${metadata.name}`);
  for (const { metadata, spec } of world.objects.all("persistentvolumes"))
    if (spec?.persistentVolumeReclaimPolicy !== "Retain") left.push(`PersistentVolume ${metadata.name}`);
  left.push(...copiesLeft(world));
  for (const { handle, publishedOn } of world.storages.volumes.values())
    for (const node of publishedOn.keys()) left.push(`${handle} published on ${node}`);
  left.push(...(world.loopPool?.leftovers(handlesOf(world)) ?? []));
  for (const node of world.nodes.values()) {
    if (node.isGone) continue;
    for (const { handle } of mountedOn(world, node)) left.push(`${handle} mounted on ${node.name}`);
    const { host, rootDir } = node.machine;
    for (const line of host.describe(`${rootDir}/pods`))
      if (line !== `${rootDir}/pods directory`) left.push(`${node.name}: ${line}`);
    const status = world.objects.get("nodes", node.name)?.status;
    for (const name of status?.volumesInUse ?? []) left.push(`${name} in use on ${node.name}`);
    for (const { name } of status?.volumesAttached ?? []) left.push(`${name} attached on ${node.name}`);
  }
  return left;
}
