import type { CSINode, CSINodeDriver } from "kubernetes-types/storage/v1.js";
import {
  duplicate,
  IMMUTABLE,
  invalidFor,
  invalidValue,
  notNegative,
  required,
  type Cause,
} from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { without, type Loose, type LooseObject } from "./loose.ts";
import { sameValue } from "./quantities.ts";
import { driverNameCauses, qualifiedNameProblems } from "./text-rules.ts";

/** CSI allows a node id of 256 bytes since 1.5. */
const NODE_ID_CHARS_MAX = 256;

export const csiNodeRules: RuleParts<LooseObject<CSINode>> = {
  validate({ spec }) {
    const drivers = spec?.drivers ?? [];
    const names = drivers.map(({ name }) => name);
    return drivers.flatMap((driver, index) => {
      const field = `spec.drivers[${index}]`;
      return [
        ...(names.indexOf(driver.name) < index ? [duplicate(`${field}.name`, driver.name)] : []),
        ...validateDriver(field, driver),
      ];
    });
  },

  /** Drivers come and go, but one that stays keeps what it said, except how many volumes it has room for. */
  validateChange({ spec }, old) {
    return (old.spec?.drivers ?? []).flatMap((before) => {
      const after = spec?.drivers?.find(({ name }) => name === before.name);
      if (after === undefined || sameValue(without(after, "allocatable"), without(before, "allocatable")))
        return [];
      return [invalidValue("CSINodeDriver", after, IMMUTABLE)];
    });
  },
};

function validateDriver(field: string, driver: Loose<CSINodeDriver>): Cause[] {
  const { name, nodeID = "", topologyKeys = [], allocatable } = driver;
  return [
    ...driverNameCauses(`${field}.name`, name),
    ...(nodeID === "" ? [required(`${field}.nodeID`)] : []),
    ...(nodeID.length > NODE_ID_CHARS_MAX
      ? [invalidValue(`${field}.nodeID`, nodeID, `must be ${NODE_ID_CHARS_MAX} characters or less`)]
      : []),
    ...topologyKeys.flatMap((key, index) => [
      ...(topologyKeys.indexOf(key) < index ? [duplicate(field, key)] : []),
      ...invalidFor(field, key, qualifiedNameProblems(key)),
    ]),
    ...notNegative(`${field}.allocatable.count`, allocatable?.count),
  ];
}
