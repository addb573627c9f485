import type { PersistentVolumeSpec } from "kubernetes-types/core/v1.js";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { CsiSource, PersistentSpec, VolumeSpec } from "../spec.ts";
import { text } from "../untrusted.ts";
import { awsEbs } from "./aws-ebs.ts";
import { azureDisk } from "./azure-disk.ts";
import { azureFile } from "./azure-file.ts";
import { cinder } from "./cinder.ts";
import { gcePd } from "./gce-pd.ts";
import type { InTreePlugin, InTreeSource, Origin, SourceOf } from "./in-tree.ts";
import { portworx } from "./portworx.ts";
import { vsphere } from "./vsphere.ts";

/**
 * Volumes that once were served by code inside Kubernetes, as the CSI volumes they are today. The switches of
 * the migration are gone since 1.37: these seven are always translated, whatever a node's CSINode says, and the
 * other in-tree types (rbd, cephfs, ...) exist no more and stay as they are, served by nobody.
 *
 * Node affinity is not translated. Upstream rewrites its zone keys to those of the driver; but attaching never
 * reads it, and writes it nowhere: an attachment names its PersistentVolume.
 */
const PLUGINS: readonly InTreePlugin[] = [awsEbs, azureDisk, azureFile, cinder, gcePd, portworx, vsphere];

export type Translation =
  | { readonly kind: "translated"; readonly spec: VolumeSpec }
  /** `message` says what is wrong with the source, and leaves it to others to say whose it is. */
  | { readonly kind: "untranslatable"; readonly message: string };

/**
 * The spec with its in-tree source replaced by the CSI one; the very spec where it has none. `podNamespace` is
 * that of the pod an inline source stands in, where the secrets of Azure files are.
 */
export function translate(spec: VolumeSpec, podNamespace = ""): Translation {
  const sources = spec.kind === "inline" ? spec.volume : spec.volume.spec;
  const plugin = sources && PLUGINS.find(({ source }) => Boolean(sources[source]));
  if (!plugin) return { kind: "translated", spec };

  const source = sources[plugin.source] as SourceOf<InTreeSource>;
  const origin = originOf(spec, podNamespace);
  const handle = plugin.handle(source, origin);
  if (typeof handle !== "string")
    return { kind: "untranslatable", message: `${plugin.source} ${handle.problem}` };

  const csi = { driver: plugin.driver, volumeHandle: handle, ...plugin.fields(source, origin) };
  return {
    kind: "translated",
    spec: spec.kind === "inline" ? fromInline(plugin, source, csi) : fromVolume(plugin, spec, csi),
  };
}

function originOf(spec: VolumeSpec, podNamespace: string): Origin {
  return spec.kind === "inline"
    ? { kind: "inline", name: text(spec.volume.name), podNamespace }
    : { kind: "persistent", volume: spec.volume };
}

function fromVolume(plugin: InTreePlugin, spec: PersistentSpec, csi: CsiSource): PersistentSpec {
  const { [plugin.source]: _, ...others } = spec.volume.spec ?? {};
  const { accessModes } = others;
  const translated: PersistentVolumeSpec = { ...others, csi };
  if (plugin.accessModes && Array.isArray(accessModes))
    translated.accessModes = plugin.accessModes(accessModes);
  return { ...spec, volume: { ...spec.volume, spec: translated }, migrated: "volume" };
}

/** Only filesystems can be written into a pod, and no PersistentVolume of that name exists. */
function fromInline(plugin: InTreePlugin, source: SourceOf<InTreeSource>, csi: CsiSource): PersistentSpec {
  const name = plugin.inlineName?.(source, csi.volumeHandle) ?? `${plugin.driver}-${csi.volumeHandle}`;
  const volume: PersistentVolume = {
    metadata: { name },
    spec: { accessModes: plugin.inlineAccessModes(source), volumeMode: "Filesystem", csi },
  };
  return { kind: "persistent", volume, readOnly: false, migrated: "inline" };
}
