import type { Cluster } from "./cluster.ts";
import { STANDING_COLUMNS, standing, type Column, type Standing } from "./columns.ts";
import { createdAt, field, nameOf, objectsAt, textAt } from "./fields.ts";
import { stateOf } from "./attachments.ts";

export interface DriverRow extends Standing {
  readonly name: string;
  readonly attachRequired: boolean;
  /** Nodes where it is registered, of all there are. */
  readonly nodes: number;
  readonly nodesInAll: number;
  readonly volumes: number;
  readonly attachments: number;
  /** Attachments that are not settled. */
  readonly pending: number;
}

export const DRIVER_COLUMNS: readonly Column<DriverRow>[] = [
  { title: "NAME", text: ({ name }) => name },
  { title: "ATTACHES", wide: true, text: ({ attachRequired }) => (attachRequired ? "yes" : "no") },
  { title: "NODES", text: ({ nodes, nodesInAll }) => `${nodes}/${nodesInAll}` },
  { title: "VOLUMES", text: ({ volumes }) => String(volumes) },
  { title: "ATTACHMENTS", text: ({ attachments }) => String(attachments) },
  { title: "PENDING", text: ({ pending }) => String(pending) },
  ...STANDING_COLUMNS,
];

/** Every driver that anything names: an object of its own is not needed for a driver to be used. */
export function driverRows(cluster: Cluster): readonly DriverRow[] {
  const { csiDrivers, csiNodes, attachments, volumes, nodes } = cluster.objects;
  const registered = count(
    csiNodes.flatMap((item) => objectsAt(item, "spec", "drivers").map((of) => textAt(of, "name"))),
  );
  const used = count(volumes.map((pv) => textAt(pv, "spec", "csi", "driver")));
  const all = count(attachments.map((item) => textAt(item, "spec", "attacher")));
  const unsettled = attachments.filter((item) => stateOf(item) !== "attached");
  const pending = count(unsettled.map((item) => textAt(item, "spec", "attacher")));
  const names = [
    ...new Set([...csiDrivers.map(nameOf), ...registered.keys(), ...used.keys(), ...all.keys()]),
  ];
  return names
    .filter((name) => name !== "")
    .sort()
    .map((name) => {
      const object = cluster.find("csiDrivers", name);
      const on = registered.get(name) ?? 0;
      return {
        ...standingOf(cluster, name, on),
        name,
        attachRequired: field(object, "spec", "attachRequired") !== false,
        nodes: on,
        nodesInAll: nodes.length,
        volumes: used.get(name) ?? 0,
        attachments: all.get(name) ?? 0,
        pending: pending.get(name) ?? 0,
      };
    });
}

function standingOf(cluster: Cluster, name: string, on: number): Standing {
  const sinceMs = createdAt(cluster.find("csiDrivers", name));
  if (!cluster.knows("csiNodes")) return standing(name, "unknown", { sinceMs });
  if (on > 0) return standing(name, "registered", { sinceMs });
  return standing(name, "not registered", {
    sinceMs,
    reason: "driver-not-registered",
    why: "no node has registered it: its node plugin runs nowhere",
  });
}

function count(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
