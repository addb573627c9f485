import { nodes } from "../../kube/api/node.ts";
import { pods } from "../../kube/api/pod.ts";
import type { ActOf, NodeAct } from "../act.ts";
import { NAMESPACE } from "../apps.ts";
import { OUT_OF_SERVICE } from "../cluster-objects.ts";
import type { ActContext, Performers } from "./context.ts";

/** Nodes are drained, lose their power, are declared dead. */
export const NODES: Performers<NodeAct["kind"]> = {
  drain,
  "delete-node": async ({ node }, { client }) => client.delete(nodes, { name: node }),
  "power-off": powerOff,
  blackout: async ({ forMs }, context) => {
    context.world.blackOut();
    context.later(forMs, () => healPower(context));
  },
};

/** Every machine is on. */
export async function healPower(context: ActContext): Promise<void> {
  const { infra, server, processes } = context.world;
  if (!infra.isOn) {
    await server.start();
    infra.powerOn();
    for (const process of processes.values())
      if (context.world.machineOf(process.name) === infra) process.start();
  }
  for (const name of context.world.nodes.keys()) await powerOn(name, context);
}

/** Every node takes pods. */
export async function healNodes(context: ActContext): Promise<void> {
  for (const name of context.world.nodes.keys()) {
    await uncordon(name, context);
    await untaint(name, context);
  }
}

/** `kubectl drain`: cordoned, and its pods deleted. */
async function drain({ node, forMs }: ActOf<"drain">, context: ActContext): Promise<void> {
  const { client, world } = context;
  const value = { spec: { unschedulable: true } };
  await client.patch(nodes, { name: node }, { type: "merge", value });
  context.later(forMs, () => uncordon(node, context));
  for (const { metadata, spec } of world.objects.all("pods"))
    if (spec?.nodeName === node)
      await client.delete(pods, { namespace: NAMESPACE, name: metadata.name ?? "" });
}

async function uncordon(name: string, { client }: ActContext): Promise<void> {
  const value = { spec: { unschedulable: null } };
  await client.patch(nodes, { name }, { type: "merge", value }).catch(() => undefined);
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
  const { machine, disks, processes, driverProcess } = world.node(name);
  // Asked again after an await, which the compiler takes for the same answer.
  const isOn = () => machine.isOn;
  if (isOn()) return;
  // The taint goes first: a node that lives must not be one that nobody has to wait for.
  await untaint(name, context);
  if (isOn()) return;
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
