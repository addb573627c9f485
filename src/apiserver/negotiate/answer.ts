import type { Clock } from "../../base/clock.ts";
import type { HandlerResponse } from "../../kube/handler.ts";
import type { Kind } from "../kinds.ts";
import { parseStored } from "../objects.ts";
import { flag } from "../options.ts";
import { respelled } from "../spelling.ts";
import type { ObjectStore } from "../store/store.ts";
import { effectiveDefaultClass } from "../tables/storage.ts";
import type { VerbName } from "../verb-names.ts";
import { contentType, endpointOf, negotiate } from "./accept.ts";
import { createRepresenter, type Representer } from "./representations.ts";
import { toYaml } from "./yaml.ts";

/** How one request wants to be answered, decided before its verb does anything. */
export interface Answer {
  /** For lists and watches, which build their answers from many objects. */
  readonly representer: Representer;
  /** Brings a verb's response into the form that was asked for. */
  finish(response: HandlerResponse): HandlerResponse;
}

/** Throws 406 for an Accept that cannot be met, 400 for an `includeObject` that makes no sense. */
export function prepareAnswer(
  { clock, store }: { clock: Clock; store: ObjectStore },
  asked: { verb: VerbName; kind: Kind; accept: string | undefined; query: URLSearchParams },
): Answer {
  const endpoint = endpointOf(asked.verb);
  const negotiated = negotiate(asked.accept, endpoint);
  const defaultStorageClass = () =>
    effectiveDefaultClass([...store.scan({ resource: "storageclasses.storage.k8s.io" })].map(parseStored));
  const plain = createRepresenter({ clock, defaultStorageClass }, { ...asked, as: negotiated.as });
  const representer = respelled(asked.kind, plain);
  return {
    representer,
    finish(response) {
      if (typeof response.body !== "string") return response;
      const text =
        endpoint === "object" ? representer.object(response.body.trimEnd()) : response.body.trimEnd();
      if (negotiated.encoding === "json") return pretty({ ...response, body: `${text}\n` }, asked.query);
      const headers = { ...response.headers, "content-type": contentType(negotiated) };
      return { ...response, headers, body: toYaml(text) };
    },
  };
}

/** Two spaces of indent where `?pretty` asks for it. */
export function pretty(response: HandlerResponse, query: URLSearchParams): HandlerResponse {
  if (flag(query, "pretty") !== true || query.get("pretty") === "" || typeof response.body !== "string")
    return response;
  return { ...response, body: `${JSON.stringify(JSON.parse(response.body), null, 2)}\n` };
}
