import type { Container } from "../containers.ts";
import type { Mounted } from "../../node/memory/tree.ts";
import type { SimNode, World } from "../world.ts";

const LOOK_MS = 500;

/**
 * What a container has stays with it while it runs, whoever deleted its pod: its mounts are not taken down, and no second
 * container of the node gets a volume for one node before the first has ended. One whose disk was taken by a force has
 * nothing to lose any more.
 */
export function watchContainers(world: World): void {
  const clock = world.scheduler.createClock();
  const cutOff = new WeakSet<Container>();
  const told = new WeakSet<Container>();

  function tell(container: Container, text: string): void {
    if (told.has(container)) return;
    told.add(container);
    world.violate(text);
  }

  function lookAt({ name, machine, containers }: SimNode): void {
    if (containers.running.size === 0) return;
    const users = new Map<string, Container>();
    // Read once: on a shared computer it is picked from the mounts of all machines.
    const mounted = new Set(machine.mounts.map(keyOf));
    for (const container of containers.running.values()) {
      if (cutOff.has(container)) continue;
      for (const { volume, mount } of container.volumes) {
        if (!mounted.has(keyOf(mount)))
          tell(container, `kept: ${mount.path} on ${name} was taken down while ${container.pod} runs`);
        const other = users.get(volume.handle);
        // A raw volume is mapped at two paths of its pod.
        if (!volume.shared && other !== undefined && other !== container)
          tell(container, `one-pod: two containers of ${container.pod} on ${name} have ${volume.handle}`);
        users.set(volume.handle, container);
      }
    }
  }

  function look(): void {
    for (const node of world.nodes.values()) if (node.machine.isOn) lookAt(node);
    clock.after(LOOK_MS, look);
  }
  look();

  world.storages.on({
    unpublished({ handle }, nodeId) {
      for (const container of world.nodeOf(nodeId)?.containers.running.values() ?? [])
        if (container.volumes.some(({ volume }) => volume.handle === handle)) cutOff.add(container);
    },
  });
}

function keyOf({ path, source }: Pick<Mounted, "path" | "source">): string {
  return `${path} ${source}`;
}
