import { found, seen } from "./checks/check.ts";
import { nodeNotReady } from "./checks/node-checks.ts";
import type { Cluster } from "./cluster.ts";
import { diagnosePod } from "./diagnose.ts";
import { explanation, type Explanation } from "./explanation.ts";
import { nameOf, objectsAt, textAt, textsAt } from "./fields.ts";
import { listedOn } from "./consistency/listed.ts";
import { contradictionsOf, inWords } from "./consistency/contradictions.ts";
import { leftover } from "./leftovers.ts";
import { chainOf } from "./chain.ts";
import type { Finding } from "./reasons/reasons.ts";
import { bareView, volumeViewsOf } from "./volume-view.ts";

/** A node: whether it answers, which drivers it has, then everything on it that is stuck. */
export function explainNode(cluster: Cluster, name: string): Explanation | undefined {
  const node = cluster.find("nodes", name);
  const attachments = cluster.attachmentsOn(name);
  if (node === undefined && attachments.length === 0) return undefined;
  const view = bareView(cluster, { nodeName: name });
  const waiting = cluster.podsOn(name).flatMap((pod) => diagnosePod(cluster, pod).slice(0, 1));
  const left = attachments.flatMap((item) => leftover(cluster, item) ?? []);
  // A driver that is not installed anywhere explains that it is not registered here.
  const isUninstalled = ({ reason }: Finding) => reason === "driver-uninstalled";
  const findings = [
    ...gone(cluster, name),
    ...(nodeNotReady(view) === undefined ? [] : [nodeNotReady(view) as Finding]),
    ...left.filter(isUninstalled),
    ...withoutDrivers(cluster, name),
    ...waiting.map(({ finding }) => finding),
    ...left.filter((finding) => !isUninstalled(finding)),
    ...strangers(cluster, name),
    ...listedOn(
      cluster,
      name,
      objectsAt(node, "status", "volumesAttached").map((item) => textAt(item, "name")),
    ),
  ];
  const inUse = textsAt(node, "status", "volumesInUse").length;
  const views = cluster.podsOn(name).flatMap((pod) => volumeViewsOf(cluster, pod));
  return explanation(cluster, {
    contradictions: views.flatMap(contradictionsOf).map(inWords),
    subject: `Node ${name}`,
    lead: (blocks) => blocks,
    healthy: `Node ${name} is healthy: ready, with ${attachments.length} volume(s) attached and ${inUse} in use; nothing blocks it`,
    findings,
    chain: chainOf(view),
    others: attachments.map(
      (item) => `${textAt(item, "spec", "source", "persistentVolumeName") || nameOf(item)}: ${stateOf(item)}`,
    ),
  });
}

function stateOf(attachment: object): string {
  const attached = (attachment as { status?: { attached?: unknown } }).status?.attached === true;
  return textAt(attachment, "metadata", "deletionTimestamp")
    ? "detaching"
    : attached
      ? "attached"
      : "attaching";
}

/** Attachments outlive their node. */
function gone(cluster: Cluster, name: string): readonly Finding[] {
  if (cluster.find("nodes", name) !== undefined || !cluster.knows("nodes")) return [];
  const [attachment] = cluster.attachmentsOn(name);
  const view = bareView(cluster, { nodeName: name });
  return [
    found("held-by-missing-node", view, {
      names: {
        holder: name,
        pv: textAt(attachment, "spec", "source", "persistentVolumeName"),
        attachment: nameOf(attachment),
      },
      evidence: [seen("Node", "metadata.name", `no ${name}`)],
    }),
  ];
}

function withoutDrivers(cluster: Cluster, name: string): readonly Finding[] {
  const [attachment] = cluster.attachmentsOn(name);
  const driver = textAt(attachment, "spec", "attacher");
  if (driver === "" || !cluster.knows("csiNodes") || cluster.find("nodes", name) === undefined) return [];
  const csiNode = cluster.find("csiNodes", name);
  const drivers = objectsAt(csiNode, "spec", "drivers").map((item) => textAt(item, "name"));
  if (drivers.includes(driver)) return [];
  const view = { ...bareView(cluster, { nodeName: name }), driver };
  const reason = csiNode === undefined ? "csinode-missing" : "driver-not-registered";
  return [found(reason, view, { evidence: [seen(`CSINode ${name}`, "spec.drivers", drivers.join(", "))] })];
}

/** In use, by the node's word, and attached by nobody. */
function strangers(cluster: Cluster, name: string): readonly Finding[] {
  const node = cluster.find("nodes", name);
  if (!cluster.knows("attachments") || !cluster.knows("pods") || cluster.podsOn(name).length > 0) return [];
  if (cluster.attachmentsOn(name).length > 0) return [];
  return textsAt(node, "status", "volumesInUse").map((volume) =>
    found("still-mounted", bareView(cluster, { nodeName: name }), {
      names: { pv: volume, then: "it goes as soon as the kubelet there has unmounted it" },
      evidence: [seen(`Node ${name}`, "status.volumesInUse", volume)],
    }),
  );
}
