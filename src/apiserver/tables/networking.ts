import type { ApiObject } from "../objects.ts";
import { has, listAt, numberAt, textAt, textsAt } from "./fields.ts";
import { ageColumn, column, createPrinter, nameColumn, nameOf, wideColumn } from "./printer.ts";
import { firstFew, labelsText, selectorText } from "./selectors.ts";

/** Where traffic goes. */

export const servicePrinter = createPrinter([
  nameColumn,
  column("Type", "Who can reach it", (service) => textAt(service, "spec", "type")),
  column(
    "Cluster-IP",
    "Its address inside the cluster",
    (service) => textsAt(service, "spec", "clusterIPs")[0] ?? "<none>",
  ),
  column("External-IP", "Its addresses outside", externalIp),
  column("Port(s)", "Its ports, and those of the nodes that lead there", servicePorts),
  ageColumn,
  wideColumn("Selector", "The labels of the pods behind it", (service) =>
    labelsText(service, "spec", "selector"),
  ),
]);

export const endpointsPrinter = createPrinter([
  nameColumn,
  column("Endpoints", "Addresses of pods that are ready", (endpoints) => {
    const texts = listAt(endpoints, "subsets").flatMap((subset) => {
      const ips = listAt(subset, "addresses").map((address) => textAt(address, "ip"));
      const ports = listAt(subset, "ports").map((port) => numberAt(port, "port") ?? 0);
      if (ports.length === 0) return ips;
      return ports.flatMap((port) =>
        ips.map((ip) => (ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`)),
      );
    });
    return listAt(endpoints, "subsets").length === 0 ? "<none>" : firstFew(texts, { max: 3, none: "" });
  }),
  ageColumn,
]);

export const endpointSlicePrinter = createPrinter([
  nameColumn,
  column("AddressType", "What its addresses are", (slice) => textAt(slice, "addressType")),
  column("Ports", "The ports of every endpoint", (slice) =>
    firstFew(
      listAt(slice, "ports").map((port) =>
        String(numberAt(port, "port") ?? (has(port, "name") ? textAt(port, "name") : "*")),
      ),
      { max: 3, none: "<unset>" },
    ),
  ),
  column("Endpoints", "Their addresses", (slice) =>
    firstFew(
      listAt(slice, "endpoints").flatMap((endpoint) => textsAt(endpoint, "addresses")),
      { max: 3, none: "<unset>" },
    ),
  ),
  ageColumn,
]);

export const ingressPrinter = createPrinter([
  nameColumn,
  column("Class", "Who carries it out", (ingress) => textAt(ingress, "spec", "ingressClassName") || "<none>"),
  column("Hosts", "For which names", hosts),
  column("Address", "Where it is reached", (ingress) => balancerText(ingress)),
  column("Ports", "On which ports", (ingress) =>
    listAt(ingress, "spec", "tls").length > 0 ? "80, 443" : "80",
  ),
  ageColumn,
]);

const DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class";

export const ingressClassPrinter = createPrinter([
  {
    ...nameColumn,
    cell: (item) =>
      textAt(item, "metadata", "annotations", DEFAULT_CLASS) === "true"
        ? `${nameOf(item)} (default)`
        : nameOf(item),
  },
  column("Controller", "Who carries out ingresses of this class", (item) =>
    textAt(item, "spec", "controller"),
  ),
  column("Parameters", "The object with its settings", (item) => {
    if (!has(item, "spec", "parameters")) return "<none>";
    const group = textAt(item, "spec", "parameters", "apiGroup");
    const kind = textAt(item, "spec", "parameters", "kind");
    return `${kind}${group === "" ? "" : `.${group}`}/${textAt(item, "spec", "parameters", "name")}`;
  }),
  ageColumn,
]);

export const networkPolicyPrinter = createPrinter([
  nameColumn,
  column("Pod-Selector", "The labels of the pods it is about", (policy) =>
    selectorText(policy, ["spec", "podSelector"]),
  ),
  ageColumn,
]);

export const serviceCidrPrinter = createPrinter([
  nameColumn,
  column("CIDRs", "The addresses that Services get", (item) => textsAt(item, "spec", "cidrs").join(",")),
  ageColumn,
]);

export const ipAddressPrinter = createPrinter([
  nameColumn,
  column("ParentRef", "Whose address it is", (item) => {
    if (!has(item, "spec", "parentRef")) return "<none>";
    const at = (field: string) => textAt(item, "spec", "parentRef", field);
    const resource = at("group") === "" ? at("resource") : `${at("resource")}.${at("group")}`;
    return [resource.toLowerCase(), ...(at("namespace") === "" ? [] : [at("namespace")]), at("name")].join(
      "/",
    );
  }),
]);

function externalIp(service: ApiObject): string {
  const given = textsAt(service, "spec", "externalIPs");
  switch (textAt(service, "spec", "type")) {
    case "ClusterIP":
    case "NodePort":
      return given.join(",") || "<none>";
    case "LoadBalancer": {
      const balanced = balancerText(service);
      return [...(balanced === "" ? [] : [balanced]), ...given].join(",") || "<pending>";
    }
    case "ExternalName":
      return textAt(service, "spec", "externalName");
    default:
      return "<unknown>";
  }
}

/** Addresses, in one order and each once. */
function balancerText(object: ApiObject): string {
  const texts = listAt(object, "status", "loadBalancer", "ingress").map(
    (ingress) => textAt(ingress, "ip") || textAt(ingress, "hostname"),
  );
  return [...new Set(texts.filter((text) => text !== ""))].sort().join(",");
}

function servicePorts(service: ApiObject): string {
  const texts = listAt(service, "spec", "ports").map((port) => {
    const node = numberAt(port, "nodePort") ?? 0;
    return `${numberAt(port, "port") ?? 0}${node > 0 ? `:${node}` : ""}/${textAt(port, "protocol")}`;
  });
  return texts.join(",") || "<none>";
}

function hosts(ingress: ApiObject): string {
  const rules = listAt(ingress, "spec", "rules");
  const names = rules.map((rule) => textAt(rule, "host")).filter((host) => host !== "");
  if (names.length === 0) return "*";
  const shown = names.slice(0, 3).join(",");
  return names.length > 3 ? `${shown} + ${rules.length - 3} more...` : shown;
}
