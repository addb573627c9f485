import type { ApiObject } from "../objects.ts";
import { ageText } from "./age.ts";
import { conditionStatus, listAt, textAt } from "./fields.ts";
import { summarisePod, type PodSummary } from "./pod-status.ts";
import {
  ageColumn,
  column,
  createViewPrinter,
  nameColumn,
  wideColumn,
  type Cell,
  type Column,
  type PrintContext,
  type RowCondition,
} from "./printer.ts";

interface PodView extends PodSummary {
  readonly pod: ApiObject;
}

export const podPrinter = createViewPrinter<PodView>(
  (pod) => ({ pod, ...summarisePod(pod) }),
  [
    ofPod(nameColumn),
    column("Ready", "How many of its containers are ready", ({ ready, total }) => `${ready}/${total}`),
    column("Status", "What the pod is doing, or why it is not", ({ status }) => status),
    column("Restarts", "How often its containers were restarted, and when last", restartsText),
    ofPod(ageColumn),
    wideColumn("IP", "The first of its addresses", ({ pod }) => orNone(firstIp(pod))),
    wideColumn("Node", "The node it was given to", ({ pod }) => orNone(textAt(pod, "spec", "nodeName"))),
    wideColumn("Nominated Node", "The node being cleared for it", ({ pod }) =>
      orNone(textAt(pod, "status", "nominatedNodeName")),
    ),
    wideColumn("Readiness Gates", "How many of its extra conditions hold", ({ pod }) => gatesText(pod)),
  ],
  rowConditions,
);

function ofPod(inner: Column): Column<PodView> {
  return { ...inner, cell: ({ pod }, context): Cell => inner.cell(pod, context) };
}

function restartsText({ restarts, lastRestartMs }: PodView, { nowMs }: PrintContext): string {
  if (restarts === 0 || lastRestartMs === undefined) return String(restarts);
  return `${restarts} (${ageText(nowMs - lastRestartMs)} ago)`;
}

function firstIp(pod: ApiObject): string {
  return textAt(listAt(pod, "status", "podIPs")[0], "ip");
}

function gatesText(pod: ApiObject): string {
  const gates = listAt(pod, "spec", "readinessGates").map((gate) => textAt(gate, "conditionType"));
  const open = gates.filter((type) => conditionStatus(pod, type) === "True");
  return gates.length === 0 ? "<none>" : `${open.length}/${gates.length}`;
}

function orNone(text: string): string {
  return text || "<none>";
}

function rowConditions(pod: ApiObject): readonly RowCondition[] | undefined {
  const phase = textAt(pod, "status", "phase");
  if (phase !== "Succeeded" && phase !== "Failed") return undefined;
  const message = phase === "Succeeded" ? "All its containers ended well." : "A container of it failed.";
  return [{ type: "Completed", status: "True", reason: phase, message }];
}
