import { causeIf, invalidValue } from "./causes.ts";
import { textAt, type DefinitionRules, type PackageRules } from "./definition.ts";
import { ADMISSION_RULES } from "./definitions-admission.ts";
import { AUTOSCALING_RULES } from "./definitions-autoscaling.ts";
import { DEVICE_RULES } from "./definitions-devices.ts";
import { FLOW_RULES } from "./definitions-flow.ts";
import { NETWORKING_RULES } from "./definitions-networking.ts";
import { validateLabelSelector, validateNodeSelector } from "./selectors.ts";

const PEM_REQUEST = "-----BEGIN CERTIFICATE REQUEST-----";

const OTHER_RULES: PackageRules = {
  "io.k8s.api.apps.v1.ControllerRevision": {
    required: { data: "data is mandatory" },
    immutable: ["data"],
  },
  "io.k8s.api.certificates.v1.CertificateSigningRequestSpec": {
    required: { usages: "" },
    zeroes: ["request"],
    validate: (path, spec) => [
      ...causeIf(
        !Buffer.from(textAt(spec, "request"), "base64").toString("latin1").includes(PEM_REQUEST),
        invalidValue(
          `${path}.request`,
          textAt(spec, "request"),
          "PEM block type must be CERTIFICATE REQUEST",
        ),
      ),
      ...causeIf(
        Number(spec["expirationSeconds"] ?? 600) < 600,
        invalidValue(
          `${path}.expirationSeconds`,
          spec["expirationSeconds"],
          "may not specify a duration less than 600 seconds (10 minutes)",
        ),
      ),
    ],
  },
  "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector": { instead: validateLabelSelector },
  "io.k8s.api.core.v1.NodeSelector": { instead: validateNodeSelector },
};

/** By the name that OpenAPI has for the definition. */
export const DEFINITION_RULES: ReadonlyMap<string, DefinitionRules> = new Map(
  [
    ["io.k8s.api.admissionregistration.v1.", ADMISSION_RULES] as const,
    ["io.k8s.api.autoscaling.v2.", AUTOSCALING_RULES] as const,
    ["io.k8s.api.flowcontrol.v1.", FLOW_RULES] as const,
    ["io.k8s.api.networking.v1.", NETWORKING_RULES] as const,
    ["io.k8s.api.resource.v1.", DEVICE_RULES] as const,
    ["", OTHER_RULES] as const,
  ].flatMap(([group, rules]) =>
    Object.entries(rules).map(([name, one]) => [`${group}${name}`, one] as const),
  ),
);
