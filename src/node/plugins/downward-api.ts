import type { DownwardAPIVolumeFile } from "kubernetes-types/core/v1.js";
import type { Node } from "../../kube/api/node.ts";
import type { Pod } from "../../kube/api/pod.ts";
import { specName } from "../../volumes/spec.ts";
import { toVolumeError, VolumeError } from "../errors.ts";
import type { NodePlugin } from "../plugin.ts";
import { createContentPlugin, type ContentDeps } from "./content-volume.ts";
import { fieldText, resourceText } from "./downward-fields.ts";
import { joinFailures } from "./failures.ts";
import { requiredMode, type Payload, type PayloadFile } from "./payload.ts";

export function createDownwardApiPlugin(deps: ContentDeps): NodePlugin {
  return createContentPlugin(deps, {
    plugin: "kubernetes.io/downward-api",
    medium: "Memory",
    canSupport: ({ volume }) => volume.downwardAPI !== undefined,
    volumeName: (spec) => specName(spec) || undefined,
    async collect({ spec, pod }) {
      const { items = [], defaultMode } = spec.volume.downwardAPI ?? {};
      const mode = requiredMode(defaultMode, "downwardAPI");
      return downwardPayload({ items, defaultMode: mode, pod, node: deps.objects.node() });
    },
    reconstructed: (name) => ({ name, downwardAPI: {} }),
  });
}

/** Also one source of a projected volume. All that is wrong with it is said at once. */
export function downwardPayload({
  items,
  defaultMode,
  pod,
  node,
}: {
  readonly items: readonly DownwardAPIVolumeFile[];
  readonly defaultMode: number;
  readonly pod: Pod;
  readonly node: Node | undefined;
}): Payload {
  const files = new Map<string, PayloadFile>();
  const failures: VolumeError[] = [];
  for (const item of items)
    try {
      files.set(item.path, { bytes: Buffer.from(textOf(item, pod, node)), mode: item.mode ?? defaultMode });
    } catch (error) {
      failures.push(toVolumeError(error));
    }
  if (failures.length > 0) throw joinFailures(failures);
  return files;
}

function textOf(
  { path, fieldRef, resourceFieldRef }: DownwardAPIVolumeFile,
  pod: Pod,
  node: Node | undefined,
) {
  if (fieldRef) return fieldText(pod, fieldRef.fieldPath);
  if (resourceFieldRef) return resourceText(pod, node, resourceFieldRef);
  throw new VolumeError("final", `${path}: neither fieldRef nor resourceFieldRef is set`);
}
