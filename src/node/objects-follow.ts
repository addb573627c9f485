import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import type { Client } from "../kube/client/client.ts";
import { KubeError } from "../kube/errors.ts";
import { createReflector } from "../kube/informer/reflector.ts";
import { refusesStreamingList } from "../kube/informer/reflector-plan.ts";
import { ObjectStore } from "../kube/informer/store.ts";
import { trimBookkeeping } from "../kube/informer/trim.ts";
import { toKey, type KubeObject, type ObjectRef, type Resource } from "../kube/object.ts";
import { isObject } from "../volumes/untrusted.ts";

/** What is known of one object. */
export type Seen<T> =
  | { readonly kind: "loading" }
  | { readonly kind: "present"; readonly object: T }
  | { readonly kind: "absent" }
  /** It never came, and this is what the server said. */
  | { readonly kind: "failed"; readonly error: Error };

export interface FollowDeps {
  readonly client: Pick<Client, "list" | "watch">;
  readonly clock: Clock;
  readonly random: Random;
}

export interface Following {
  readonly resource: Resource;
  readonly ref: ObjectRef;
  readonly set: (seen: Seen<KubeObject>) => void;
  readonly onRestart: (why: string) => void;
}

/**
 * Follows one object until the signal aborts: one streaming list of that name, whose first answer says what is there and
 * which then goes on as its watch. One request an object, where a GET and a watch were two: 500 pods with a claim, a
 * volume and an attachment each take 1,500 after a start.
 */
export async function followObject(
  deps: FollowDeps,
  { resource, ref, set, onRestart }: Following,
  signal: AbortSignal,
): Promise<void> {
  const key = toKey(ref);
  const store = new ObjectStore<KubeObject>();
  let came = false;
  const tell = () => {
    came = true;
    const object = store.get(key);
    set(object ? { kind: "present", object } : { kind: "absent" });
  };
  const reflector = createReflector<KubeObject>(
    deps,
    { resource, namespace: ref.namespace, fieldSelector: `metadata.name=${ref.name}` },
    {
      beginReplace() {
        const replacement = store.beginReplace();
        return {
          offer(object) {
            if (!isWhole(object)) return;
            const kept = trimBookkeeping(object);
            replacement.offer(kept);
            // There is only one of that name: what follows, its end included, can add nothing.
            if (!came && toKey(kept.metadata as ObjectRef) === key) set({ kind: "present", object: kept });
          },
          retract: (object) => replacement.retract(object),
          commit() {
            replacement.commit();
            tell();
          },
        };
      },
      apply({ type, object }) {
        if (!isWhole(object)) return false;
        const news = store.apply({ type, object: trimBookkeeping(object) }).length > 0;
        if (news) tell();
        return news;
      },
      heard: () => undefined,
      restarting({ why }, error) {
        onRestart(why);
        // What was seen once stays: it is older than we would like, and most likely still so.
        if (!came && error instanceof Error && why !== "refused") set({ kind: "failed", error });
      },
    },
  );
  await reflector.run(signal);
}

/** One bad object never stops the rest: what has no name, or annotations that are none, is as if it had not come. */
function isWhole(object: KubeObject): boolean {
  const { metadata } = Object(object) as { readonly metadata?: unknown };
  const { name, annotations } = Object(metadata) as {
    readonly name?: unknown;
    readonly annotations?: unknown;
  };
  return typeof name === "string" && (annotations === undefined || isObject(annotations));
}

/** A server without streaming lists says so once, not once an object. */
export function rememberRefusal(client: Pick<Client, "list" | "watch">): Pick<Client, "list" | "watch"> {
  let refusal: unknown;
  return {
    list: (resource, options) => client.list(resource, options),
    async watch(resource, options) {
      if (options.sendInitialEvents !== true) return client.watch(resource, options);
      if (refusal !== undefined)
        throw new KubeError("Invalid", "this server has no streaming lists", { cause: refusal });
      try {
        return await client.watch(resource, options);
      } catch (error) {
        if (refusesStreamingList(error)) refusal = error;
        throw error;
      }
    },
  };
}
