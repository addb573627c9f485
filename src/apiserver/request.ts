import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import type { HandlerResponse } from "../kube/handler.ts";
import { resourceName } from "../kube/object.ts";
import type { Rights } from "./guard.ts";
import { storedKind, type Kind } from "./kinds.ts";
import type { Requester } from "./policies/request.ts";
import type { Representer } from "./negotiate/representations.ts";
import { warningHeader } from "./schema/warnings.ts";
import type { ObjectStore, StoreKey } from "./store/store.ts";

/** What verbs work with. */
export interface VerbDeps {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
}

export type PodPart = "ephemeralcontainers" | "resize";

/** A request for a resource, routed but not yet understood. */
export interface ResourceRequest {
  readonly method: string;
  readonly kind: Kind;
  readonly namespace: string | undefined;
  /** Empty for collections. */
  readonly name: string;
  readonly subresource: "status" | undefined;
  /** The part of a pod that alone is written, where the path names one. */
  readonly part?: PodPart;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  readonly signal: AbortSignal;
  readonly representer: Representer;
  readonly rights: Rights;
  /** Tells the sender something that does not stop the request. */
  readonly warn: (text: string) => void;
}

export type Verb = (deps: VerbDeps, request: ResourceRequest) => Promise<HandlerResponse>;

/** Who sends the request, for admission policies. */
export function requesterOf(
  { rights, warn, part, subresource }: ResourceRequest,
  { dryRun, subresource: named = part ?? subresource ?? "" }: { dryRun: boolean; subresource?: string },
): Requester {
  return { user: rights.user, dryRun, subresource: named, warn };
}

export function keyFor(kind: Kind, namespace: string | undefined, name: string): StoreKey {
  return { resource: resourceName(storedKind(kind)), namespace: namespace ?? "", name };
}

/** An object in answer to a write, with what its sender should hear about the body. */
export function objectResponse(status: number, text: string, warnings: readonly string[]): HandlerResponse {
  const response = jsonResponse(status, text);
  const warning = warningHeader(warnings);
  return warning === undefined ? response : { ...response, headers: { ...response.headers, warning } };
}

/** A text gets its newline here; what comes in pieces brings its own. */
export function jsonResponse(status: number, body: HandlerResponse["body"]): HandlerResponse {
  const ended = typeof body === "string" ? `${body}\n` : body;
  return { status, headers: { "content-type": "application/json" }, body: ended };
}
