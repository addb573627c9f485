import { formatLabelSelector, fromLabelSelectorObject } from "../../kube/selectors.ts";
import { fieldAt } from "../objects.ts";
import { isJsonObject } from "../../kube/patch/json.ts";
import { listAt, textAt } from "./fields.ts";
import { wideColumn, type Column } from "./printer.ts";

/** Labels as one reads them: `a=b,c=d`. */
export function labelsText(object: unknown, ...path: readonly string[]): string {
  const labels = fieldAt(object, ...path);
  if (!isJsonObject(labels)) return "<none>";
  const texts = Object.entries(labels).map(
    ([key, value]) => `${key}=${typeof value === "string" ? value : ""}`,
  );
  return texts.length === 0 ? "<none>" : texts.sort().join(",");
}

/** A selector of labels as a text; `nothing` where it says nothing. */
export function selectorText(object: unknown, path: readonly string[], nothing = "<none>"): string {
  const selector = fieldAt(object, ...path);
  if (!isJsonObject(selector)) return nothing;
  try {
    return formatLabelSelector(fromLabelSelectorObject(selector)) || nothing;
  } catch {
    return "<error>"; // one odd object must not spoil the table of all others
  }
}

/** The containers of a pod or of the template of one, for `-o wide`. */
export function containerColumns(...spec: readonly string[]): Column[] {
  const texts = (object: unknown, field: string) =>
    listAt(object, ...spec, "containers")
      .map((container) => textAt(container, field))
      .join(",");
  return [
    wideColumn("Containers", "The names of its containers", (object) => texts(object, "name")),
    wideColumn("Images", "What they run", (object) => texts(object, "image")),
  ];
}

/** The first few of a list, and how many there are beyond. */
export function firstFew(texts: readonly string[], { max, none }: { max: number; none: string }): string {
  if (texts.length === 0) return none;
  const shown = texts.slice(0, max).join(",");
  return texts.length > max ? `${shown} + ${texts.length - max} more...` : shown;
}
