import { fieldAt, type ApiObject } from "../objects.ts";
import { ageOf } from "./age.ts";
import { has, numberAt, textAt } from "./fields.ts";
import { column, createPrinter, nameColumn, wideColumn, type PrintContext } from "./printer.ts";

/** Events of both groups: the same objects, of which events.k8s.io spells some fields otherwise. */
export const eventPrinter = createPrinter([
  column("Last Seen", "When it happened last", lastSeen),
  column("Type", "Normal, or a warning", (event) => textAt(event, "type")),
  column("Reason", "What happened, in one word", (event) => textAt(event, "reason")),
  column("Object", "What it happened to", objectText),
  wideColumn("Subobject", "The part of it concerned", (event) => textAt(subject(event), "fieldPath")),
  wideColumn("Source", "Who says so", sourceText),
  column("Message", "What happened, in words", (event) => either(event, "message", "note").trim()),
  wideColumn("First Seen", "When it happened first", firstSeen),
  wideColumn("Count", "How often it happened", countOf),
  { ...nameColumn, priority: 1 },
]);

function subject(event: ApiObject): unknown {
  return fieldAt(event, "involvedObject") ?? fieldAt(event, "regarding");
}

function objectText(event: ApiObject): string {
  const kind = textAt(subject(event), "kind").toLowerCase();
  const name = textAt(subject(event), "name");
  return name === "" ? kind : `${kind}/${name}`;
}

function sourceText(event: ApiObject): string {
  const source = fieldAt(event, "source") ?? fieldAt(event, "deprecatedSource");
  const component = textAt(source, "component") || either(event, "reportingComponent", "reportingController");
  const instance = textAt(source, "host") || textAt(event, "reportingInstance");
  return instance === "" ? component : `${component}, ${instance}`;
}

function firstSeen(event: ApiObject, { nowMs }: PrintContext): string {
  return ageOf(firstTime(event), nowMs);
}

function lastSeen(event: ApiObject, { nowMs }: PrintContext): string {
  if (has(event, "series")) return ageOf(textAt(event, "series", "lastObservedTime"), nowMs);
  return ageOf(either(event, "lastTimestamp", "deprecatedLastTimestamp") || firstTime(event), nowMs);
}

function firstTime(event: ApiObject): string {
  return either(event, "firstTimestamp", "deprecatedFirstTimestamp") || textAt(event, "eventTime");
}

/** Events of the newer kind count only once they repeat. */
function countOf(event: ApiObject): number {
  if (has(event, "series")) return numberAt(event, "series", "count") ?? 0;
  return (numberAt(event, "count") ?? numberAt(event, "deprecatedCount") ?? 0) || 1;
}

function either(event: ApiObject, coreField: string, groupField: string): string {
  return textAt(event, coreField) || textAt(event, groupField);
}
