import { isJsonObject } from "../../kube/patch/json.ts";
import { causeIf, invalidValue, required } from "./causes.ts";
import { isEmpty, objectAt, textAt, type PackageRules } from "./definition.ts";

export const NETWORKING_RULES: PackageRules = {
  IngressSpec: {
    validate: (path, { rules, defaultBackend }) =>
      causeIf(
        isEmpty(rules) && defaultBackend === undefined,
        invalidValue(path, rules ?? null, "either `defaultBackend` or `rules` must be specified"),
      ),
  },
  HTTPIngressPath: {
    required: { pathType: "pathType must be specified" },
    values: { pathType: ["Exact", "ImplementationSpecific", "Prefix"] },
    validate: (path, rule) => {
      const [at, type] = [textAt(rule, "path"), textAt(rule, "pathType")];
      const isNeeded = at !== "" || type === "Exact" || type === "Prefix";
      return causeIf(
        isNeeded && !at.startsWith("/"),
        invalidValue(`${path}.path`, at, "must be an absolute path"),
      );
    },
  },
  IngressBackend: {
    validate: (path, { resource, service }) => {
      const count = [resource, service].filter((one) => one !== undefined).length;
      if (count === 0) return [invalidValue(path, "", "resource or service backend is required")];
      if (count === 2) return [invalidValue(path, "", "cannot set both resource and service backends")];
      const { name, number } = objectAt(isJsonObject(service) ? service : {}, "port");
      if (service === undefined || (name === undefined) !== (number === undefined)) return [];
      if (name === undefined) return [required(path, "port name or number is required")];
      return [invalidValue(path, "", "cannot set both port name & port number")];
    },
  },
  ServiceCIDRSpec: { required: { cidrs: "at least one CIDR required" } },
  IPAddress: { immutable: ["spec"] },
};
