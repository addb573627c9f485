import { MANAGED_ATTACH_ANNOTATION } from "../../kube/api/node.ts";
import type { ObjectKind } from "../objects.ts";
import { field, idOf, isDeleting, nameOf, objectsAt, textAt, textsAt } from "../fields.ts";
import { isNamed } from "../checks/agent-checks.ts";
import { matchesNodeAffinity, termsInWords } from "../node-terms.ts";
import { isAttachedHere, nodeLists, type VolumeView } from "../volume-view.ts";

/**
 * The chain from a pod to its data, link by link: of every two neighbours, whether what one says can be so beside what the
 * other says. `undefined` where the two have nothing to say to each other: a driver without attachment, a volume that no
 * driver serves, a node that attaches for itself.
 *
 * It is asked of pods that run: they had every link when they started, so that a link which is missing now is news. Of a
 * pod that waits, what is missing is what it waits for, and the checks say so; only what has to agree before is asked.
 */
export interface Agreement {
  readonly between: string;
  /** Whether it has to hold before a pod starts. */
  readonly beforeStart?: true;
  /** Without these nobody can tell: then nothing follows from what is absent. */
  readonly reads: readonly ObjectKind[];
  readonly verdict: (view: VolumeView) => Verdict | undefined;
}

/** Both facts, where they cannot both be so. */
export type Verdict = "agree" | { readonly one: string; readonly other: string };

const agreeIf = (agrees: boolean, one: string, other: string): Verdict => (agrees ? "agree" : { one, other });

const runsOn = ({ pod, nodeName }: VolumeView) => `pod ${idOf(pod)} runs on node ${nodeName}`;

export const AGREEMENTS: readonly Agreement[] = [
  {
    between: "pod and claim",
    reads: ["claims"],
    verdict: (view) =>
      view.claimId === ""
        ? undefined
        : agreeIf(
            view.claim !== undefined,
            `${runsOn(view)} with claim ${view.claimId}`,
            "no such claim exists",
          ),
  },
  {
    between: "claim and PersistentVolume",
    reads: ["claims", "volumes"],
    verdict: ({ claim, claimId, pv, pvName, pod }) => {
      if (claim === undefined) return undefined;
      const phase = textAt(claim, "status", "phase");
      if (phase !== "Bound" || pvName === "")
        return {
          one: `pod ${idOf(pod)} runs with claim ${claimId}`,
          other: `the claim is ${phase || "without a phase"}`,
        };
      return agreeIf(
        pv !== undefined,
        `claim ${claimId} is Bound to PersistentVolume ${pvName}`,
        "no such PersistentVolume exists",
      );
    },
  },
  {
    between: "PersistentVolume and claim",
    beforeStart: true,
    reads: ["claims", "volumes"],
    verdict: ({ claim, claimId, pv, pvName }) => {
      if (textAt(claim, "status", "phase") !== "Bound" || pv === undefined) return undefined;
      const ref = `${textAt(pv, "spec", "claimRef", "namespace")}/${textAt(pv, "spec", "claimRef", "name")}`;
      const uid = textAt(pv, "spec", "claimRef", "uid");
      const same = ref === claimId && (uid === "" || uid === textAt(claim, "metadata", "uid"));
      if (!same)
        return {
          one: `claim ${claimId} is Bound to PersistentVolume ${pvName}`,
          other: `the PersistentVolume is bound to ${ref === "/" ? "no claim" : `claim ${ref} (uid ${uid || "not set"})`}`,
        };
      const phase = textAt(pv, "status", "phase");
      return agreeIf(
        phase === "Bound" || phase === "",
        `claim ${claimId} is Bound to PersistentVolume ${pvName}`,
        `the PersistentVolume is ${phase}`,
      );
    },
  },
  {
    between: "PersistentVolume and node",
    reads: ["volumes", "nodes"],
    verdict: (view) => {
      const { pv, pvName, node } = view;
      const terms = objectsAt(pv, "spec", "nodeAffinity", "required", "nodeSelectorTerms");
      if (terms.length === 0 || node === undefined) return undefined;
      return agreeIf(
        matchesNodeAffinity(node, terms),
        `${runsOn(view)} with PersistentVolume ${pvName}`,
        `the PersistentVolume is only for nodes where ${termsInWords(terms)}, which this one is not`,
      );
    },
  },
  {
    between: "driver and node",
    reads: ["csiNodes"],
    verdict: (view) => {
      const { cluster, driver, nodeName } = view;
      if (driver === "" || nodeName === "") return undefined;
      const drivers = objectsAt(cluster.find("csiNodes", nodeName), "spec", "drivers");
      return agreeIf(
        drivers.some((item) => textAt(item, "name") === driver),
        `${runsOn(view)} with a volume of driver ${driver}`,
        `the CSINode of ${nodeName} does not have that driver`,
      );
    },
  },
  {
    between: "pod and VolumeAttachment",
    reads: ["attachments", "csiDrivers", "nodes"],
    verdict: (view) => {
      if (!needsOwnAttachment(view)) return undefined;
      const { attachment, foreign, pvName, nodeName } = view;
      const one = `${runsOn(view)} with PersistentVolume ${pvName}, which has to be attached`;
      const here = attachment ?? foreign[0];
      if (here === undefined) return { one, other: `no VolumeAttachment has it on node ${nodeName}` };
      const named = `VolumeAttachment ${nameOf(here)}`;
      if (isDeleting(here)) return { one, other: `${named} is being deleted` };
      return agreeIf(
        field(here, "status", "attached") === true,
        one,
        `${named} says that it is not attached`,
      );
    },
  },
  {
    between: "VolumeAttachment and volumesAttached",
    reads: ["attachments", "csiDrivers", "nodes"],
    verdict: (view) => {
      const { attachment, node, nodeName, uniqueName } = view;
      if (!needsOwnAttachment(view) || attachment === undefined || isDeleting(attachment)) return undefined;
      const [attached, listed] = [isAttachedHere(view), nodeLists(node, uniqueName)];
      return agreeIf(
        attached === listed,
        `VolumeAttachment ${nameOf(attachment)} ${attached ? "is attached" : "is not attached"}`,
        `volumesAttached of node ${nodeName} ${listed ? "lists" : "does not list"} the volume`,
      );
    },
  },
  {
    between: "volumesAttached and volumesInUse",
    reads: ["nodes", "csiDrivers"],
    verdict: (view) => {
      const { node, nodeName, uniqueName } = view;
      if (!needsOwnAttachment(view)) return undefined;
      return agreeIf(
        textsAt(node, "status", "volumesInUse").includes(uniqueName),
        `${runsOn(view)} with the volume`,
        `volumesInUse of node ${nodeName} does not list it`,
      );
    },
  },
  {
    between: "pod and its node's own page",
    reads: [],
    verdict: (view) => {
      const { cluster, pod, nodeName, uniqueName } = view;
      const page = cluster.objects.nodePages.find(({ node }) => node === nodeName);
      if (page?.synced !== true || uniqueName === "") return undefined;
      const uid = textAt(pod, "metadata", "uid");
      const mount = page.mounts.find((item) => item.podUid === uid && isNamed(item.volume, view));
      return agreeIf(
        mount?.state === "mounted",
        `${runsOn(view)} with volume ${view.volumeName}`,
        `mooring node ${nodeName} says that it is ${mount?.state ?? "not mounted"} for that pod`,
      );
    },
  },
];

/** Attached through the API: not by a node for itself, and not by a plugin without CSI. */
function needsOwnAttachment({ needsAttach, node, uniqueName, nodeName }: VolumeView): boolean {
  if (!needsAttach || node === undefined || uniqueName === "" || nodeName === "") return false;
  return field(node, "metadata", "annotations", MANAGED_ATTACH_ANNOTATION) !== undefined;
}
