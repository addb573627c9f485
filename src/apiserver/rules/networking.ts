import type { Endpoints } from "kubernetes-types/core/v1.js";
import type { EndpointSlice } from "kubernetes-types/discovery/v1.js";
import type { IngressClass, NetworkPolicy, NetworkPolicyPort } from "kubernetes-types/networking/v1.js";
import { IMMUTABLE, invalidFor, invalidValue, notSupported, required, causeIf } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { withDefaults, type Loose, type LooseObject } from "./loose.ts";
import { validateLabelSelector } from "./selectors.ts";
import { ipProblems } from "./text-rules.ts";

/** Where traffic goes. Nothing here moves a packet: a network plugin and kube-proxy read these. */

export const endpointsRules: RuleParts<LooseObject<Endpoints>> = {
  applyDefaults: ({ subsets, ...endpoints }) => ({
    ...endpoints,
    ...(subsets === undefined
      ? {}
      : {
          subsets: subsets.map(({ ports, ...subset }) => ({
            ...subset,
            ...(ports === undefined
              ? {}
              : { ports: ports.map((port) => withDefaults(port, { protocol: "TCP" })) }),
          })),
        }),
  }),

  validate: ({ subsets = [] }) =>
    subsets.flatMap(({ addresses = [], notReadyAddresses = [] }, index) => {
      const field = `subsets[${index}]`;
      return [
        ...causeIf(
          addresses.length + notReadyAddresses.length === 0,
          required(field, "must specify `addresses` or `notReadyAddresses`"),
        ),
        ...addresses.flatMap(({ ip = "" }, at) =>
          invalidFor(`${field}.addresses[${at}].ip`, ip, ipProblems(ip)),
        ),
      ];
    }),
};

const ADDRESS_TYPES = ["FQDN", "IPv4", "IPv6"];

export const endpointSliceRules: RuleParts<LooseObject<EndpointSlice>> = {
  applyDefaults: ({ ports, ...slice }) => ({
    ...slice,
    ...(ports === undefined
      ? {}
      : { ports: ports.map((port) => withDefaults(port, { name: "", protocol: "TCP" })) }),
  }),

  validate: ({ addressType = "", endpoints = [] }) => [
    ...(addressType === ""
      ? [required("addressType")]
      : causeIf(
          !ADDRESS_TYPES.includes(addressType),
          notSupported("addressType", addressType, ADDRESS_TYPES),
        )),
    ...endpoints.flatMap(({ addresses = [] }, index) =>
      causeIf(
        addresses.length === 0,
        required(`endpoints[${index}].addresses`, "must contain at least 1 address"),
      ),
    ),
  ],

  validateChange: (slice, old) =>
    causeIf(slice.addressType !== old.addressType, invalidValue("addressType", slice.addressType, IMMUTABLE)),
};

export const networkPolicyRules: RuleParts<LooseObject<NetworkPolicy>> = {
  applyDefaults({ spec = {}, ...policy }) {
    const { ingress, egress } = spec;
    const policyTypes = ["Ingress", ...((egress ?? []).length > 0 ? ["Egress"] : [])];
    return {
      ...policy,
      spec: {
        ...withDefaults(spec, { policyTypes }),
        ...(ingress === undefined ? {} : { ingress: ingress.map(withPorts) }),
        ...(egress === undefined ? {} : { egress: egress.map(withPorts) }),
      },
    };
  },

  validate: ({ spec = {} }) => validateLabelSelector("spec.podSelector", spec.podSelector),
};

export const ingressClassRules: RuleParts<LooseObject<IngressClass>> = {
  applyDefaults({ spec, ...ingressClass }) {
    if (spec?.parameters === undefined) return { ...ingressClass, ...(spec === undefined ? {} : { spec }) };
    return {
      ...ingressClass,
      spec: { ...spec, parameters: withDefaults(spec.parameters, { scope: "Cluster" }) },
    };
  },

  validateChange: ({ spec = {} }, { spec: old = {} }) =>
    causeIf(spec.controller !== old.controller, invalidValue("spec.controller", spec.controller, IMMUTABLE)),
};

function withPorts<T extends { readonly ports?: readonly Loose<NetworkPolicyPort>[] }>(rule: T): T {
  if (rule.ports === undefined) return rule;
  return { ...rule, ports: rule.ports.map((port) => withDefaults(port, { protocol: "TCP" })) };
}
