import type { SecretProjection } from "kubernetes-types/core/v1.js";
import { isKubeError } from "../../kube/errors.ts";
import { specName } from "../../volumes/spec.ts";
import type { NodeObjects } from "../objects.ts";
import type { NodePlugin } from "../plugin.ts";
import { createContentPlugin, type ContentDeps } from "./content-volume.ts";
import { readFailure } from "./failures.ts";
import { keyedPayload, requiredMode, type Payload } from "./payload.ts";

export function createSecretPlugin(deps: ContentDeps): NodePlugin {
  return createContentPlugin(deps, {
    plugin: "kubernetes.io/secret",
    medium: "Memory",
    canSupport: ({ volume }) => volume.secret !== undefined,
    volumeName: (spec) => `${specName(spec)}/${spec.volume.secret?.secretName ?? ""}`,
    collect({ spec, pod, signal }) {
      const { secretName, ...source } = spec.volume.secret ?? {};
      const defaultMode = requiredMode(source.defaultMode, "secret");
      const namespace = pod.metadata.namespace ?? "";
      const named = { ...source, ...(secretName !== undefined && { name: secretName }) };
      return secretPayload(deps.objects, { source: named, defaultMode, namespace, signal });
    },
    reconstructed: (name) => ({ name, secret: {} }),
  });
}

/** Also one source of a projected volume. */
export async function secretPayload(
  objects: Pick<NodeObjects, "secret">,
  {
    source: { name = "", items, optional = false },
    defaultMode,
    namespace,
    signal,
  }: {
    readonly source: SecretProjection;
    readonly defaultMode: number;
    readonly namespace: string;
    readonly signal: AbortSignal;
  },
): Promise<Payload> {
  const of = { kind: "secret", namespace, name } as const;
  let values: Readonly<Record<string, string>> = {};
  try {
    values = (await objects.secret(namespace, name, signal)).data ?? {};
  } catch (error) {
    if (!(optional && isKubeError(error, "NotFound"))) throw readFailure("", error, of);
  }
  const data = new Map(Object.entries(values).map(([key, text]) => [key, Buffer.from(text, "base64")]));
  const missingKey = "references non-existent secret key";
  return keyedPayload({ data, items, defaultMode, optional, missingKey, of });
}
