import type { Event } from "kubernetes-types/core/v1.js";
import { IMMUTABLE, invalidFor, invalidValue, required, type Cause } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import type { LooseObject } from "./loose.ts";
import { sameValue } from "./quantities.ts";
import { qualifiedNameProblems } from "./text-rules.ts";

/** In the spelling of core/v1, in which events are stored and judged, whichever group they came by. */
export type CoreEvent = LooseObject<Event>;

const TEXT_CHARS_MAX = 128;
const MESSAGE_CHARS_MAX = 1_024;

/** core/v1: what old recorders send is taken; only an event with an eventTime is held to the newer rules. */
export const coreEventRules: RuleParts<CoreEvent> = {
  validate: (event) => validateEvent(event, { controllerField: "reportingComponent" }),
};

/** events.k8s.io/v1: nothing deprecated in what is new, and hardly a change to what is there. */
export const newEventRules: RuleParts<CoreEvent> = {
  validate: (event) => validateEvent(event, { controllerField: "reportingController" }),
  // An event that was stored through core/v1 can still be changed through the new group.
  validateNew: validateNewEvent,
  validateChange: validateNewEventChange,
};

function validateNewEvent(event: CoreEvent): Cause[] {
  const { eventTime, type = "", firstTimestamp, lastTimestamp, count = 0, source = {} } = event;
  const unset = "needs to be unset";
  return [
    ...validateSeries(event),
    ...(eventTime === undefined ? [required("eventTime")] : []),
    ...(type === "Normal" || type === "Warning"
      ? []
      : [invalidValue("type", "", `has invalid value: ${type}`)]),
    ...(firstTimestamp === undefined ? [] : [invalidValue("firstTimestamp", "", unset)]),
    ...(lastTimestamp === undefined ? [] : [invalidValue("lastTimestamp", "", unset)]),
    ...(count === 0 ? [] : [invalidValue("count", "", unset)]),
    ...(Object.keys(source).length === 0 ? [] : [invalidValue("source", "", unset)]),
  ];
}

function validateEvent(event: CoreEvent, { controllerField }: { controllerField: string }): Cause[] {
  const { metadata, involvedObject = {}, eventTime } = event;
  const subject = involvedObject.namespace ?? "";
  const home = metadata.namespace ?? "";
  const mismatch = invalidValue("involvedObject.namespace", subject, "does not match event.namespace");
  if (eventTime === undefined) {
    const agrees = subject === "" ? home === "" || home === "default" : subject === home;
    return agrees ? [] : [mismatch];
  }
  const isStray = subject === "" && home !== "default" && home !== "kube-system";
  return [...(isStray ? [mismatch] : []), ...validateReporter(event, controllerField)];
}

function validateReporter(event: CoreEvent, controllerField: string): Cause[] {
  const { reportingComponent = "", reportingInstance, action, reason, message = "" } = event;
  return [
    ...(reportingComponent === "" ? [required(controllerField)] : []),
    ...invalidFor(controllerField, reportingComponent, qualifiedNameProblems(reportingComponent)),
    ...requiredShort("reportingInstance", reportingInstance),
    ...requiredShort("action", action),
    ...requiredShort("reason", reason),
    ...(message.length > MESSAGE_CHARS_MAX
      ? [invalidValue("message", "", `can have at most ${MESSAGE_CHARS_MAX} characters`)]
      : []),
  ];
}

function requiredShort(field: string, text = ""): Cause[] {
  if (text === "") return [required(field)];
  if (text.length <= TEXT_CHARS_MAX) return [];
  return [invalidValue(field, "", `can have at most ${TEXT_CHARS_MAX} characters`)];
}

function validateSeries({ series }: CoreEvent): Cause[] {
  if (series === undefined) return [];
  return [
    ...((series.count ?? 0) < 2 ? [invalidValue("series.count", "", "should be at least 2")] : []),
    ...(series.lastObservedTime === undefined ? [required("series.lastObservedTime")] : []),
  ];
}

const FIXED = [
  "involvedObject",
  "reason",
  "reportingComponent",
  "reportingInstance",
  "action",
  "type",
  "related",
  "message",
  "source",
  "eventTime",
  "firstTimestamp",
  "lastTimestamp",
  "count",
] as const satisfies readonly (keyof CoreEvent)[];

function validateNewEventChange(event: CoreEvent, old: CoreEvent): Cause[] {
  return [
    ...(sameValue(event.series, old.series) ? [] : validateSeries(event)),
    ...FIXED.filter((field) => !sameValue(event[field], old[field])).map((field) =>
      invalidValue(field === "reportingComponent" ? "reportingController" : field, event[field], IMMUTABLE),
    ),
  ];
}
