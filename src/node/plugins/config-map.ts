import type { ConfigMapProjection } from "kubernetes-types/core/v1.js";
import type { ConfigMap } from "../../kube/api/config-map.ts";
import { isKubeError } from "../../kube/errors.ts";
import { specName } from "../../volumes/spec.ts";
import type { NodePlugin } from "../plugin.ts";
import type { NodeObjects } from "../objects.ts";
import { createContentPlugin, type ContentDeps } from "./content-volume.ts";
import { readFailure } from "./failures.ts";
import { keyedPayload, requiredMode, type Payload } from "./payload.ts";

export function createConfigMapPlugin(deps: ContentDeps): NodePlugin {
  return createContentPlugin(deps, {
    plugin: "kubernetes.io/configmap",
    medium: "",
    canSupport: ({ volume }) => volume.configMap !== undefined,
    volumeName: (spec) => `${specName(spec)}/${spec.volume.configMap?.name ?? ""}`,
    collect({ spec, pod, signal }) {
      const source = spec.volume.configMap ?? {};
      const defaultMode = requiredMode(source.defaultMode, "configMap");
      const namespace = pod.metadata.namespace ?? "";
      return configMapPayload(deps.objects, { source, defaultMode, namespace, signal });
    },
    reconstructed: (name) => ({ name, configMap: {} }),
  });
}

/** Also one source of a projected volume. */
export async function configMapPayload(
  objects: Pick<NodeObjects, "configMap">,
  {
    source: { name = "", items, optional = false },
    defaultMode,
    namespace,
    signal,
  }: {
    readonly source: ConfigMapProjection;
    readonly defaultMode: number;
    readonly namespace: string;
    readonly signal: AbortSignal;
  },
): Promise<Payload> {
  const of = { kind: "config-map", namespace, name } as const;
  let data: ReadonlyMap<string, Uint8Array> = new Map();
  try {
    data = dataOf(await objects.configMap(namespace, name, signal));
  } catch (error) {
    if (!(optional && isKubeError(error, "NotFound"))) throw readFailure("", error, of);
  }
  const missingKey = "configmap references non-existent config key";
  return keyedPayload({ data, items, defaultMode, optional, missingKey, of });
}

/** Servers refuse a key that is in both; should one come all the same, the binary one wins. */
function dataOf({ data = {}, binaryData = {} }: ConfigMap): ReadonlyMap<string, Uint8Array> {
  const texts = Object.entries(data).map(([key, text]) => [key, Buffer.from(text)] as const);
  const binaries = Object.entries(binaryData).map(
    ([key, text]) => [key, Buffer.from(text, "base64")] as const,
  );
  return new Map([...texts, ...binaries]);
}
