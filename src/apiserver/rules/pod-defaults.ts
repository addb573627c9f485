import type {
  Container,
  Pod,
  PodSpec,
  PodTemplateSpec,
  Probe,
  Volume,
  VolumeProjection,
} from "kubernetes-types/core/v1.js";
import { withDefaults, type Loose, type LooseObject } from "./loose.ts";
import { claimSpecDefaults } from "./persistent-volume-claim.ts";
import { sourceDefaults } from "./volume-defaults.ts";

export type PodObject = LooseObject<Pod>;
type PodContainer = Loose<Container>;
type PodVolume = Loose<Volume>;

export function podDefaults({ status, ...pod }: PodObject): PodObject {
  const isOnHost = pod.spec?.hostNetwork === true;
  const complete = (container: PodContainer) => containerOfPod(container, { isOnHost });
  return {
    ...(pod as PodObject),
    spec: specDefaults(withDefaults(pod.spec ?? {}, { enableServiceLinks: true }), complete),
    ...(status === undefined ? {} : { status: syncPodIps(status) }),
  };
}

/** Of the pod that a template describes: links, requests and ports of the node are for the pod itself to have. */
export function podTemplateDefaults(template: Loose<PodTemplateSpec>): Loose<PodTemplateSpec> {
  return { ...template, spec: specDefaults(template.spec ?? {}, containerDefaults) };
}

function specDefaults(
  given: Loose<PodSpec>,
  complete: (container: PodContainer) => PodContainer,
): Loose<PodSpec> {
  const spec = syncAccount(withDefaults(given, SPEC_DEFAULTS));
  return {
    ...spec,
    ...(spec.volumes === undefined ? {} : { volumes: spec.volumes.map(volumeDefaults) }),
    ...(spec.containers === undefined ? {} : { containers: spec.containers.map(complete) }),
    ...(spec.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(complete) }),
    ...(spec.ephemeralContainers === undefined
      ? {}
      : { ephemeralContainers: spec.ephemeralContainers.map(complete) }),
  };
}

const SPEC_DEFAULTS: Loose<PodSpec> = {
  restartPolicy: "Always",
  terminationGracePeriodSeconds: 30,
  dnsPolicy: "ClusterFirst",
  securityContext: {},
  schedulerName: "default-scheduler",
};

/** `serviceAccount` is an older name for the same field. */
function syncAccount(spec: Loose<PodSpec>): Loose<PodSpec> {
  const name = (spec.serviceAccountName ?? "") === "" ? spec.serviceAccount : spec.serviceAccountName;
  return name === undefined || name === "" ? spec : withServiceAccount(spec, name);
}

export function withServiceAccount(spec: Loose<PodSpec>, name: string): Loose<PodSpec> {
  return { ...spec, serviceAccountName: name, serviceAccount: name };
}

function containerOfPod(given: PodContainer, { isOnHost }: { isOnHost: boolean }): PodContainer {
  const container = containerDefaults(given);
  const { ports, resources } = container;
  return {
    ...container,
    ...(ports === undefined || !isOnHost ? {} : { ports: ports.map(portOnHost) }),
    ...(resources?.limits === undefined
      ? {}
      : { resources: { ...resources, requests: { ...resources.limits, ...resources.requests } } }),
  };
}

function containerDefaults(container: PodContainer): PodContainer {
  const { ports, env, lifecycle } = container;
  return {
    ...withDefaults(container, {
      terminationMessagePath: "/dev/termination-log",
      terminationMessagePolicy: "File",
      imagePullPolicy: pullPolicyFor(container.image ?? ""),
    }),
    ...(ports === undefined ? {} : { ports: ports.map((port) => withDefaults(port, { protocol: "TCP" })) }),
    ...(env === undefined ? {} : { env: env.map(envDefaults) }),
    ...(lifecycle === undefined ? {} : { lifecycle: lifecycleDefaults(lifecycle) }),
    ...probes(container),
  };
}

/** A tag that never moves need not be looked up again; `latest`, said or meant, does. */
function pullPolicyFor(image: string): "Always" | "IfNotPresent" {
  const [reference = "", digest] = image.split("@");
  const tag = /:([^:/]*)$/.exec(reference)?.[1];
  if (tag === "latest") return "Always";
  return tag === undefined && digest === undefined && image !== "" ? "Always" : "IfNotPresent";
}

function portOnHost<T extends NonNullable<PodContainer["ports"]>[number]>(port: T): T {
  const { containerPort } = port;
  return containerPort === undefined
    ? port
    : withDefaults<T>(port, { hostPort: containerPort } as Partial<T>);
}

function envDefaults<T extends NonNullable<PodContainer["env"]>[number]>(variable: T): T {
  const fieldRef = variable.valueFrom?.fieldRef;
  if (fieldRef === undefined) return variable;
  return { ...variable, valueFrom: { ...variable.valueFrom, fieldRef: withDefaults(fieldRef, FIELD_REF) } };
}

const FIELD_REF = { apiVersion: "v1" };
const HTTP_GET = { path: "/", scheme: "HTTP" };
const PROBE = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };

function probes(container: PodContainer): PodContainer {
  const { livenessProbe, readinessProbe, startupProbe } = container;
  return {
    ...(livenessProbe === undefined ? {} : { livenessProbe: probeDefaults(livenessProbe) }),
    ...(readinessProbe === undefined ? {} : { readinessProbe: probeDefaults(readinessProbe) }),
    ...(startupProbe === undefined ? {} : { startupProbe: probeDefaults(startupProbe) }),
  };
}

function probeDefaults(probe: Loose<Probe>): Loose<Probe> {
  const { httpGet, grpc } = probe;
  return {
    ...withDefaults(probe, PROBE),
    ...(httpGet === undefined ? {} : { httpGet: withDefaults(httpGet, HTTP_GET) }),
    ...(grpc === undefined ? {} : { grpc: withDefaults(grpc, { service: "" }) }),
  };
}

function lifecycleDefaults(lifecycle: NonNullable<PodContainer["lifecycle"]>) {
  const { postStart, preStop } = lifecycle;
  const complete = (handler: NonNullable<typeof postStart>) =>
    handler.httpGet === undefined
      ? handler
      : { ...handler, httpGet: withDefaults(handler.httpGet, HTTP_GET) };
  return {
    ...lifecycle,
    ...(postStart === undefined ? {} : { postStart: complete(postStart) }),
    ...(preStop === undefined ? {} : { preStop: complete(preStop) }),
  };
}

/** A volume that names no source is a directory of its own. */
function volumeDefaults(volume: PodVolume): PodVolume {
  if (Object.keys(volume).every((key) => key === "name")) return { ...volume, emptyDir: {} };
  const { downwardAPI, projected, ephemeral, ...rest } = sourceDefaults(volume);
  return {
    ...rest,
    ...(downwardAPI === undefined ? {} : { downwardAPI: fileDefaults(downwardAPI) }),
    ...(projected === undefined
      ? {}
      : {
          projected:
            projected.sources === undefined
              ? projected
              : { ...projected, sources: projected.sources.map(projectionDefaults) },
        }),
    ...(ephemeral === undefined ? {} : { ephemeral: ephemeralDefaults(ephemeral) }),
  };
}

function projectionDefaults(projection: Loose<VolumeProjection>): Loose<VolumeProjection> {
  const { downwardAPI, serviceAccountToken } = projection;
  return {
    ...projection,
    ...(downwardAPI === undefined ? {} : { downwardAPI: fileDefaults(downwardAPI) }),
    ...(serviceAccountToken === undefined
      ? {}
      : { serviceAccountToken: withDefaults(serviceAccountToken, { expirationSeconds: 3_600 }) }),
  };
}

type DownwardFiles = Pick<NonNullable<PodVolume["downwardAPI"]>, "items">;

function fileDefaults<T extends DownwardFiles>(source: T): T {
  if (source.items === undefined) return source;
  const items = source.items.map((item) =>
    item.fieldRef === undefined ? item : { ...item, fieldRef: withDefaults(item.fieldRef, FIELD_REF) },
  );
  return { ...source, items };
}

function ephemeralDefaults<T extends NonNullable<PodVolume["ephemeral"]>>(ephemeral: T): T {
  const template = ephemeral.volumeClaimTemplate;
  if (template === undefined) return ephemeral;
  return { ...ephemeral, volumeClaimTemplate: { ...template, spec: claimSpecDefaults(template.spec ?? {}) } };
}

/** Older clients know one address, newer ones a list that begins with it; what an older one sets counts. */
function syncPodIps<T extends NonNullable<PodObject["status"]>>(status: T): T {
  const { podIP = "", podIPs = [] } = status;
  if (podIP === "" && podIPs.length === 0) return status;
  const list = podIP === "" || podIPs[0]?.ip === podIP ? podIPs : [{ ip: podIP }];
  return { ...status, podIP: list[0]?.ip ?? podIP, podIPs: list };
}
