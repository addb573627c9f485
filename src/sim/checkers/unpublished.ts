import { NAMESPACE } from "../apps.ts";
import { OUT_OF_SERVICE } from "../cluster-objects.ts";
import type { Container } from "../containers.ts";
import type { StoredVolume } from "../storage.ts";
import type { SimNode, World } from "../world.ts";

const LOOK_MS = 1_000;
/** Clocks of processes run up to 0.2 % fast, and what decides is read some moments before it is done. */
const SLACK_MS = 10_000;

interface Seen {
  /** When a pod on the node last wanted the volume, or the node was last said to be ready. */
  wantedMs: number;
}

/**
 * A disk is taken from a node that lives and has it mounted only by a force, and a force has its evidence: the node out of
 * service by an operator's word, or not ready while no pod there has wanted the volume for the whole time of the policy.
 */
export function watchUnpublishes(world: World): void {
  const seen = new Map<string, Seen>();
  /** Their disk was taken by a force, so that they have nothing to lose any more. */
  const cutOff = new WeakSet<Container>();
  const clock = world.scheduler.createClock();

  function look(): void {
    for (const { metadata, spec, status } of world.objects.all("pods")) {
      const node = spec?.nodeName;
      if (node === undefined || metadata.deletionTimestamp !== undefined) continue;
      if (status?.phase === "Succeeded" || status?.phase === "Failed") continue;
      for (const { persistentVolumeClaim } of spec?.volumes ?? []) {
        const claim = world.objects.get(
          "persistentvolumeclaims",
          persistentVolumeClaim?.claimName ?? "",
          NAMESPACE,
        );
        const volume = world.objects.get("persistentvolumes", claim?.spec?.volumeName ?? "");
        const handle = volume?.spec?.csi?.volumeHandle;
        if (handle !== undefined) seen.set(`${handle} ${node}`, { wantedMs: clock.now() });
      }
    }
    for (const node of world.nodes.values()) lookAtContainers(node);
    clock.after(LOOK_MS, look);
  }

  /** A pod that runs wants what it runs on, although its claim may lead elsewhere by now. */
  function lookAtContainers({ name, containers }: SimNode): void {
    for (const { podUid, pod, volumes } of containers.running.values()) {
      const { metadata } = world.objects.get("pods", pod, NAMESPACE) ?? {};
      if (metadata?.uid !== podUid || metadata.deletionTimestamp !== undefined) continue;
      for (const { volume } of volumes) seen.set(`${volume.handle} ${name}`, { wantedMs: clock.now() });
    }
  }
  look();

  function unpublished(volume: StoredVolume, nodeId: string): void {
    const node = world.nodeOf(nodeId);
    if (node === undefined || !node.machine.isOn) return;
    // The machine reaches the disk under another of its ids.
    if (node.nodeIds.some((id) => volume.publishedOn.has(id))) return;
    const mounts = node.machine.mounts.filter((mount) => world.storages.at(mount) === volume);
    const users = [...node.containers.running.values()].filter(
      (container) => !cutOff.has(container) && container.volumes.some((one) => one.volume === volume),
    );
    for (const container of users) cutOff.add(container);
    if (world.byHand.hasTaken(volume, node.name)) return;
    const where = mounts[0]?.path ?? users[0]?.pod;
    if (where === undefined) return;
    const why = problem(node.name, volume.handle);
    if (why !== undefined)
      world.violate(
        `unpublished: ${volume.handle} was taken from ${node.name}, where ${where} has it, ${why}`,
      );
  }

  /** What is missing of the evidence for a force. */
  function problem(name: string, handle: string): string | undefined {
    const node = world.objects.get("nodes", name);
    if (node?.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE) === true) return undefined;
    const ready = node?.status?.conditions?.find(({ type }) => type === "Ready")?.status;
    if (node !== undefined && ready === "True") return "and the node is ready";
    const unwantedMs = clock.now() - (seen.get(`${handle} ${name}`)?.wantedMs ?? -Infinity);
    if (unwantedMs + SLACK_MS < world.forceAfterMs)
      return `${Math.round(unwantedMs / 1_000)} s after the last pod`;
    return undefined;
  }

  world.storages.on({ unpublished });
}
