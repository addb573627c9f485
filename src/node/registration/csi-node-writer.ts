import { backoffMs, jittered } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { csiNodes, type CSINode } from "../../kube/api/csi-node.ts";
import { nodes } from "../../kube/api/node.ts";
import type { Client } from "../../kube/client/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import {
  driversOf,
  isOwnedBy,
  newCsiNode,
  nodePatchToInstall,
  nodePatchToRestore,
  nodePatchToUninstall,
  stepsToInstall,
  withCount,
  withMigrated,
  withOwner,
  withoutDriver,
  type DriverOnNode,
  type NodePatch,
} from "./csi-node.ts";

/** Keeps this node's CSINode, and what its Node says of drivers. One write at a time; nothing is written twice. */
export interface CsiNodeWriter {
  /** Makes the CSINode where there is none or another node's; tries until it is there (FIX 33) or the signal aborts. */
  initialise(signal: AbortSignal): Promise<void>;
  readonly isInitialised: boolean;
  install(driver: DriverOnNode, signal: AbortSignal): Promise<void>;
  /** How many volumes the node may have of it, and nothing else. */
  refresh(driver: DriverOnNode, signal: AbortSignal): Promise<void>;
  uninstall(name: string, signal: AbortSignal): Promise<void>;
  /** What somebody took away or changed of these is written again, and nothing else; answers how many writes it took. */
  restore(drivers: () => readonly DriverOnNode[], signal: AbortSignal): Promise<number>;
  /** Who is installed, as the server has it. */
  drivers(signal: AbortSignal): Promise<readonly string[]>;
}

/** As upstream: four tries, 10 ms apart and five times longer each. */
const TRIES = 4;
const BETWEEN_TRIES = { initialMs: 10, factor: 5, maxMs: 1_250 };
const BETWEEN_STARTS = { initialMs: 500, maxMs: 30_000 };

export interface CsiNodeWriterDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly nodeName: string;
}

export function createCsiNodeWriter(deps: CsiNodeWriterDeps): CsiNodeWriter {
  const { client, clock, random, log, nodeName } = deps;
  const ref = { name: nodeName };
  let last: Promise<unknown> = Promise.resolve();
  let isInitialised = false;
  let writes = 0;

  /** After whatever runs now, and again where it failed: each try reads anew, so a conflict heals itself. */
  function inTurn<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const turn = last.then(async () => {
      for (let failures = 1; ; failures++) {
        try {
          signal.throwIfAborted();
          return await work();
        } catch (error) {
          // What the server did not say, such as labels that contradict, will be the same next time.
          if (failures >= TRIES || !isKubeError(error)) throw error;
          await clock.sleep(jittered(backoffMs(failures, BETWEEN_TRIES), 0.1, random), signal);
        }
      }
    });
    last = turn.catch(() => undefined);
    return turn;
  }

  /** Ours, made where it is missing. One that belongs to an earlier node of this name is deleted first. */
  async function ensure(signal: AbortSignal): Promise<CSINode> {
    const found = await getOrUndefined(signal);
    const uid = (await client.get(nodes, ref, { signal })).metadata.uid ?? "";
    const owned = found && withOwner(found, { name: nodeName, uid });
    if (owned !== undefined && isOwnedBy(owned, uid)) {
      const changed = withMigrated(owned) ?? owned;
      return changed === found ? found : update(changed, signal);
    }
    if (found !== undefined) {
      writes++;
      log.info("csinode of an earlier node deleted", { node: nodeName });
      const preconditions = found.metadata.uid === undefined ? {} : { uid: found.metadata.uid };
      await client.delete(csiNodes, ref, { signal, preconditions });
    }
    writes++;
    return client.create(csiNodes, newCsiNode({ name: nodeName, uid }), { signal });
  }

  function update(object: CSINode, signal: AbortSignal): Promise<CSINode> {
    writes++;
    return client.update(csiNodes, object, { signal });
  }

  async function getOrUndefined(signal: AbortSignal): Promise<CSINode | undefined> {
    try {
      return await client.get(csiNodes, ref, { signal });
    } catch (error) {
      if (isKubeError(error, "NotFound")) return undefined;
      throw error;
    }
  }

  async function patchNode(patch: NodePatch | undefined, signal: AbortSignal): Promise<void> {
    if (patch === undefined) return;
    writes++;
    await client.patch(nodes, ref, { type: "merge", value: patch }, { subresource: "status", signal });
  }

  async function writeInstall(driver: DriverOnNode, signal: AbortSignal): Promise<void> {
    let object = await ensure(signal);
    isInitialised = true;
    let steps = stepsToInstall(object, driver);
    for (let at = 0; at < steps.length; at++) {
      const { resourceVersion } = object.metadata;
      const next = { ...steps[at], metadata: { ...object.metadata, resourceVersion } } as CSINode;
      try {
        object = await update(next, signal);
      } catch (error) {
        // Before 1.34 not even the count of an entry may change: out with it, then in again.
        const without = steps.length === 1 ? withoutDriver(object, driver.name) : undefined;
        if (!isKubeError(error, "Invalid") || without === undefined) throw error;
        steps = [without, ...steps];
        at = -1;
      }
    }
  }

  return {
    get isInitialised() {
      return isInitialised;
    },
    async initialise(signal) {
      for (let failures = 1; !signal.aborted; failures++) {
        try {
          await inTurn(signal, () => ensure(signal));
          isInitialised = true;
          return;
        } catch (error) {
          log.warn("csinode not initialised; tried again", { node: nodeName, error });
          await clock
            .sleep(jittered(backoffMs(failures, BETWEEN_STARTS), 0.1, random), signal)
            .catch(() => undefined);
        }
      }
    },
    async install(driver, signal) {
      if (driver.nodeId === "") throw new Error(`driver ${driver.name} gave an empty node id`);
      await inTurn(signal, async () =>
        patchNode(nodePatchToInstall(await client.get(nodes, ref, { signal }), driver), signal),
      );
      await inTurn(signal, () => writeInstall(driver, signal));
    },
    refresh: (driver, signal) =>
      inTurn(signal, async () => {
        const object = await client.get(csiNodes, ref, { signal });
        const changed = withCount(object, driver);
        if (changed !== undefined) await update(changed, signal);
      }),
    async uninstall(name, signal) {
      await inTurn(signal, async () => {
        const object = await getOrUndefined(signal);
        const changed = object && withoutDriver(object, name);
        if (changed !== undefined) await update(changed, signal);
      });
      await inTurn(signal, async () =>
        patchNode(nodePatchToUninstall(await client.get(nodes, ref, { signal }), name), signal),
      );
    },
    // One turn, and who is installed is asked within it: a driver on its way out comes after it, or is not in it.
    restore: (drivers, signal) =>
      inTurn(signal, async () => {
        const before = writes;
        const node = await client.get(nodes, ref, { signal });
        await patchNode(nodePatchToRestore(node, drivers()), signal);
        await ensure(signal);
        for (const driver of drivers()) await writeInstall(driver, signal);
        return writes - before;
      }),
    drivers: (signal) =>
      inTurn(signal, async () => {
        const object = await getOrUndefined(signal);
        return object === undefined ? [] : driversOf(object).map(({ name }) => name);
      }),
  };
}
