import type { Metrics } from "../../base/metrics.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";
import type { LabelProblem } from "./selinux.ts";

/** What came of the label of a pod's volume. */
type LabelOutcome =
  | { readonly kind: LabelProblem; readonly refused: boolean }
  /** The volume is mounted with another label. */
  | { readonly kind: "volume-mismatch"; readonly refused: boolean }
  | { readonly kind: "admitted" };

export interface SelinuxMeasure {
  /** Once a pod and volume; the same outcome again is not counted. */
  note(
    podUid: string,
    outerName: string,
    outcome: LabelOutcome,
    volume: { plugin: string; spec: VolumeSpec },
  ): void;
  forget(podUid: string): void;
}

const FAMILIES = {
  untranslatable: {
    errors: "volume_manager_selinux_container_errors_total",
    warnings: "volume_manager_selinux_container_warnings_total",
    help: "containers whose SELinux options cannot be translated",
    byPlugin: false,
  },
  "several-labels": {
    errors: "volume_manager_selinux_pod_context_mismatch_errors_total",
    warnings: "volume_manager_selinux_pod_context_mismatch_warnings_total",
    help: "pods with several labels on one volume",
    byPlugin: false,
  },
  "volume-mismatch": {
    errors: "volume_manager_selinux_volume_context_mismatch_errors_total",
    warnings: "volume_manager_selinux_volume_context_mismatch_warnings_total",
    help: "pods whose label is not that of the mounted volume",
    byPlugin: true,
  },
} as const;
const ADMITTED = "volume_manager_selinux_volumes_admitted_total";

/** Upstream's names; gauges, because upstream made them so. */
export function createSelinuxMeasure(metrics: Metrics): SelinuxMeasure {
  /** By pod, then by volume: what was counted last. Bound: volumes of this node's pods. */
  const seen = new Map<string, Map<string, string>>();
  const counts = new Map<string, number>();
  const gauges = new Map<string, (mode: string, plugin: string) => void>();
  const add = (name: string, help: string, byPlugin: boolean) => {
    const labels = byPlugin ? (["volume_plugin", "access_mode"] as const) : (["access_mode"] as const);
    const gauge = metrics.gauge<string>({ name, help, labels });
    gauges.set(name, (access_mode, volume_plugin) => {
      const key = `${name} ${access_mode} ${byPlugin ? volume_plugin : ""}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
      gauge.set(counts.get(key) ?? 0, byPlugin ? { volume_plugin, access_mode } : { access_mode });
    });
  };
  for (const { errors, warnings, help, byPlugin } of Object.values(FAMILIES)) {
    add(errors, `Refused: ${help}.`, byPlugin);
    add(warnings, `Let through, because the volume is mounted without a context: ${help}.`, byPlugin);
  }
  add(ADMITTED, "Volumes of pods whose label was accepted.", true);

  return {
    note(podUid, outerName, outcome, { plugin, spec }) {
      const ofPod = seen.get(podUid) ?? new Map<string, string>();
      seen.set(podUid, ofPod);
      const name = metricOf(outcome);
      if (ofPod.get(outerName) === name) return;
      ofPod.set(outerName, name);
      gauges.get(name)?.(accessModeOf(spec), plugin);
    },
    forget: (podUid) => void seen.delete(podUid),
  };
}

function metricOf(outcome: LabelOutcome): string {
  if (outcome.kind === "admitted") return ADMITTED;
  return FAMILIES[outcome.kind][outcome.refused ? "errors" : "warnings"];
}

const MODES = [
  ["ReadWriteMany", "RWX"],
  ["ReadOnlyMany", "ROX"],
  ["ReadWriteOnce", "RWO"],
  ["ReadWriteOncePod", "RWOP"],
] as const;

/** The widest of a PersistentVolume's modes. */
function accessModeOf(spec: VolumeSpec): string {
  if (spec.kind === "inline") return "inline";
  const modes = spec.volume.spec?.accessModes ?? [];
  return MODES.find(([mode]) => modes.includes(mode))?.[1] ?? "";
}
