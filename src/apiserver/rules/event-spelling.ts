import type { ApiObject } from "../objects.ts";

/**
 * One event, two spellings: core/v1, in which events are stored, and events.k8s.io/v1. Fields that are
 * called the same in both (series, action, related, eventTime, type, reason, reportingInstance) stay.
 */
const SPELLINGS: readonly (readonly [core: string, renamed: string])[] = [
  ["involvedObject", "regarding"],
  ["message", "note"],
  ["source", "deprecatedSource"],
  ["firstTimestamp", "deprecatedFirstTimestamp"],
  ["lastTimestamp", "deprecatedLastTimestamp"],
  ["count", "deprecatedCount"],
  ["reportingComponent", "reportingController"],
];

const TO_NEW = new Map(SPELLINGS);
const TO_CORE = new Map(SPELLINGS.map(([core, renamed]) => [renamed, core]));

/** An event of events.k8s.io/v1 as core/v1 has it. */
export function toCoreEvent(event: ApiObject): ApiObject {
  return respell(event, TO_CORE, "v1");
}

/** An event of core/v1 as events.k8s.io/v1 has it. */
export function toNewEvent(event: ApiObject): ApiObject {
  return respell(event, TO_NEW, "events.k8s.io/v1");
}

function respell(event: ApiObject, names: ReadonlyMap<string, string>, apiVersion: string): ApiObject {
  const members = Object.entries(event).map(([key, value]) => [names.get(key) ?? key, value] as const);
  return { ...(Object.fromEntries(members) as unknown as ApiObject), apiVersion };
}
