import type { KubeObject } from "../kube/object.ts";
import type { ChainLink } from "./chain.ts";
import { causeOfClaim } from "./claim-cause.ts";
import { seen } from "./checks/check.ts";
import type { Cluster } from "./cluster.ts";
import { explanation, type Explanation } from "./explanation.ts";
import { createdAt, field, idOf, nameOf, objectsAt, textAt, textsAt } from "./fields.ts";
import type { Finding } from "./reasons/reasons.ts";
import {
  claimsOfClass,
  claimsWithoutClass,
  defaultClasses,
  isUnbound,
  nodesWithDriver,
  volumesOfDriver,
} from "./storage-classes.ts";
import { counted, someOf, told } from "./told.ts";

/** For volumes that somebody makes by hand: nobody is expected to provision. */
const NO_PROVISIONER = "kubernetes.io/no-provisioner";

/** A StorageClass: whether it can give volumes, and which claims wait for it. A class that claims name may be missing. */
export function explainStorageClass(cluster: Cluster, name: string): Explanation | undefined {
  const storageClass = cluster.find("storageClasses", name);
  const waiting = claimsOfClass(cluster, name).filter(isUnbound);
  if (storageClass === undefined) {
    return waiting.length === 0 || !cluster.knows("storageClasses") ? undefined : missing(cluster, name);
  }
  const causes = waitingCauses(cluster, name);
  return explanation(cluster, {
    subject: `StorageClass ${name}`,
    lead: (blocks) => blocks,
    healthy: healthy(cluster, storageClass, causes.patient.length),
    findings: [
      ...provisioner(cluster, storageClass),
      ...topology(cluster, storageClass),
      ...causes.findings,
      ...defaults(cluster, storageClass),
    ],
    chain: chainOf(cluster, storageClass),
    others: [
      ...causes.stuck.map((id) => `claim ${id} waits`),
      ...causes.patient.map((id) => `claim ${id} waits for its first pod, as it should`),
    ],
    facts: [bindingMode(storageClass), ...defaultNote(cluster, storageClass)],
  });
}

function missing(cluster: Cluster, name: string): Explanation {
  const ids = claimsOfClass(cluster, name).filter(isUnbound).map(idOf);
  const others = someOf(cluster.objects.storageClasses.map(nameOf), 5) || "none";
  const askers = `${counted(ids.length, "claim")} ${ids.length === 1 ? "asks" : "ask"}`;
  return explanation(cluster, {
    subject: `StorageClass ${name}`,
    lead: (blocks) => blocks,
    healthy: "",
    findings: [
      told(
        "class-gone",
        { class: name, askers, others },
        {
          evidence: ids
            .slice(0, 3)
            .map((id) => seen(`PersistentVolumeClaim ${id}`, "spec.storageClassName", name)),
        },
      ),
    ],
    chain: [],
    others: ids.map((id) => `claim ${id} asks for it`),
  });
}

/** Only where nobody ever saw it: external provisioners that are no CSI drivers have no CSIDriver. */
function provisioner(cluster: Cluster, storageClass: KubeObject): readonly Finding[] {
  const driver = textAt(storageClass, "provisioner");
  const isOther = driver === NO_PROVISIONER || driver.startsWith("kubernetes.io/");
  if (isOther || !cluster.knows("csiDrivers") || !cluster.knows("csiNodes")) return [];
  const [object, nodes] = [cluster.find("csiDrivers", driver), nodesWithDriver(cluster, driver)];
  const names = { class: nameOf(storageClass), provisioner: driver };
  const evidence = [
    seen(`StorageClass ${nameOf(storageClass)}`, "provisioner", driver),
    seen("CSIDriver", "metadata.name", object === undefined ? `no ${driver}` : driver),
    seen("CSINodes", "spec.drivers", nodes.length === 0 ? `none lists ${driver}` : someOf(nodes)),
  ];
  if (nodes.length > 0) return [];
  if (object !== undefined) return [told("class-driver-nowhere", names, { evidence })];
  if (!cluster.knows("volumes") || volumesOfDriver(cluster, driver).length > 0) return [];
  return [told("class-provisioner-unknown", names, { evidence })];
}

/** Any one node that matches any one term is enough. */
function topology(cluster: Cluster, storageClass: KubeObject): readonly Finding[] {
  const terms = objectsAt(storageClass, "allowedTopologies");
  if (terms.length === 0 || !cluster.knows("nodes")) return [];
  const isAllowed = (node: KubeObject) =>
    terms.some((term) =>
      objectsAt(term, "matchLabelExpressions").every((rule) =>
        textsAt(rule, "values").includes(textAt(node, "metadata", "labels", textAt(rule, "key"))),
      ),
    );
  if (cluster.objects.nodes.some(isAllowed)) return [];
  const words = terms.map((term) =>
    objectsAt(term, "matchLabelExpressions")
      .map((rule) => `${textAt(rule, "key")} is ${textsAt(rule, "values").join(" or ")}`)
      .join(" and "),
  );
  const [name, nodes] = [nameOf(storageClass), counted(cluster.objects.nodes.length, "node")];
  return [
    told(
      "class-topology-unmatched",
      { class: name, terms: words.join("; or ") },
      {
        evidence: [
          seen(`StorageClass ${name}`, "allowedTopologies", words.join("; or ")),
          seen("Nodes", "metadata.labels", `none of ${nodes} matches`),
        ],
      },
    ),
  ];
}

interface WaitingCauses {
  readonly findings: readonly Finding[];
  /** Claims that rightly wait for a pod. */
  readonly patient: readonly string[];
  readonly stuck: readonly string[];
}

/** Why each claim of the class that has no volume waits, by the pod that uses it where there is one. */
function waitingCauses(cluster: Cluster, name: string): WaitingCauses {
  const judged = claimsOfClass(cluster, name)
    .filter(isUnbound)
    .map((claim) => ({ id: idOf(claim), finding: causeOfClaim(cluster, idOf(claim)) }));
  const stuck = judged.filter(({ finding }) => finding?.reason !== "claim-waits-for-pod");
  return {
    findings: stuck.flatMap(({ finding }) => finding ?? []),
    patient: judged.filter((item) => !stuck.includes(item)).map(({ id }) => id),
    stuck: stuck.map(({ id }) => id),
  };
}

function defaults(cluster: Cluster, storageClass: KubeObject): readonly Finding[] {
  if (!cluster.knows("storageClasses")) return [];
  const all = defaultClasses(cluster);
  const orphans = all.length === 0 ? claimsWithoutClass(cluster).filter(isUnbound) : [];
  if (orphans.length > 0) {
    const askers = `${counted(orphans.length, "claim")} (${someOf(orphans.map(idOf))}) ${orphans.length === 1 ? "waits" : "wait"}`;
    const evidence = [seen("StorageClasses", "metadata.annotations[is-default-class]", "on none")];
    return [told("class-no-default", { askers }, { evidence })];
  }
  const [newest] = all;
  if (all.length < 2 || newest === undefined || !all.includes(storageClass)) return [];
  const names = { defaults: all.map(nameOf).join(", "), newest: nameOf(newest) };
  const evidence = all.map((item) =>
    seen(`StorageClass ${nameOf(item)}`, "metadata.annotations[is-default-class]", "true"),
  );
  return [told("class-two-defaults", names, { evidence })];
}

function defaultNote(cluster: Cluster, storageClass: KubeObject): readonly string[] {
  const all = defaultClasses(cluster);
  if (all[0] === storageClass) return ["it is the default: claims that name no class get it"];
  return all.length === 0 ? ["no class is the default: a claim that names none waits"] : [];
}

function bindingMode(storageClass: KubeObject): string {
  return textAt(storageClass, "volumeBindingMode") === "WaitForFirstConsumer"
    ? "WaitForFirstConsumer: a volume is made once a pod that uses the claim has been given a node, and not before"
    : "Immediate: a volume is made as soon as the claim is there, wherever the provisioner likes";
}

function healthy(cluster: Cluster, storageClass: KubeObject, patient: number): string {
  const [name, driver] = [nameOf(storageClass), textAt(storageClass, "provisioner")];
  const bound = claimsOfClass(cluster, name).filter((claim) => !isUnbound(claim)).length;
  const on = nodesWithDriver(cluster, driver).length;
  const where =
    driver === NO_PROVISIONER
      ? "its volumes are made by hand"
      : on === 0
        ? `provisioner ${driver} is not a CSI driver that nodes register`
        : `driver ${driver} is registered on ${on} of ${counted(cluster.objects.nodes.length, "node")}`;
  const held =
    bound === 0
      ? "no claim has a volume of it yet"
      : `${counted(bound, "claim")} ${bound === 1 ? "has a volume" : "have volumes"} of it`;
  const waits =
    patient === 0 ? "none waits" : `${patient} rightly ${patient === 1 ? "waits" : "wait"} for a first pod`;
  return `StorageClass ${name} is healthy: ${where}, ${held} and ${waits}; nothing blocks it`;
}

function chainOf(cluster: Cluster, storageClass: KubeObject): readonly ChainLink[] {
  const [name, driver] = [nameOf(storageClass), textAt(storageClass, "provisioner")];
  const mode = textAt(storageClass, "volumeBindingMode") || "Immediate";
  const on = nodesWithDriver(cluster, driver);
  const known = cluster.knows("csiNodes");
  return [
    {
      link: "class",
      object: name,
      state: mode,
      sinceMs: createdAt(storageClass),
      evidence: [
        seen(`StorageClass ${name}`, "provisioner", driver),
        seen(`StorageClass ${name}`, "reclaimPolicy", field(storageClass, "reclaimPolicy")),
      ],
    },
    {
      link: "driver",
      object: driver || "–",
      state: known
        ? `on ${on.length} of ${counted(cluster.objects.nodes.length, "node")}`
        : "unknown: not permitted to read",
      sinceMs: createdAt(cluster.find("csiDrivers", driver)),
      evidence: [seen("CSINodes", "spec.drivers", someOf(on))],
    },
  ];
}
