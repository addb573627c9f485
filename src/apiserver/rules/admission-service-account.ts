import type { Container, ServiceAccount, Volume } from "kubernetes-types/core/v1.js";
import { forbidden } from "../errors.ts";
import { pods } from "../kinds.ts";
import { generateName } from "../names.ts";
import type { ApiObject } from "../objects.ts";
import type { AdmissionDeps } from "./admission.ts";
import type { Loose, LooseObject } from "./loose.ts";
import { withServiceAccount, type PodObject } from "./pod-defaults.ts";

const MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX = "kube-api-access-";
/** Of a pod that stands for one which its node got from elsewhere: it has no account. */
const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";
/**
 * An hour, and seven seconds by which the real server tells the tokens that it asked for itself from
 * those of people.
 */
const TOKEN_SECONDS = 3_607;

/** ServiceAccount: a pod runs as somebody, who must exist, and finds that one's credentials in a volume. */
export function useServiceAccount(deps: AdmissionDeps, pod: PodObject): ApiObject {
  const name = accountNameOf(pod);
  if (name === undefined) return pod;
  const account = findAccount(deps, pod, name);
  const spec = withServiceAccount(pod.spec ?? {}, name);
  const secrets = (spec.imagePullSecrets ?? []).length === 0 ? (account.imagePullSecrets ?? []) : [];
  const named: PodObject = {
    ...pod,
    spec: secrets.length === 0 ? spec : { ...spec, imagePullSecrets: secrets },
  };
  const automount = spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
  return automount ? mountToken(deps, named) : named;
}

/** Whom a pod runs as, with defaults applied or not; undefined for one that needs nobody. */
export function accountNameOf({ metadata, spec = {} }: PodObject): string | undefined {
  if (metadata.annotations?.[MIRROR_ANNOTATION] !== undefined) return undefined;
  return [spec.serviceAccountName, spec.serviceAccount].find((name = "") => name !== "") ?? "default";
}

function findAccount(
  deps: AdmissionDeps,
  { metadata }: PodObject,
  name: string,
): LooseObject<ServiceAccount> {
  const account = deps.getObject("serviceaccounts", metadata.namespace, name);
  if (account !== undefined) return account;
  const path = `${metadata.namespace ?? ""}/${name}`;
  throw forbidden(
    pods,
    metadata.name,
    `error looking up service account ${path}: serviceaccount "${name}" not found`,
  );
}

/** Into every container that mounts nothing else there; the volume is added once somebody uses it. */
function mountToken(deps: AdmissionDeps, pod: PodObject): ApiObject {
  const { spec = {} } = pod;
  const { volumes = [], containers = [], initContainers } = spec;
  const existing = volumes.find(({ name = "" }) => name.startsWith(VOLUME_PREFIX))?.name;
  const name = existing ?? generateName(VOLUME_PREFIX, deps.random);
  const mount = (container: Loose<Container>) => withMount(container, name);
  const all = [...containers, ...(initContainers ?? [])];
  const isUsed = all.some((container) => mount(container) !== container);
  if (!isUsed) return pod;
  return {
    ...pod,
    spec: {
      ...spec,
      containers: containers.map(mount),
      ...(initContainers === undefined ? {} : { initContainers: initContainers.map(mount) }),
      volumes: existing === undefined ? [...volumes, tokenVolume(name)] : volumes,
    },
  };
}

function withMount(container: Loose<Container>, name: string): Loose<Container> {
  const { volumeMounts = [] } = container;
  if (volumeMounts.some(({ mountPath }) => mountPath === MOUNT_PATH)) return container;
  return { ...container, volumeMounts: [...volumeMounts, { name, readOnly: true, mountPath: MOUNT_PATH }] };
}

/** What a client in the pod needs: a token that is renewed, the authority to trust, its own namespace. */
function tokenVolume(name: string): Loose<Volume> {
  const fieldRef = { apiVersion: "v1", fieldPath: "metadata.namespace" };
  return {
    name,
    projected: {
      defaultMode: 420,
      sources: [
        { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: "token" } },
        { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
        { downwardAPI: { items: [{ path: "namespace", fieldRef }] } },
      ],
    },
  };
}
