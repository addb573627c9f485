import { causeIf, invalidValue, oneOf, required, type Cause } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import type { LooseObject } from "./loose.ts";

/**
 * The rules that the published definitions of the three snapshot kinds carry. What is missing or not in its list is told
 * first, and then nothing else is checked: so does a real server with custom resources.
 */

interface Source {
  readonly [name: string]: string;
}

type Snapshot = LooseObject<{
  spec: { source: Source; volumeSnapshotClassName: string };
  status: { restoreSize: string | number };
}>;

type Content = LooseObject<{
  spec: {
    deletionPolicy: string;
    driver: string;
    source: Source;
    sourceVolumeMode: string;
    volumeSnapshotRef: { name: string; namespace: string };
  };
  status: { restoreSize: number };
}>;

type SnapshotClass = LooseObject<{ deletionPolicy: string; driver: string }>;

const POLICIES = ["Delete", "Retain"];

/** A snapshot is of a claim, or of a snapshot that was made elsewhere. */
const SNAPSHOT_SOURCES = ["persistentVolumeClaimName", "volumeSnapshotContentName"] as const;
const CONTENT_SOURCES = ["volumeHandle", "snapshotHandle"] as const;

export const volumeSnapshotRules: RuleParts<Snapshot> = {
  validate({ spec }) {
    const missing = [
      ...causeIf(spec === undefined, required("spec")),
      ...causeIf(spec !== undefined && spec.source === undefined, required("spec.source")),
    ];
    const source = spec?.source;
    if (source === undefined) return unlessComplete(missing);
    return [
      ...validateChoice(source, SNAPSHOT_SOURCES),
      ...causeIf(
        spec?.volumeSnapshotClassName === "",
        invalidValue("spec.volumeSnapshotClassName", "string", "must not be the empty string when set"),
      ),
    ];
  },

  validateChange: ({ spec }, old) =>
    validateSourceChange(spec?.source ?? {}, old.spec?.source ?? {}, SNAPSHOT_SOURCES),

  validateStatus({ status }) {
    const size = status?.restoreSize;
    const isAmount = typeof size !== "string" || AMOUNT.test(size);
    const rule = `status.restoreSize in body should match '${AMOUNT.source}'`;
    return causeIf(!isAmount, invalidValue("status.restoreSize", size, rule));
  },
};

export const volumeSnapshotContentRules: RuleParts<Content> = {
  validate({ spec }) {
    if (spec === undefined) return unlessComplete([required("spec")]);
    const { source, volumeSnapshotRef: ref } = spec;
    const missing = [
      ...missingFields("spec.", spec, ["deletionPolicy", "driver", "source", "volumeSnapshotRef"]),
      ...oneOf("spec.deletionPolicy", spec.deletionPolicy, POLICIES),
    ];
    if (missing.length > 0 || source === undefined || ref === undefined) return unlessComplete(missing);
    return [
      ...validateChoice(source, CONTENT_SOURCES),
      ...causeIf(
        ref.name === undefined || ref.namespace === undefined,
        invalidValue("spec.volumeSnapshotRef", "object", "both name and namespace must be set"),
      ),
    ];
  },

  validateChange({ spec }, old) {
    const [mode, oldMode] = [spec?.sourceVolumeMode, old.spec?.sourceVolumeMode];
    return [
      ...validateSourceChange(spec?.source ?? {}, old.spec?.source ?? {}, CONTENT_SOURCES),
      ...(oldMode === undefined || mode === oldMode
        ? []
        : mode === undefined
          ? [invalidValue("spec", "object", "sourceVolumeMode is required once set")]
          : [invalidValue("spec.sourceVolumeMode", "string", "sourceVolumeMode is immutable")]),
    ];
  },

  validateStatus({ status }) {
    const size = status?.restoreSize ?? 0;
    const rule = "status.restoreSize in body should be greater than or equal to 0";
    return causeIf(size < 0, invalidValue("status.restoreSize", size, rule));
  },
};

export const volumeSnapshotClassRules: RuleParts<SnapshotClass> = {
  validate: (object) => [
    ...missingFields("", object, ["deletionPolicy", "driver"]),
    ...oneOf("deletionPolicy", object.deletionPolicy, POLICIES),
  ],
};

/** What the definition says of an amount: stricter than our own reading of it. */
const AMOUNT =
  /^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$/;

function missingFields<T extends object>(
  prefix: string,
  object: T,
  names: readonly (keyof T & string)[],
): Cause[] {
  return names.filter((name) => object[name] === undefined).map((name) => required(`${prefix}${name}`));
}

/** Rules look at an object only once it has the right shape. */
function unlessComplete(missing: readonly Cause[]): Cause[] {
  const rule =
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
  return missing.length === 0 ? [] : [...missing, invalidValue("<nil>", null, rule)];
}

type Chosen = Readonly<Record<string, string | undefined>>;

/** Being there is what counts, even with nothing in it. */
function validateChoice(source: Chosen, names: readonly [string, string]): Cause[] {
  const given = names.filter((name) => source[name] !== undefined);
  const rule = `exactly one of ${names.join(" and ")} must be set`;
  return causeIf(given.length !== 1, invalidValue("spec.source", "object", rule));
}

function validateSourceChange(source: Chosen, old: Chosen, names: readonly string[]): Cause[] {
  return names.flatMap((name) => {
    if (old[name] === undefined || source[name] === old[name]) return [];
    if (source[name] === undefined) {
      return [invalidValue("spec.source", "object", `${name} is required once set`)];
    }
    return [invalidValue(`spec.source.${name}`, "string", `${name} is immutable`)];
  });
}
