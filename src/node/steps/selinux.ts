import type { Container, SELinuxOptions } from "kubernetes-types/core/v1.js";
import type { Pod } from "../../kube/api/pod.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";
import type { VolumeTraits } from "../plugin.ts";
import { isHere, type Held, type VolumeMode } from "../world.ts";

/**
 * With which SELinux label a volume is mounted (section 24 of the specification). A volume mounted with
 * `-o context=LABEL` has that label as a whole and at once; without, the container runtime relabels every file of it.
 * A filesystem has one context however often it is bound, so pods with different labels cannot share one. Pure.
 */
export interface Selinux {
  /** False: nothing here has any effect. */
  readonly enabled: boolean;
  /** Label of the files of a container with these options: "" where the runtime chooses it, undefined where nobody can say. */
  fileLabel(options: SELinuxOptions): string | undefined;
}

export const NO_SELINUX: Selinux = { enabled: false, fileLabel: () => "" };

type LabelVerdict =
  /** "": mounted without a context. */
  | { readonly kind: "label"; readonly label: string; readonly problem?: LabelProblem }
  | { readonly kind: "refused"; readonly problem: LabelProblem; readonly message: string };

/** What is wrong with a pod by itself; counted, and refused only where the label would be used. */
export type LabelProblem = "untranslatable" | "several-labels";

export interface LabelRequest {
  readonly pod: Pod;
  readonly spec: VolumeSpec;
  readonly mode: VolumeMode;
  /** `pod.spec.volumes[].name` */
  readonly outerName: string;
  readonly traits: VolumeTraits;
  /** Gate SELinuxMount: every PersistentVolume, not only those that one pod has for itself. */
  readonly everyVolume: boolean;
}

export function labelVerdict(selinux: Selinux, request: LabelRequest): LabelVerdict {
  const none = { kind: "label", label: "" } as const;
  if (!selinux.enabled || request.mode === "Block") return none;
  const isUsed = usesContext(request);
  const labels = new Set<string>();
  for (const options of optionsOf(request)) {
    const label = selinux.fileLabel(options);
    if (label === undefined)
      return isUsed ? refuse("untranslatable", options) : { ...none, problem: "untranslatable" };
    if (label !== "") labels.add(label);
  }
  if (labels.size > 1)
    return isUsed ? refuse("several-labels", [...labels].sort()) : { ...none, problem: "several-labels" };
  const [label = ""] = labels;
  return isUsed ? { kind: "label", label } : none;
}

function refuse(problem: LabelProblem, what: SELinuxOptions | readonly string[]): LabelVerdict {
  const message = Array.isArray(what)
    ? `multiple SELinux labels found: ${what.join(",")}`
    : `SELinux options ${JSON.stringify(what)} cannot be translated to a label on this node`;
  return { kind: "refused", problem, message };
}

/** Whether the volume is mounted with a context at all. */
function usesContext({ pod, spec, traits, everyVolume }: LabelRequest): boolean {
  const { seLinuxChangePolicy } = (pod.spec?.securityContext ?? {}) as { seLinuxChangePolicy?: string };
  if (!traits.selinuxMount || spec.kind !== "persistent" || seLinuxChangePolicy === "Recursive") return false;
  const modes = spec.volume.spec?.accessModes ?? [];
  return everyVolume || (modes.length === 1 && modes[0] === "ReadWriteOncePod");
}

/** Of each container that uses the volume: its own options, else the pod's. */
function optionsOf({ pod, outerName }: LabelRequest): readonly SELinuxOptions[] {
  const { containers, initContainers, ephemeralContainers, securityContext } = pod.spec ?? {};
  const all = [containers, initContainers, ephemeralContainers].flatMap(
    (list) => (Array.isArray(list) ? list : []) as readonly Container[],
  );
  return all
    .filter(({ volumeMounts }) => volumeMounts?.some(({ name }) => name === outerName))
    .flatMap(
      (container) => container.securityContext?.seLinuxOptions ?? securityContext?.seLinuxOptions ?? [],
    );
}

/** The label of what is, or may be, mounted now; undefined while nothing is, so that the next mount chooses. */
export function mountedLabel(held: Held): string | undefined {
  return isHere(held) ? held.selinuxLabel : undefined;
}
