import { csiDrivers, type CSIDriver } from "../../kube/api/csi-driver.ts";
import type { Client } from "../../kube/client/client.ts";
import type { ActOf, DriverAct } from "../act.ts";
import { SAN_DRIVER } from "../san.ts";
import type { ControllerAbility, NodeAbility } from "../san-abilities.ts";
import { NO_CALL_FAULTS } from "../sockets.ts";
import { VOLUMES_MAX, type SimNode, type World } from "../world.ts";
import type { ActContext, Performers } from "./context.ts";

/** Between the end of one version and the start of the next. */
const UPGRADE_MS = 1_000;

/** The storage system and its driver fail, and are changed. */
export const DRIVERS: Performers<DriverAct["kind"]> = {
  "driver-faults": breakDriver,
  "pool-full": async ({ forMs }, { world, later }) => {
    setFull(world, true);
    later(forMs, async () => setFull(world, false));
  },
  "limit-volumes": async ({ node, volumesMax, forMs }, context) => {
    setLimit(context.world.node(node), volumesMax, context);
    context.later(forMs, async () => setLimit(context.world.node(node), VOLUMES_MAX, context));
  },
  "upgrade-controller": async ({ lacks, forMs }, context) => {
    upgradeController([lacks], context);
    context.later(forMs, async () => upgradeController([], context));
  },
  "upgrade-node-driver": async ({ node: name, lacks, forMs }, context) => {
    const node = context.world.node(name);
    upgradeNode(node, [lacks], context);
    context.later(forMs, async () => upgradeNode(node, [], context));
  },
  "rename-node-id": async (act, { world, later }) => {
    const node = world.node(act.node);
    node.driverProcess.kill();
    node.nodeIds.push(`${act.node}-${node.nodeIds.length}`);
    later(1_000, async () => node.machine.isOn && node.driverProcess.start());
  },
  "delete-csi-driver": async ({ forMs }, { client, later }) => {
    await client.delete(csiDrivers, { name: SAN_DRIVER });
    later(forMs, () => makeDriver(client));
  },
  "switch-csi-driver": async ({ forMs }, context) => {
    await switchDriver(context, false);
    context.later(forMs, () => switchDriver(context, true));
  },
};

/** No client can change the field: the object is deleted and made anew. */
async function switchDriver({ world, client }: ActContext, attachRequired: boolean): Promise<void> {
  const { spec } = world.objects.get("csidrivers.storage.k8s.io", SAN_DRIVER) ?? {};
  if (spec?.attachRequired === attachRequired) return;
  if (spec !== undefined) await client.delete(csiDrivers, { name: SAN_DRIVER }).catch(() => undefined);
  await makeDriver(client, attachRequired);
}

/** Its driver is replaced by one that says another limit. */
function setLimit(node: SimNode, volumesMax: number, context: ActContext): void {
  if (node.limits.volumesMax === volumesMax) return;
  node.limits.volumesMax = volumesMax;
  restart(node, context);
}

function upgradeNode(node: SimNode, lacks: readonly NodeAbility[], context: ActContext): void {
  if (!replaced(node.lacks, lacks)) return;
  restart(node, context);
}

function upgradeController(lacks: readonly ControllerAbility[], { world, later }: ActContext): void {
  if (!replaced(world.san.lacks, lacks)) return;
  const process = world.processes.get("san-driver");
  process?.kill();
  later(UPGRADE_MS, async () => process?.start());
}

function restart({ machine, driverProcess }: SimNode, { later }: ActContext): void {
  driverProcess.kill();
  later(UPGRADE_MS, async () => machine.isOn && driverProcess.start());
}

/** Whether that is a change. */
function replaced<T>(lacked: Set<T>, lacks: readonly T[]): boolean {
  if (lacked.size === lacks.length && lacks.every((ability) => lacked.has(ability))) return false;
  lacked.clear();
  for (const ability of lacks) lacked.add(ability);
  return true;
}

/** Every driver answers, and the cluster knows how to use it. */
export async function healDrivers(context: ActContext): Promise<void> {
  const { world } = context;
  for (const { sockets } of [world.infra, ...[...world.nodes.values()].map(({ machine }) => machine)])
    sockets.faults = NO_CALL_FAULTS;
  for (const node of world.nodes.values()) {
    setLimit(node, VOLUMES_MAX, context);
    upgradeNode(node, [], context);
  }
  upgradeController([], context);
  await switchDriver(context, true);
  setFull(world, false);
}

function setFull({ san, loopPool }: World, isFull: boolean): void {
  san.isFull = isFull;
  if (loopPool !== undefined) loopPool.isFull = isFull;
}

/** The CSIDriver object; one that is there is fine. */
export async function makeDriver(client: Client, attachRequired = true): Promise<void> {
  const spec = { attachRequired } as CSIDriver["spec"];
  await client.create(csiDrivers, { metadata: { name: SAN_DRIVER }, spec }).catch(() => undefined);
}

async function breakDriver(
  { machine, rate, slowMs, forMs }: ActOf<"driver-faults">,
  { world, later }: ActContext,
): Promise<void> {
  const { sockets } = machine === "infra" ? world.infra : world.node(machine).machine;
  const codes = ["UNAVAILABLE", "INTERNAL", "ABORTED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"] as const;
  sockets.faults = { refused: rate / 2, answerLost: rate / 3, hung: rate / 10, takesMsMax: slowMs, codes };
  later(forMs, async () => {
    sockets.faults = NO_CALL_FAULTS;
  });
}
