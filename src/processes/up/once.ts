import { readFile } from "node:fs/promises";
import { withDeadline, type Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import type { Client } from "../../kube/client/client.ts";
import { systemCode } from "../../kube/config/world.ts";
import { isKubeError, KubeError } from "../../kube/errors.ts";
import type { KubeObject, Resource } from "../../kube/object.ts";
import { createCluster } from "../../views/cluster.ts";
import { explain } from "../../views/explain.ts";
import type { Explanation } from "../../views/explanation.ts";
import { textAt } from "../../views/fields.ts";
import type { Said } from "../cluster-view.ts";
import type { CommandContext } from "../../views/reasons/words.ts";
import { ProcessError } from "../errors.ts";
import { readObjects } from "../reading.ts";
import { parseManifest, type ManifestObject } from "./manifest.ts";
import { readyAs } from "./readiness.ts";
import { untilGone, untilObject } from "./until.ts";

export interface OnceDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  /** What a command for this cluster has to carry. */
  readonly commands?: CommandContext;
  /** `pod/web` is `ready on node-1`, so many milliseconds after it was applied. */
  readonly report: (label: string, state: string, tookMs: number) => void;
  /** What the parts of the cluster say that they wait for. */
  readonly waits: () => Promise<Said>;
}

/** What did not become ready in time, and why. */
export interface NotReady {
  readonly label: string;
  /** Undefined for kinds that nobody explains. */
  readonly explanation: Explanation | undefined;
  readonly state: string;
}

export async function readManifest(file: string): Promise<readonly (readonly ManifestObject[])[]> {
  try {
    return parseManifest(file, await readFile(file === "-" ? "/dev/stdin" : file, "utf8"));
  } catch (error) {
    if (error instanceof ProcessError) throw error;
    const why = systemCode(error) === "ENOENT" ? "there is no such file; check the path" : messageOf(error);
    throw new ProcessError("BadFile", `cannot read ${file} (--once): ${why}`, { cause: error });
  }
}

/** Applies the steps of a manifest, each when all before it is ready; answers what never was. */
export async function applyOnce(
  deps: OnceDeps,
  steps: readonly (readonly ManifestObject[])[],
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<readonly NotReady[]> {
  for (const step of steps) {
    const onDeadline = () => new Error(`not ready within ${timeoutMs} ms (--timeout)`);
    const late = await withDeadline(deps.clock, { ms: timeoutMs, signal, onDeadline }, (deadline) =>
      take(deps, step, deadline),
    );
    signal.throwIfAborted();
    if (late.length > 0) return Promise.all(late.map((item) => explainLate(deps, item)));
  }
  return [];
}

/** Answers what was not ready when the deadline passed; what could not even be applied in time is the only one then. */
async function take(
  deps: OnceDeps,
  step: readonly ManifestObject[],
  deadline: AbortSignal,
): Promise<readonly ManifestObject[]> {
  for (const item of step) {
    try {
      await apply(deps, item, deadline);
    } catch (error) {
      if (deadline.aborted) return [item];
      throw error;
    }
  }
  const results = await Promise.all(step.map((item) => whenReady(deps, item, deadline)));
  return step.filter((_, index) => !results[index]);
}

const FIELD_MANAGER = "mooring-once";

/** Server-side apply; a pod that would have to change what cannot be changed is replaced, as `kubectl replace --force` does. */
async function apply(deps: OnceDeps, item: ManifestObject, signal: AbortSignal): Promise<void> {
  const { client } = deps;
  const { resource, object, label } = item;
  const patch = { type: "apply", value: object, force: true } as const;
  const write = () => client.patch(resource, refOf(object), patch, { fieldManager: FIELD_MANAGER, signal });
  try {
    await write();
  } catch (error) {
    const replaced = resource.kind === "Pod" && isKubeError(error, "Invalid");
    const uid = replaced ? await uidOf(client, item) : undefined;
    if (uid === undefined || !(await isValid(client, item))) throw refused(label, error);
    await client.delete(resource, refOf(object), { signal, preconditions: { uid } });
    await untilGone(deps, { resource, ...refOf(object) }, signal);
    await write();
  }
}

async function uidOf(client: Client, { resource, object }: ManifestObject): Promise<string | undefined> {
  return (await client.get(resource, refOf(object)).catch(() => undefined))?.metadata.uid;
}

/** Whether the server would take it if there were none of its name: a mistake in the file must not cost the pod that is there. */
async function isValid(client: Client, { resource, object }: ManifestObject): Promise<boolean> {
  const { name: _, ...metadata } = object.metadata;
  const other = { ...object, metadata: { ...metadata, generateName: "check-" } };
  return client.create(resource, other, { dryRun: true }).then(
    () => true,
    () => false,
  );
}

function refused(label: string, error: unknown): unknown {
  if (!(error instanceof KubeError)) return error;
  return new ProcessError("BadFile", `${label} was refused: ${error.detail}`, { cause: error });
}

async function whenReady(deps: OnceDeps, item: ManifestObject, signal: AbortSignal): Promise<boolean> {
  const { clock, report } = deps;
  const { resource, object, label } = item;
  const startedMs = clock.now();
  const stateOf = (now: KubeObject) => readyAs(resource.kind, now);
  if (await waitsForPod(deps, item)) {
    report(label, "waits for its first pod", clock.now() - startedMs);
    return true;
  }
  try {
    const is = (now: KubeObject) => stateOf(now) !== undefined;
    const ready = await untilObject(deps, { resource, ...refOf(object), is }, signal);
    report(label, stateOf(ready) ?? "", clock.now() - startedMs);
    return true;
  } catch (error) {
    if (!signal.aborted) throw error;
    return false;
  }
}

const storageClasses: Resource = {
  ...{ group: "storage.k8s.io", version: "v1", kind: "StorageClass", plural: "storageclasses" },
  namespaced: false,
};

/** A claim of a class that waits for the first consumer is not bound before; its pod is waited for, if there is one. */
async function waitsForPod({ client }: OnceDeps, { resource, object }: ManifestObject): Promise<boolean> {
  if (resource.kind !== "PersistentVolumeClaim") return false;
  const name = textAt(object, "spec", "storageClassName");
  if (name === "") return false;
  const found = await client.get(storageClasses, { name }).catch(() => undefined);
  return textAt(found, "volumeBindingMode") === "WaitForFirstConsumer";
}

async function explainLate(deps: OnceDeps, item: ManifestObject): Promise<NotReady> {
  const { client, clock, waits, commands } = deps;
  const { resource, object, label } = item;
  const { namespace = "default", name } = refOf(object);
  const kind = EXPLAINED[resource.kind];
  const now = await client.get(resource, refOf(object)).catch(() => undefined);
  const state =
    textAt(now, "status", "error", "message") ||
    textAt(now, "status", "phase") ||
    (now ? "not ready" : "missing");
  if (kind === undefined) return { label, state, explanation: undefined };
  const objects = { ...(await readObjects(client, { namespace })), ...(await waits()) };
  const cluster = createCluster(objects, clock.wall().getTime(), commands);
  return { label, state, explanation: explain(cluster, { kind, name, namespace }) };
}

const EXPLAINED: Readonly<Record<string, "pod" | "pvc" | undefined>> = {
  Pod: "pod",
  PersistentVolumeClaim: "pvc",
};

function refOf({ metadata }: KubeObject): { readonly name: string; readonly namespace?: string } {
  const { name = "", namespace } = metadata;
  return namespace === undefined ? { name } : { name, namespace };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
