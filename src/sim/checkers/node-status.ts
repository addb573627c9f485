import { isUnread } from "../../kube/api/node.ts";
import type { StoredVolume } from "../storage.ts";
import type { SimNode, World } from "../world.ts";

/** A Node that was deleted and made again says nothing of volumes until its agent has noticed. */
const NEW_NODE_MS = 60_000;

/**
 * `volumesInUse` names what is mounted and `volumesAttached` only what is attached, at every instant: the one keeps a
 * controller from detaching, the other lets an agent mount. Looked at whenever a Node is written, a disk comes or goes, or
 * something is mounted.
 */
export function watchStatus(world: World): void {
  const clock = world.scheduler.createClock();
  const told = new Set<string>();
  /** The Node object of each name, and when it took the place of another. */
  const born = new Map<string, { readonly uid: string; readonly atMs: number }>();

  function tell(text: string): void {
    if (told.has(text)) return;
    told.add(text);
    world.violate(text);
  }

  /** Whether its agent has had the time to say something. */
  function isNew(name: string, uid: string): boolean {
    const known = born.get(name);
    const atMs = known === undefined ? -Infinity : known.uid === uid ? known.atMs : clock.now();
    born.set(name, { uid, atMs });
    return clock.now() - atMs < NEW_NODE_MS;
  }

  function lookAt(node: SimNode): void {
    const object = world.objects.get("nodes", node.name);
    if (object === undefined || isNew(node.name, object.metadata.uid ?? "")) return;
    const inUse = new Set(object.status?.volumesInUse ?? []);
    for (const volume of mountedOn(world, node))
      // One that says that it does not know yet has nothing taken away by its controller.
      if (node.machine.isOn && !isUnread(object) && !inUse.has(nameOf(volume)))
        tell(`in-use: ${volume.handle} is mounted on ${node.name} and not among its volumesInUse`);
    for (const { name } of object.status?.volumesAttached ?? []) {
      const handle = handleOf(name);
      const { publishedOn } = world.storages.volumes.get(handle) ?? {};
      if (world.byHand.hasTaken({ handle }, node.name)) continue;
      if (!node.nodeIds.some((id) => publishedOn?.has(id) === true))
        tell(`attached: ${handle} is among the volumesAttached of ${node.name} and not published there`);
    }
  }

  function lookAtAll(): void {
    for (const node of world.nodes.values()) lookAt(node);
  }

  function follow(): void {
    const { store } = world.server;
    const watch = store.watch({ resource: "nodes", afterRevision: store.revision }, () => {
      while (watch.take() !== undefined);
      lookAtAll();
      if (watch.state !== "open") follow();
    });
  }

  follow();
  world.storages.on({ published: lookAtAll, unpublished: lookAtAll });
  world.onNode((node) => node.machine.onMount(() => lookAt(node)));
}

export function mountedOn({ storages }: World, { machine }: SimNode): ReadonlySet<StoredVolume> {
  return new Set(machine.mounts.flatMap((mount) => storages.at(mount) ?? []));
}

function nameOf({ driver, handle }: StoredVolume): string {
  return `kubernetes.io/csi/${driver}^${handle}`;
}

function handleOf(name: string): string {
  return name.slice(name.indexOf("^") + 1);
}
