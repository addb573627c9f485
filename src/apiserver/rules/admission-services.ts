import { invalid } from "../errors.ts";
import { services } from "../kinds-workloads.ts";
import type { ApiObject } from "../objects.ts";
import type { AdmissionDeps } from "./admission.ts";
import { invalidValue, type Cause } from "./causes.ts";
import { withDefaults, without } from "./loose.ts";
import { isHeadless, type ServiceObject, type ServiceSpecObject } from "./service.ts";

/** The addresses that Services get: 10.96.0.0/12, a million of them. The first one is `kubernetes`. */
export const SERVICE_RANGE = "10.96.0.0/12";
const RANGE_FIRST = toNumber("10.96.0.0");
const RANGE_SIZE = 2 ** 20;
export const KUBERNETES_ADDRESS = "10.96.0.1";
const NODE_PORTS = { first: 30_000, count: 2_768 };
/** Tries at an address that is free; with 10,000 of a million taken, three fail once in a million. */
const TRIES = 64;

/** What a Service gets from the server: its addresses, its ports on every node, its family of addresses. */
export function allocateService(deps: AdmissionDeps, service: ServiceObject, old?: ServiceObject): ApiObject {
  const carried = old === undefined ? service : carryOver(service, old);
  const spec = carried.spec ?? {};
  if (spec.type === "ExternalName") return { ...carried, spec: withoutAddresses(spec) };
  const taken = takenBy(deps, service);
  const addressed = withAddress(deps, spec, taken);
  if (addressed.clusterIP !== old?.spec?.clusterIP) checkAddress(service, addressed, taken);
  return { ...carried, spec: withNodePorts(deps, addressed, taken, service) };
}

/** A client that knows nothing of what was allocated leaves it out of a PUT, and means no change. */
function carryOver(service: ServiceObject, { spec: old = {} }: ServiceObject): ServiceObject {
  const { spec = {} } = service;
  if (spec.type === "ExternalName" || old.type === "ExternalName") return service;
  const ports = (spec.ports ?? []).map((port) => {
    const same = (old.ports ?? []).find((one) => one.port === port.port && one.protocol === port.protocol);
    const isOpen = needsNodePorts(spec) && needsNodePorts(old);
    return isOpen && same?.nodePort !== undefined ? withDefaults(port, { nodePort: same.nodePort }) : port;
  });
  const closed = !needsNodePorts(spec) && needsNodePorts(old);
  return {
    ...service,
    spec: withDefaults(
      {
        ...spec,
        ...(spec.ports === undefined
          ? {}
          : { ports: closed ? ports.map((port) => dropOldPort(port, old)) : ports }),
      },
      {
        ...(old.clusterIP === undefined ? {} : { clusterIP: old.clusterIP }),
        ...(old.ipFamilies === undefined ? {} : { ipFamilies: old.ipFamilies }),
        ...(old.ipFamilyPolicy === undefined ? {} : { ipFamilyPolicy: old.ipFamilyPolicy }),
      },
    ),
  };
}

type Port = NonNullable<ServiceSpecObject["ports"]>[number];

function dropOldPort(port: Port, { ports = [] }: ServiceSpecObject): Port {
  return ports.some(({ nodePort }) => nodePort === port.nodePort) ? without(port, "nodePort") : port;
}

function withoutAddresses(spec: ServiceSpecObject): ServiceSpecObject {
  return without(spec, "clusterIPs", "ipFamilies", "ipFamilyPolicy");
}

interface Taken {
  readonly addresses: ReadonlySet<string>;
  readonly nodePorts: ReadonlySet<number>;
}

function takenBy(deps: AdmissionDeps, { metadata: { name, namespace } }: ServiceObject): Taken {
  // The first one is kept for the server, also while its Service is not there.
  const isServer = name === "kubernetes" && namespace === "default";
  const addresses = new Set<string>(isServer ? [] : [KUBERNETES_ADDRESS]);
  const nodePorts = new Set<number>();
  for (const { metadata, spec = {} } of deps.listObjects("services") as Iterable<ServiceObject>) {
    if (metadata.name === name && metadata.namespace === namespace) continue;
    if (spec.clusterIP !== undefined) addresses.add(spec.clusterIP);
    for (const { nodePort } of spec.ports ?? []) if (nodePort !== undefined) nodePorts.add(nodePort);
    if (spec.healthCheckNodePort !== undefined) nodePorts.add(spec.healthCheckNodePort);
  }
  return { addresses, nodePorts };
}

function withAddress(deps: AdmissionDeps, spec: ServiceSpecObject, taken: Taken): ServiceSpecObject {
  const asked = spec.clusterIP ?? spec.clusterIPs?.[0] ?? "";
  if (asked === "None") {
    const families = Object.keys(spec.selector ?? {}).length === 0 ? ANY_FAMILY : ONE_FAMILY;
    return withDefaults({ ...spec, clusterIP: "None", clusterIPs: ["None"] }, families);
  }
  const clusterIP = asked === "" ? freeAddress(deps, taken) : asked;
  return withDefaults({ ...spec, clusterIP, clusterIPs: [clusterIP] }, ONE_FAMILY);
}

function checkAddress(
  { metadata: { name = "" } }: ServiceObject,
  { clusterIP = "" }: ServiceSpecObject,
  taken: Taken,
): void {
  if (clusterIP === "None") return;
  const isInRange = IPV4.test(clusterIP) && isOfRange(toNumber(clusterIP));
  if (isInRange && !taken.addresses.has(clusterIP)) return;
  const why = isInRange
    ? "provided IP is already allocated"
    : `the provided IP is not in the valid range. The range of valid IPs is ${SERVICE_RANGE}`;
  const detail = `failed to allocate IP ${clusterIP}: ${why}`;
  throw invalid(services, name, [invalidValue("spec.clusterIPs", [clusterIP], detail)]);
}

const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/;

function isOfRange(number: number): boolean {
  return number > RANGE_FIRST && number < RANGE_FIRST + RANGE_SIZE - 1;
}

const ONE_FAMILY = { ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" };
/** Endpoints of a Service that selects nothing are written by somebody else, in whatever family. */
const ANY_FAMILY = { ipFamilies: ["IPv4", "IPv6"], ipFamilyPolicy: "RequireDualStack" };

function freeAddress({ random }: AdmissionDeps, { addresses }: Taken): string {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const address = toAddress(RANGE_FIRST + 1 + random.int(RANGE_SIZE - 2));
    if (!addresses.has(address)) return address;
  }
  throw new RangeError(`service: no free address in ${SERVICE_RANGE} after ${TRIES} tries`);
}

export function needsNodePorts({ type, allocateLoadBalancerNodePorts }: ServiceSpecObject): boolean {
  return type === "NodePort" || (type === "LoadBalancer" && allocateLoadBalancerNodePorts !== false);
}

function withNodePorts(
  deps: AdmissionDeps,
  spec: ServiceSpecObject,
  taken: Taken,
  service: ServiceObject,
): ServiceSpecObject {
  if (!needsNodePorts(spec) || isHeadless(spec)) return spec;
  const used = new Set(taken.nodePorts);
  const causes: Cause[] = [];
  const ports = (spec.ports ?? []).map((port, index) => {
    const nodePort = port.nodePort ?? freePort(deps, used);
    if (taken.nodePorts.has(nodePort)) {
      causes.push(
        invalidValue(`spec.ports[${index}].nodePort`, nodePort, "provided port is already allocated"),
      );
    }
    used.add(nodePort);
    return { ...port, nodePort };
  });
  if (causes.length > 0) throw invalid(services, service.metadata.name ?? "", causes);
  const isLocal = spec.type === "LoadBalancer" && spec.externalTrafficPolicy === "Local";
  const health = isLocal ? { healthCheckNodePort: spec.healthCheckNodePort ?? freePort(deps, used) } : {};
  return { ...spec, ports, ...health };
}

function freePort({ random }: AdmissionDeps, used: ReadonlySet<number>): number {
  const start = random.int(NODE_PORTS.count);
  for (let offset = 0; offset < NODE_PORTS.count; offset++) {
    const port = NODE_PORTS.first + ((start + offset) % NODE_PORTS.count);
    if (!used.has(port)) return port;
  }
  throw new RangeError("service: every node port from 30000 to 32767 is taken");
}

function toNumber(address: string): number {
  return address.split(".").reduce((number, part) => number * 256 + Number(part), 0);
}

function toAddress(number: number): string {
  return [24, 16, 8, 0].map((bits) => Math.floor(number / 2 ** bits) % 256).join(".");
}
