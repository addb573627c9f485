import { parseKey } from "./request-key.ts";
import type { StoreKey } from "../../apiserver/store/store.ts";
import type { TransportRequest, TransportResponse } from "../../kube/transport/transport.ts";
import type { Commit } from "../told-store.ts";
import type { World } from "../world.ts";

/** What was answered long ago is looked for this often: events alone are hundreds. */
const LOOK_MS = 60_000;

interface Version {
  readonly type: Commit["type"];
  readonly revision: number;
}

/**
 * Nothing that the API server has acknowledged is lost, whoever kills it: revisions follow each other without a gap, each
 * version carries its own, and what a client was told of is in the store or was replaced by something later. Answers the look
 * that goes over everything acknowledged so far.
 */
export function watchAcknowledged(world: World): () => void {
  const { store } = world.server;
  const latest = new Map<string, Version>();
  const acknowledged = new Map<string, { readonly key: StoreKey; readonly revision: number }>();
  let last = store.revision;

  function committed({ type, object }: Commit): void {
    const { key, revision, text } = object;
    if (revision !== last + 1)
      world.violate(`revisions: ${revision} comes after ${last} with ${nameOf(key)}`);
    last = revision;
    if (!text.includes(`"resourceVersion":"${revision}"`))
      world.violate(`revisions: ${nameOf(key)} at revision ${revision} says to be of another`);
    latest.set(nameOf(key), { type, revision });
  }

  function answered(call: TransportRequest, { status, body }: TransportResponse): void {
    if (call.method === "GET" || status < 200 || status >= 300 || call.path.includes("dryRun=")) return;
    const key = parseKey(call, body);
    if (key === undefined) return;
    if (call.method === "DELETE") {
      if (!isGoing(key))
        world.violate(`acknowledged: the deletion of ${nameOf(key)} was answered, and it is there as before`);
      return;
    }
    const [, told] = /"resourceVersion":"(\d+)"/.exec(body) ?? [];
    if (told === undefined) return;
    const known = acknowledged.get(nameOf(key));
    acknowledged.set(nameOf(key), { key, revision: Math.max(Number(told), known?.revision ?? 0) });
    lookAt(key, Number(told));
  }

  function lookAt(key: StoreKey, revision: number): void {
    const there = store.get(key)?.revision;
    const { type, revision: latestRevision = 0 } = latest.get(nameOf(key)) ?? {};
    const isLater =
      there === undefined ? type === "deleted" && latestRevision >= revision : there >= revision;
    if (!isLater)
      world.violate(
        `acknowledged: ${nameOf(key)} was answered at revision ${revision}, and the store has ${there ?? "nothing"}`,
      );
  }

  /** Gone, on its way, or already another of its name. */
  function isGoing(key: StoreKey): boolean {
    const { type } = latest.get(nameOf(key)) ?? {};
    return type !== "updated" || (store.get(key)?.text.includes('"deletionTimestamp"') ?? true);
  }

  world.server.witness({ committed, answered });
  let lookedMs = 0;
  return () => {
    if (world.scheduler.nowMs - lookedMs < LOOK_MS) return;
    lookedMs = world.scheduler.nowMs;
    for (const { key, revision } of acknowledged.values()) lookAt(key, revision);
  };
}

function nameOf({ resource, namespace, name }: StoreKey): string {
  return `${resource} ${namespace === "" ? "" : `${namespace}/`}${name}`;
}
