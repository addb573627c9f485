import { causeIf, invalidValue, required } from "./causes.ts";
import { isEmpty, type DefinitionRules, type PackageRules } from "./definition.ts";
import { withDefaults } from "./loose.ts";

const exactCount: DefinitionRules = {
  defaults: (request) => {
    const counted = withDefaults(request, { allocationMode: "ExactCount" });
    return counted["allocationMode"] === "ExactCount" ? withDefaults(counted, { count: 1 }) : counted;
  },
  values: { allocationMode: ["All", "ExactCount"] },
};

const configuration: DefinitionRules = { required: { opaque: "" } };

export const DEVICE_RULES: PackageRules = {
  ExactDeviceRequest: exactCount,
  DeviceSubRequest: exactCount,
  DeviceRequest: {
    validate: (path, { exactly, firstAvailable }) => {
      const count = Number(exactly !== undefined) + Number(!isEmpty(firstAvailable));
      const text = "exactly one of `exactly` or `firstAvailable` is required";
      if (count === 0) return [required(path, text)];
      return causeIf(count > 1, invalidValue(path, null, `${text}, but multiple fields are set`));
    },
  },
  DeviceSelector: { required: { cel: "" } },
  DeviceClaimConfiguration: configuration,
  DeviceClassConfiguration: configuration,
  ResourceSliceSpec: {
    validate: (path, spec) => {
      const nodes = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
      const text = `exactly one of ${nodes.map((name) => `\`${name}\``).join(", ")} is required`;
      const set = nodes.filter((name) => spec[name] !== undefined);
      if (set.length === 0) return [required(path, text)];
      return causeIf(set.length > 1, invalidValue(path, set.join(), `${text}, but multiple fields are set`));
    },
  },
  ResourceClaim: { immutable: ["spec"] },
  ResourceClaimTemplate: { immutable: ["spec"] },
};
