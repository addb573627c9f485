import type { KubeObject, ObjectRef, Resource } from "../object.ts";
import type { TransportStream } from "../transport/transport.ts";

/**
 * Typed verbs over any Transport. Objects are raw JSON as the server sent them: a field this code has
 * never heard of survives a read-modify-write.
 *
 * Every verb rejects with a KubeError. What is safe to repeat is repeated here (reads; writes that
 * certainly were not carried out), within `deadlineMs` in all; what is not is left to the caller, with
 * `error.outcomeUnknown` set.
 */
export interface Client {
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: CallOptions): Promise<T>;
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<ObjectList<T>>;
  create<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<T>;
  /** The object's resourceVersion, where set, is a precondition. */
  update<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<T>;
  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options?: PatchOptions,
  ): Promise<T>;
  /** Resolves when the server accepted the deletion, which finalizers and grace periods may delay. */
  delete(resource: Resource, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  /** Opens a watch; neither retried nor counted against the concurrency limit. `kube/watch.ts` decodes it. */
  watch(resource: Resource, options: WatchOptions): Promise<TransportStream>;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** From the moment it may be sent, retries included: how long it waits for its turn is not the server's doing. */
  readonly deadlineMs?: number;
}

export interface ListOptions extends CallOptions {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: "Exact" | "NotOlderThan" | undefined;
}

export interface WatchOptions {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly resourceVersion?: string | undefined;
  /** Streams the current state first, ended by a bookmark: list and watch in one request. */
  readonly sendInitialEvents?: boolean | undefined;
  readonly timeoutSeconds?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WriteOptions extends CallOptions {
  /** Does not wait behind everything that asked before: of four places that become free, one is for what is urgent. */
  readonly urgent?: boolean;
  readonly subresource?: "status" | undefined;
  readonly fieldManager?: string | undefined;
  readonly dryRun?: boolean;
}

/** The four patch types of the API; `apply` is server-side apply and needs a field manager. */
export type Patch =
  | { readonly type: "json"; readonly operations: readonly JsonPatchOperation[] }
  | { readonly type: "merge"; readonly value: unknown }
  | { readonly type: "strategic"; readonly value: unknown }
  | { readonly type: "apply"; readonly value: unknown; readonly force?: boolean };

export type JsonPatchOperation =
  | { readonly op: "add" | "replace" | "test"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string }
  | { readonly op: "move" | "copy"; readonly path: string; readonly from: string };

export interface PatchOptions extends WriteOptions {
  /**
   * The patch may be sent again after an answer was lost. True for merge patches that name what they
   * expect (a resourceVersion) or set absolute values; false, the default, leaves it to the caller.
   */
  readonly repeatable?: boolean;
}

export interface DeleteOptions extends CallOptions {
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: "Orphan" | "Background" | "Foreground";
}

export interface ObjectList<T> {
  readonly metadata: {
    readonly resourceVersion?: string;
    readonly continue?: string;
    readonly remainingItemCount?: number;
  };
  readonly items: readonly T[];
}
