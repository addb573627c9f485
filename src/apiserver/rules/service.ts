import type { Service, ServicePort, ServiceSpec } from "kubernetes-types/core/v1.js";
import {
  causeIf,
  duplicate,
  forbiddenField,
  inRange,
  invalidFor,
  invalidValue,
  notSupported,
  oneOf,
  required,
  type Cause,
} from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { withDefaults, without, type Loose, type LooseObject } from "./loose.ts";
import { validateLabels } from "./metadata.ts";
import { ipProblems, labelProblems, portNameProblems, subdomainProblems } from "./text-rules.ts";

export type ServiceObject = LooseObject<Service>;
export type ServiceSpecObject = Loose<ServiceSpec>;
type Port = Loose<ServicePort>;

/** Seconds that a client stays with one endpoint: three hours. */
const AFFINITY_SECONDS = 10_800;
const TYPES = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PORT_RANGE = { min: 1, max: 65_535 };

export function isHeadless({ clusterIP }: ServiceSpecObject): boolean {
  return clusterIP === "None";
}

/** Which addresses and ports a Service has is decided in admission-services.ts, in the light of all others. */
export const serviceRules: RuleParts<ServiceObject> = {
  applyDefaults: ({ spec = {}, ...service }) => ({ ...service, spec: specDefaults(spec) }),

  validate({ spec = {} }) {
    const { type = "", ports = [], selector } = spec;
    const isBare = type === "ExternalName" || isHeadless(spec);
    return [
      ...(ports.length === 0 && !isBare ? [required("spec.ports")] : []),
      ...(type === "ExternalName" ? validateExternalName(spec) : []),
      ...causeIf(
        type === "LoadBalancer" && isHeadless(spec),
        invalidValue("spec.clusterIPs[0]", "None", "may not be set to 'None' for LoadBalancer services"),
      ),
      ...causeIf(
        type === "NodePort" && isHeadless(spec),
        invalidValue("spec.clusterIPs[0]", "None", "may not be set to 'None' for NodePort services"),
      ),
      ...validatePorts(ports, spec),
      ...(selector === undefined ? [] : validateLabels("spec.selector", selector)),
      ...oneOf("spec.sessionAffinity", spec.sessionAffinity, ["ClientIP", "None"]),
      ...(TYPES.includes(type) ? [] : [notSupported("spec.type", type, TYPES)]),
      ...(spec.externalIPs ?? []).flatMap((ip, index) =>
        invalidFor(`spec.externalIPs[${index}]`, ip, ipProblems(ip)),
      ),
      ...oneOf("spec.externalTrafficPolicy", spec.externalTrafficPolicy, ["Cluster", "Local"]),
      ...oneOf("spec.internalTrafficPolicy", spec.internalTrafficPolicy, ["Cluster", "Local"]),
    ];
  },

  validateChange({ spec = {} }, { spec: old = {} }) {
    const keepsAddress = spec.type !== "ExternalName" && old.type !== "ExternalName";
    return causeIf(
      keepsAddress && (old.clusterIP ?? "") !== "" && spec.clusterIP !== old.clusterIP,
      invalidValue(
        "spec.clusterIPs[0]",
        spec.clusterIPs ?? [spec.clusterIP ?? ""],
        "may not change once set",
      ),
    );
  },
};

function specDefaults(given: ServiceSpecObject): ServiceSpecObject {
  const spec = affinityDefaults(withDefaults(given, { sessionAffinity: "None", type: "ClusterIP" }));
  const { type, ports, externalIPs = [] } = spec;
  const isOutside = type === "LoadBalancer" || type === "NodePort" || externalIPs.length > 0;
  return {
    ...withDefaults(spec, {
      ...(isOutside && type !== "ExternalName" ? { externalTrafficPolicy: "Cluster" } : {}),
      ...(type === "ExternalName" ? {} : { internalTrafficPolicy: "Cluster" }),
      ...(type === "LoadBalancer" ? { allocateLoadBalancerNodePorts: true } : {}),
    }),
    ...(ports === undefined ? {} : { ports: ports.map(portDefaults) }),
  };
}

function affinityDefaults(spec: ServiceSpecObject): ServiceSpecObject {
  if (spec.sessionAffinity === "None") return without(spec, "sessionAffinityConfig");
  if (
    spec.sessionAffinity !== "ClientIP" ||
    spec.sessionAffinityConfig?.clientIP?.timeoutSeconds !== undefined
  )
    return spec;
  return { ...spec, sessionAffinityConfig: { clientIP: { timeoutSeconds: AFFINITY_SECONDS } } };
}

function portDefaults(port: Port): Port {
  return withDefaults(port, {
    protocol: "TCP",
    ...(port.port === undefined ? {} : { targetPort: port.port }),
  });
}

function validateExternalName({ externalName = "", clusterIP = "" }: ServiceSpecObject): Cause[] {
  return [
    ...causeIf(
      clusterIP !== "",
      forbiddenField("spec.clusterIPs", "may not be set for ExternalName services"),
    ),
    ...(externalName === ""
      ? [required("spec.externalName")]
      : invalidFor("spec.externalName", externalName, subdomainProblems(externalName.replace(/\.$/, "")))),
  ];
}

function validatePorts(ports: readonly Port[], spec: ServiceSpecObject): Cause[] {
  const seen = { names: new Set<string>(), ports: new Set<string>(), nodePorts: new Set<string>() };
  return ports.flatMap((port, index) => {
    const field = `spec.ports[${index}]`;
    const { name = "", protocol = "" } = port;
    return [
      ...validateName(field, name, { isRequired: ports.length > 1, seen: seen.names }),
      ...validateNumber(`${field}.port`, port.port ?? 0),
      ...oneOf(`${field}.protocol`, protocol, ["SCTP", "TCP", "UDP"]),
      ...validateTarget(`${field}.targetPort`, port.targetPort),
      ...causeIf(
        spec.type === "ClusterIP" && (port.nodePort ?? 0) !== 0,
        forbiddenField(`${field}.nodePort`, "may not be used when `type` is 'ClusterIP'"),
      ),
      ...repeated(field, { port: port.port ?? 0, protocol }, seen.ports),
      ...(port.nodePort === undefined
        ? []
        : repeated(`${field}.nodePort`, { protocol, nodePort: port.nodePort }, seen.nodePorts)),
    ];
  });
}

function validateName(
  field: string,
  name: string,
  { isRequired, seen }: { readonly isRequired: boolean; readonly seen: Set<string> },
): Cause[] {
  if (name === "") return isRequired ? [required(`${field}.name`)] : [];
  const causes = invalidFor(`${field}.name`, name, labelProblems(name));
  if (seen.has(name)) return [...causes, duplicate(`${field}.name`, name)];
  seen.add(name);
  return causes;
}

function validateTarget(field: string, target: string | number | undefined): Cause[] {
  if (typeof target === "string") return invalidFor(field, target, portNameProblems(target));
  return target === undefined ? [] : validateNumber(field, target);
}

export function validateNumber(field: string, port: number): Cause[] {
  return inRange(field, port, PORT_RANGE);
}

function repeated(field: string, key: object, seen: Set<string>): Cause[] {
  const text = JSON.stringify(key);
  if (seen.has(text)) return [duplicate(field, key)];
  seen.add(text);
  return [];
}
