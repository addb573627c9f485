import type { Pod } from "../kube/api/pod.ts";
import { stateOf } from "./attachments.ts";
import type { ChainLink } from "./chain.ts";
import { causeOfClaim } from "./claim-cause.ts";
import { seen } from "./checks/check.ts";
import type { Cluster } from "./cluster.ts";
import { hasStarted } from "./conditions.ts";
import { diagnosePod } from "./diagnose.ts";
import { explanation, type Explanation } from "./explanation.ts";
import { createdAt, field, idOf, nameOf, textAt, textsAt } from "./fields.ts";
import { wordsOf, type Finding } from "./reasons/reasons.ts";
import { claimsOfClass, isUnbound, nodesWithDriver, volumesOfDriver } from "./storage-classes.ts";
import { counted, someOf, told } from "./told.ts";

/** What belongs to one driver; a driver needs no CSIDriver object to be used. */
interface DriverParts {
  readonly cluster: Cluster;
  readonly name: string;
  readonly attachRequired: boolean;
  readonly nodes: readonly string[];
  readonly volumes: readonly object[];
  readonly attachments: Cluster["objects"]["attachments"];
  readonly classes: readonly string[];
}

/** A CSI driver: on which nodes it is, what depends on it, and what waits for it. */
export function explainDriver(cluster: Cluster, name: string): Explanation | undefined {
  const parts = partsOf(cluster, name);
  const { nodes, volumes, attachments, classes } = parts;
  const isNamed = nodes.length + volumes.length + attachments.length + classes.length > 0;
  if (cluster.find("csiDrivers", name) === undefined && !isNamed) return undefined;
  const waiting = waitingPods(parts);
  const claims = waitingClaims(parts);
  return explanation(cluster, {
    subject: `CSIDriver ${name}`,
    lead: (blocks) => blocks,
    healthy: healthy(parts),
    findings: [
      ...nowhere(parts),
      ...attacherSilent(parts),
      ...waiting.map(({ finding }) => finding),
      ...claims.map(({ finding }) => finding),
    ],
    chain: chainOf(parts),
    others: [
      ...waiting.map(({ pod }) => `pod ${idOf(pod)} waits for it`),
      ...claims.map(({ id }) => `claim ${id} waits for it`),
    ],
    facts: factsOf(parts),
  });
}

function partsOf(cluster: Cluster, name: string): DriverParts {
  const { attachments, storageClasses } = cluster.objects;
  return {
    cluster,
    name,
    attachRequired: field(cluster.find("csiDrivers", name), "spec", "attachRequired") !== false,
    nodes: nodesWithDriver(cluster, name),
    volumes: volumesOfDriver(cluster, name),
    attachments: attachments.filter((item) => textAt(item, "spec", "attacher") === name),
    classes: storageClasses.filter((item) => textAt(item, "provisioner") === name).map(nameOf),
  };
}

function nowhere({ cluster, name, nodes, volumes, classes }: DriverParts): readonly Finding[] {
  if (nodes.length > 0 || !cluster.knows("csiNodes")) return [];
  const needed = [
    counted(volumes.length, "volume"),
    classes.length === 0 ? "no class" : `class ${someOf(classes)}`,
  ];
  return [
    told(
      "driver-nowhere",
      { driver: name, needed: `${needed.join(" and ")} of it` },
      {
        evidence: [
          seen("CSINodes", "spec.drivers", `none of ${cluster.objects.csiNodes.length} lists ${name}`),
        ],
        sinceMs: createdAt(cluster.find("csiDrivers", name)),
      },
    ),
  ];
}

/** An attacher puts its finalizer on what it takes up; one that works for the driver has done so somewhere. */
function attacherSilent({ name, attachRequired, attachments }: DriverParts): readonly Finding[] {
  if (!attachRequired) return [];
  const finalizersOf = (item: object) => textsAt(item, "metadata", "finalizers");
  const pending = attachments.filter(
    (item) => stateOf(item) === "attaching" && finalizersOf(item).length === 0,
  );
  if (pending.length === 0 || attachments.some((item) => finalizersOf(item).length > 0)) return [];
  return [
    told(
      "driver-attacher-silent",
      {
        driver: name,
        pending: `${counted(pending.length, "VolumeAttachment")} ${pending.length === 1 ? "waits" : "wait"}`,
      },
      {
        evidence: pending
          .slice(0, 3)
          .map((item) => seen(`VolumeAttachment ${nameOf(item)}`, "metadata.finalizers", "")),
        sinceMs: Math.min(...pending.map((item) => createdAt(item) ?? Infinity)),
      },
    ),
  ];
}

interface Waiting {
  readonly pod: Pod;
  readonly finding: Finding;
}

/** Links at which a driver, and not a claim or the scheduler, keeps a pod waiting. */
const DRIVER_LINKS = new Set(["driver", "attachment", "mount"]);

/** A volume that another node rightly has is no trouble of the driver. */
function isOfDriver(finding: Finding): boolean {
  return DRIVER_LINKS.has(wordsOf(finding).link) && !finding.reason.startsWith("held-by-");
}

/** Pods that have not started, and whose cause is at the driver. */
function waitingPods({ cluster, name }: DriverParts): readonly Waiting[] {
  return cluster.objects.pods
    .filter((pod) => !hasStarted(pod))
    .flatMap((pod) => {
      const [first] = diagnosePod(cluster, pod);
      if (first === undefined || first.view.driver !== name) return [];
      return isOfDriver(first.finding) ? [{ pod, finding: first.finding }] : [];
    });
}

/** Claims of its classes for which it makes no volume: it refuses, or says nothing. */
function waitingClaims({
  cluster,
  classes,
}: DriverParts): readonly { readonly id: string; readonly finding: Finding }[] {
  return classes
    .flatMap((name) => claimsOfClass(cluster, name))
    .filter(isUnbound)
    .flatMap((claim) => {
      const finding = causeOfClaim(cluster, idOf(claim));
      const isOfIt = finding?.reason === "provision-failed" || finding?.reason === "provisioner-silent";
      return isOfIt ? [{ id: idOf(claim), finding }] : [];
    });
}

function factsOf({
  cluster,
  name,
  nodes,
  attachRequired,
  volumes,
  attachments,
  classes,
}: DriverParts): readonly string[] {
  const without = cluster.objects.nodes.map(nameOf).filter((node) => !nodes.includes(node));
  const object = cluster.find("csiDrivers", name);
  return [
    ...(object === undefined && cluster.knows("csiDrivers")
      ? ["there is no CSIDriver object: Kubernetes takes it that volumes have to be attached"]
      : []),
    ...(nodes.length === 0 ? [] : [`registered on ${someOf(nodes, 5)}`]),
    ...(without.length === 0 || nodes.length === 0 ? [] : [`not registered on ${someOf(without, 5)}`]),
    attachRequired
      ? "its volumes are attached before they are mounted"
      : "its volumes are mounted without being attached (attachRequired: false)",
    `${counted(volumes.length, "PersistentVolume")} and ${counted(attachments.length, "VolumeAttachment")} depend on it`,
    ...(classes.length === 0
      ? []
      : [`StorageClass ${someOf(classes, 5)} ${classes.length === 1 ? "makes" : "make"} volumes with it`]),
  ];
}

function healthy({ cluster, name, nodes, volumes, attachments }: DriverParts): string {
  const pending = attachments.filter((item) => stateOf(item) !== "attached").length;
  const under = pending === 0 ? "none under way" : `${pending} under way`;
  return `Driver ${name} is healthy: registered on ${nodes.length} of ${counted(cluster.objects.nodes.length, "node")}, with ${counted(volumes.length, "volume")} and ${counted(attachments.length, "attachment")}, ${under}; nothing waits for it`;
}

function chainOf({ cluster, name, nodes, attachRequired, attachments }: DriverParts): readonly ChainLink[] {
  const object = cluster.find("csiDrivers", name);
  const pending = attachments.filter((item) => stateOf(item) !== "attached").length;
  const known = cluster.knows("csiNodes");
  return [
    {
      link: "driver",
      object: name,
      state: object === undefined ? "no CSIDriver object" : attachRequired ? "attaches" : "needs no attach",
      sinceMs: createdAt(object),
      evidence: [seen(`CSIDriver ${name}`, "spec.attachRequired", field(object, "spec", "attachRequired"))],
    },
    {
      link: "node",
      object: nodes.length === 0 ? "–" : someOf(nodes),
      state: known
        ? `on ${nodes.length} of ${counted(cluster.objects.nodes.length, "node")}`
        : "unknown: not permitted to read",
      sinceMs: undefined,
      evidence: [],
    },
    {
      link: "attachment",
      object: counted(attachments.length, "VolumeAttachment"),
      state: pending === 0 ? "all attached" : `${pending} not attached`,
      sinceMs: undefined,
      evidence: [],
    },
  ];
}
