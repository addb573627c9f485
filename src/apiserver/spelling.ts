import { formatJson, parseJson } from "../kube/json-text.ts";
import { apiVersionOf } from "../kube/object.ts";
import type { Kind } from "./kinds.ts";
import type { ApiObject } from "./objects.ts";
import type { Representer } from "./negotiate/representations.ts";
import { toCoreEvent, toNewEvent } from "./rules/event-spelling.ts";
import { completeObject } from "./schema/complete.ts";

/**
 * Events are served in two groups that spell the same object differently. They are kept, judged and watched in
 * the spelling of core/v1; what comes in through the other group is respelled first, what goes out last.
 */

/** A decoded body in the spelling it is kept in. */
export function toKept(kind: Kind, object: ApiObject): ApiObject {
  return kind.storedAs === undefined ? object : toCoreEvent(object);
}

/** A kept object in the spelling of the kind that was asked for. */
export function toShown(kind: Kind, object: ApiObject): ApiObject {
  return kind.storedAs === undefined ? object : toNewEvent(object);
}

/** A representer that is given kept texts and shows them as the kind that was asked for. */
export function respelled(kind: Kind, representer: Representer): Representer {
  if (kind.storedAs === undefined) return representer;
  const shown = (text: string): string => {
    const object = parseJson(text) as ApiObject;
    if (object["kind"] !== kind.kind) return text;
    const respelledObject = { ...toShown(kind, object), kind: kind.kind, apiVersion: apiVersionOf(kind) };
    return formatJson(completeObject(kind, respelledObject));
  };
  return {
    object: (text) => representer.object(shown(text)),
    list: (revision, page) =>
      representer.list(revision, { ...page, items: page.items.map(({ text }) => ({ text: shown(text) })) }),
    events() {
      const represent = representer.events();
      return (text) => represent(shown(text));
    },
  };
}
