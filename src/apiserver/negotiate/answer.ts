import { formatJson, parseJson } from "../../kube/json-text.ts";
import type { Clock } from "../../base/clock.ts";
import type { HandlerResponse } from "../../kube/handler.ts";
import type { Kind } from "../kinds.ts";
import { parseStored } from "../objects.ts";
import { flag } from "../options.ts";
import { respelled } from "../spelling.ts";
import type { ObjectStore } from "../store/store.ts";
import { effectiveDefaultClass } from "../tables/storage.ts";
import type { VerbName } from "../verb-names.ts";
import { contentType, endpointOf, negotiate, type Negotiated } from "./accept.ts";
import { partialMetadata } from "./metadata.ts";
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
  asked: {
    verb: VerbName;
    kind: Kind;
    subresource?: string | undefined;
    accept: string | undefined;
    query: URLSearchParams;
  },
): Answer {
  const endpoint = endpointOf(asked.verb, asked.subresource);
  const negotiated = negotiate(asked.accept, endpoint);
  const defaultStorageClass = () =>
    effectiveDefaultClass([...store.scan({ resource: "storageclasses.storage.k8s.io" })].map(parseStored));
  const plain = createRepresenter({ clock, defaultStorageClass }, { ...asked, as: negotiated.as });
  const representer = respelled(asked.kind, plain);
  return {
    representer,
    finish(response) {
      if (typeof response.body !== "string") return response;
      const text = response.body.trimEnd();
      const isWhole = endpoint === "object" || endpoint === "question";
      return encode(response, isWhole ? representer.object(text) : text, { negotiated, query: asked.query });
    },
  };
}

/** The same for what is asked and answered in one go. Throws 406 likewise, before the question is put. */
export function prepareQuestion(accept: string | undefined, query: URLSearchParams): Pick<Answer, "finish"> {
  const negotiated = negotiate(accept, "question");
  const { as } = negotiated;
  return {
    finish(response) {
      if (typeof response.body !== "string") return response;
      const text = response.body.trimEnd();
      const shown = as.kind === "metadata" ? partialMetadata(text, as.version) : text;
      return encode(response, shown, { negotiated, query });
    },
  };
}

function encode(
  response: HandlerResponse,
  text: string,
  { negotiated, query }: { negotiated: Negotiated; query: URLSearchParams },
): HandlerResponse {
  if (negotiated.encoding === "json") return pretty({ ...response, body: `${text}\n` }, query);
  const headers = { ...response.headers, "content-type": contentType(negotiated) };
  return { ...response, headers, body: toYaml(text) };
}

/** Two spaces of indent where `?pretty` asks for it. */
export function pretty(response: HandlerResponse, query: URLSearchParams): HandlerResponse {
  if (flag(query, "pretty") !== true || query.get("pretty") === "" || typeof response.body !== "string")
    return response;
  return { ...response, body: `${formatJson(parseJson(response.body), "  ")}\n` };
}
