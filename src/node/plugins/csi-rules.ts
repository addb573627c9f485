import type { CSIDriver } from "../../kube/api/csi-driver.ts";
import { isObject, text } from "../../volumes/untrusted.ts";

/** What a CSIDriver object asks of a node; without one, what upstream does without one. */
export interface DriverRules {
  /** Whether there is an object at all. */
  readonly exists: boolean;
  readonly attachRequired: boolean;
  readonly podInfo: boolean;
  readonly lifecycleModes: readonly string[];
  /** Empty where an object exists and does not say: an error for whoever needs it. */
  readonly fsGroupPolicy: string;
  readonly tokens: readonly TokenRule[];
  readonly tokensInSecrets: boolean;
  readonly republish: boolean;
  readonly selinuxMount: boolean;
  /** How often the driver is asked how many volumes the node may have; undefined for never. */
  readonly allocatablePeriodMs: number | undefined;
}

export interface TokenRule {
  readonly audience: string;
  readonly expirationSeconds: number | undefined;
}

const WITHOUT_OBJECT: DriverRules = {
  exists: false,
  attachRequired: true,
  podInfo: false,
  lifecycleModes: ["Persistent"],
  fsGroupPolicy: "ReadWriteOnceWithFSType",
  tokens: [],
  tokensInSecrets: false,
  republish: false,
  selinuxMount: false,
  allocatablePeriodMs: undefined,
};

/** Fields younger than the types we compile against. */
interface YoungFields {
  readonly nodeAllocatableUpdatePeriodSeconds?: unknown;
  readonly serviceAccountTokenInSecrets?: unknown;
}

export function rulesOf(object: CSIDriver | undefined): DriverRules {
  if (object === undefined) return WITHOUT_OBJECT;
  const spec = (isObject(object.spec) ? object.spec : {}) as CSIDriver["spec"] & YoungFields;
  const modes: unknown = spec.volumeLifecycleModes;
  return {
    exists: true,
    attachRequired: spec.attachRequired !== false,
    podInfo: spec.podInfoOnMount === true,
    lifecycleModes: Array.isArray(modes) && modes.length > 0 ? modes.map(text) : ["Persistent"],
    fsGroupPolicy: text(spec.fsGroupPolicy),
    tokens: tokenRules(spec.tokenRequests),
    tokensInSecrets: spec.serviceAccountTokenInSecrets === true,
    republish: spec.requiresRepublish === true,
    selinuxMount: spec.seLinuxMount === true,
    allocatablePeriodMs: periodMs(spec.nodeAllocatableUpdatePeriodSeconds),
  };
}

function tokenRules(requests: unknown): TokenRule[] {
  if (!Array.isArray(requests)) return [];
  return requests.filter(isObject).map((request: { audience?: unknown; expirationSeconds?: unknown }) => ({
    audience: text(request.audience),
    expirationSeconds: typeof request.expirationSeconds === "number" ? request.expirationSeconds : undefined,
  }));
}

/** The API allows 10 s and more; a shorter one would make the driver busy with answering. */
const PERIOD_SECONDS_MIN = 10;

function periodMs(seconds: unknown): number | undefined {
  if (typeof seconds !== "number" || !(seconds > 0)) return undefined;
  return Math.max(seconds, PERIOD_SECONDS_MIN) * 1_000;
}
