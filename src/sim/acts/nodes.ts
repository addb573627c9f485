import { nodes } from "../../kube/api/node.ts";
import { pods } from "../../kube/api/pod.ts";
import type { ActOf, NodeAct } from "../act.ts";
import { NAMESPACE } from "../apps.ts";
import { OUT_OF_SERVICE } from "../cluster-objects.ts";
import type { ActContext, Performers } from "./context.ts";

/** Nodes come and go, are drained, lose their power, are declared dead. */
export const NODES: Performers<NodeAct["kind"]> = {
  drain,
  "delete-node": async ({ node }, { client }) => client.delete(nodes, { name: node }),
  "power-off": powerOff,
  join: async ({ node }, { world }) => {
    if (world.nodes.has(node)) return;
    for (const process of world.addNode(node).processes) process.start();
  },
  leave,
  reinstall,
  blackout: async ({ forMs }, context) => {
    context.world.blackOut();
    context.later(forMs, () => healPower(context));
  },
};

/** Every machine is on that was not taken away. */
export async function healPower(context: ActContext): Promise<void> {
  const { world } = context;
  const { infra, server, processes, handover } = world;
  if (!infra.isOn) {
    await server.start();
    infra.powerOn();
    for (const process of processes.values())
      if (world.machineOf(process.name) === infra && world.mayRun(process.name)) process.start();
    handover.powerOn();
  }
  for (const name of context.world.nodes.keys()) await powerOn(name, context);
}

/** Every node takes pods, and no pod is for one that is not there. */
export async function healNodes(context: ActContext): Promise<void> {
  const { apps, client, world } = context;
  for (const { name, isGone } of world.nodes.values()) {
    if (isGone) continue;
    await uncordon(name, context);
    await untaint(name, context);
  }
  const isMissing = (node: string | undefined) =>
    node !== undefined && world.nodes.get(node)?.isGone !== false;
  for (const app of apps.apps.values()) {
    // The pod may select another node than its app: whoever moved the app did not reach the server to delete the pod.
    const selected = apps.podOf(app)?.spec?.nodeSelector?.["kubernetes.io/hostname"];
    if (!isMissing(app.node) && !isMissing(selected)) continue;
    if (isMissing(app.node)) app.node = undefined;
    await client.delete(pods, { namespace: NAMESPACE, name: `${app.name}-0` }).catch(() => undefined);
  }
}

async function drain({ node, forMs }: ActOf<"drain">, context: ActContext): Promise<void> {
  context.later(forMs, () => uncordon(node, context));
  await empty(node, context);
}

/** `kubectl drain`: cordoned, and its pods deleted. */
async function empty(node: string, { client, world }: ActContext): Promise<void> {
  const value = { spec: { unschedulable: true } };
  await client.patch(nodes, { name: node }, { type: "merge", value });
  for (const { metadata, spec } of world.objects.all("pods"))
    if (spec?.nodeName === node)
      await client.delete(pods, { namespace: NAMESPACE, name: metadata.name ?? "" });
}

async function uncordon(name: string, { client }: ActContext): Promise<void> {
  const value = { spec: { unschedulable: null } };
  await client.patch(nodes, { name }, { type: "merge", value }).catch(() => undefined);
}

async function leave({ node: name, forMs }: ActOf<"leave">, context: ActContext): Promise<void> {
  context.later(forMs, () => takeAway(name, context));
  await empty(name, context);
}

/**
 * The loop driver detaches no volume that is staged, and only the node's own agent has it unstaged: whoever takes a machine
 * away with such a volume loses it until he mends the pool's records by hand. So he looks before.
 */
async function takeAway(name: string, context: ActContext): Promise<void> {
  const node = context.world.node(name);
  const { loopPool, trace } = context.world;
  if (context.isHealed || loopPool?.isStagedOn(name) === true) return;
  node.isGone = true;
  node.machine.powerOff();
  trace.add(name, "is taken away");
  await deleteNode(name, context);
}

/** However often it takes: of a machine that is off nobody registers it again. */
async function deleteNode(name: string, { world, client }: ActContext): Promise<void> {
  while (world.objects.get("nodes", name) !== undefined) {
    await client.delete(nodes, { name }).catch(() => undefined);
    await world.scheduler.createClock().sleep(1_000);
  }
}

async function reinstall(
  { node: name, deleted, forMs }: ActOf<"reinstall">,
  context: ActContext,
): Promise<void> {
  const { machine } = context.world.node(name);
  machine.powerOff();
  // An agent with an empty disk would never have unstaged what the pool's records say is staged; see `takeAway`.
  if (context.world.loopPool?.isStagedOn(name) !== true) machine.wipe();
  context.world.trace.add(name, "is replaced by another machine");
  context.later(forMs, () => powerOn(name, context));
  if (deleted) await context.client.delete(nodes, { name });
}

async function powerOff(
  { node: name, forMs, taint, driverAfterMs }: ActOf<"power-off">,
  context: ActContext,
): Promise<void> {
  const { machine } = context.world.node(name);
  const isOn = () => machine.isOn;
  machine.powerOff();
  if (taint)
    context.later(Math.min(forMs / 2, 30_000), async () => {
      // An operator looks before he says so.
      if (!machine.isOn) await setTaint(name, true, context);
      // The server was away, and the machine is back.
      if (isOn()) await untaint(name, context);
    });
  context.later(forMs, () => powerOn(name, context, driverAfterMs));
}

async function powerOn(name: string, context: ActContext, driverAfterMs = 0): Promise<void> {
  const { world } = context;
  const node = world.node(name);
  const { machine, disks, processes, driverProcess } = node;
  // Asked again after an await, which the compiler takes for the same answer.
  const isOn = () => machine.isOn;
  const hasLeft = () => node.isGone;
  if (isOn() || hasLeft()) return;
  // The taint goes first: a node that lives must not be one that nobody has to wait for.
  await untaint(name, context);
  if (isOn() || hasLeft()) return;
  machine.powerOn();
  disks.discover();
  world.trace.add(name, "is switched on");
  for (const process of processes) if (process !== driverProcess || driverAfterMs === 0) process.start();
  if (driverAfterMs > 0) context.later(driverAfterMs, async () => machine.isOn && driverProcess.start());
}

async function untaint(name: string, context: ActContext): Promise<void> {
  const { tainted, world } = context;
  while (tainted.has(name)) {
    await setTaint(name, false, context).catch(() => undefined);
    if (tainted.has(name)) await world.scheduler.createClock().sleep(1_000);
  }
}

async function setTaint(name: string, on: boolean, { world, client, tainted }: ActContext): Promise<void> {
  const node = world.objects.get("nodes", name);
  if (node === undefined) {
    tainted.delete(name);
    return;
  }
  const others = (node.spec?.taints ?? []).filter(({ key }) => key !== OUT_OF_SERVICE);
  const taint = { key: OUT_OF_SERVICE, value: "nodeshutdown", effect: "NoExecute" };
  const { resourceVersion } = node.metadata;
  const value = { metadata: { resourceVersion }, spec: { taints: on ? [...others, taint] : others } };
  await client.patch(nodes, { name }, { type: "merge", value });
  if (on) tainted.add(name);
  else tainted.delete(name);
  world.trace.add("operator", `${on ? "taints" : "untaints"} ${name}`, { to: name });
  if (!on) return;
  // Pods of a node out of service are deleted with force by kube-controller-manager.
  for (const { metadata, spec } of world.objects.all("pods"))
    if (spec?.nodeName === name)
      await client
        .delete(pods, { namespace: NAMESPACE, name: metadata.name ?? "" }, { gracePeriodSeconds: 0 })
        .catch(() => undefined);
}
