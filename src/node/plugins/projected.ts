import type { ServiceAccountTokenProjection, VolumeProjection } from "kubernetes-types/core/v1.js";
import { specName } from "../../volumes/spec.ts";
import { toVolumeError, VolumeError } from "../errors.ts";
import type { NodePlugin, SetUpRequest } from "../plugin.ts";
import { configMapPayload } from "./config-map.ts";
import { createContentPlugin, type ContentDeps } from "./content-volume.ts";
import { downwardPayload } from "./downward-api.ts";
import { joinFailures } from "./failures.ts";
import { requiredMode, type Payload, type PayloadFile } from "./payload.ts";
import { secretPayload } from "./secret.ts";
import { trustBundlePayload, type TrustBundles } from "./trust-bundle.ts";

export interface ProjectedDeps extends ContentDeps {
  /** Drops what is kept of a pod's tokens; it is gone. */
  readonly forgetTokens: (podUid: string) => void;
  /** Where the cluster has them; without, a volume that asks for one says so. */
  readonly trustBundles?: TrustBundles | undefined;
}

interface Projection {
  readonly request: SetUpRequest;
  readonly defaultMode: number;
}

/** Several sources in one directory. Later ones win where two write the same file; one that fails fails them all. */
export function createProjectedPlugin(deps: ProjectedDeps): NodePlugin {
  async function collect(request: SetUpRequest): Promise<Payload> {
    const projected = request.spec.kind === "inline" ? request.spec.volume.projected : undefined;
    const { sources = [], defaultMode } = projected ?? {};
    const projection = { request, defaultMode: requiredMode(defaultMode, "projected") };
    const answers = await Promise.allSettled(sources.map((source) => payloadOf(source, projection)));
    const failures = answers.flatMap((each) =>
      each.status === "rejected" ? toVolumeError(each.reason) : [],
    );
    if (failures.length > 0) throw joinFailures(failures);
    return new Map(answers.flatMap((each) => (each.status === "fulfilled" ? [...each.value] : [])));
  }

  async function payloadOf(source: VolumeProjection, { request, defaultMode }: Projection): Promise<Payload> {
    const { pod, signal } = request;
    const namespace = pod.metadata.namespace ?? "";
    const { secret, configMap, downwardAPI, serviceAccountToken, clusterTrustBundle } = source;
    if (secret) return secretPayload(deps.objects, { source: secret, defaultMode, namespace, signal });
    if (configMap)
      return configMapPayload(deps.objects, { source: configMap, defaultMode, namespace, signal });
    if (downwardAPI)
      return downwardPayload({ items: downwardAPI.items ?? [], defaultMode, pod, node: deps.objects.node() });
    if (serviceAccountToken) return tokenPayload(serviceAccountToken, { request, defaultMode });
    if (clusterTrustBundle) {
      const bytes = await trustBundlePayload(deps.trustBundles, clusterTrustBundle, signal);
      return new Map([[clusterTrustBundle.path, credentialFile(bytes, { request, defaultMode })]]);
    }
    const kinds = Object.keys(source).join(", ") || "nothing";
    throw new VolumeError("final", `projected source of ${kinds} is not supported here; use another source`, {
      kind: "not-supported",
    });
  }

  async function tokenPayload(
    { path, audience, expirationSeconds }: ServiceAccountTokenProjection,
    projection: Projection,
  ): Promise<Payload> {
    const { pod, podUid, signal } = projection.request;
    const { token } = await deps.objects.token(
      {
        namespace: pod.metadata.namespace ?? "",
        serviceAccount: pod.spec?.serviceAccountName ?? "",
        audiences: audience ? [audience] : [],
        expirationSeconds,
        pod: { name: pod.metadata.name ?? "", uid: podUid },
      },
      signal,
    );
    return new Map([[path, credentialFile(Buffer.from(token), projection)]]);
  }

  return createContentPlugin(deps, {
    plugin: "kubernetes.io/projected",
    medium: "Memory",
    canSupport: ({ volume }) => volume.projected !== undefined,
    volumeName: (spec) => specName(spec) || undefined,
    collect,
    reconstructed: (name) => ({ name, projected: {} }),
    onTornDown: deps.forgetTokens,
  });
}

/** Only its owner reads a credential, once there is one to whom it can be given; the group is let in when it is applied. */
function credentialFile(bytes: Uint8Array, { request, defaultMode }: Projection): PayloadFile {
  const { fsUser, fsGroup } = request;
  const mode = fsUser === undefined && fsGroup === undefined ? defaultMode : 0o600;
  return { bytes, mode, uid: fsUser };
}
