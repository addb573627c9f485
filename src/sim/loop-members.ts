import { withEither } from "../base/signals.ts";
import { createLoopDriver } from "../driver/driver.ts";
import type { Host } from "../driver/host.ts";
import type { DriverOptions } from "../driver/options.ts";
import { DRIVER_NAME } from "../processes/up/defaults.ts";
import { DRIVER_VIEW, mapCalls } from "./host-calls.ts";
import type { Life } from "./life.ts";
import { LOOP_POOL, type LoopPool } from "./loop-pool.ts";
import type { Machine } from "./machine.ts";
import { runDriverController, runDriverNode } from "./members.ts";
import type { LifeContext } from "./supervisor.ts";

/** The processes of the loop driver on one pool, as `mooring up` puts them together. */

export const LOOP_SOCKET = "/csi/loop.sock";

/** A write with its fsync takes a few milliseconds, a mount about one: a process can be killed after each. */
const CHANGE_MS_MAX = 10;

export interface LoopPlace {
  readonly machine: Machine;
  readonly pool: LoopPool;
}

/** `mooring driver --serve controller`. */
export async function runLoopController(
  context: LifeContext,
  { machine, pool, nodes }: LoopPlace & { readonly nodes: readonly string[] },
  signal: AbortSignal,
): Promise<void> {
  const options = { nodeId: nodes[0] ?? "", nodes, serves: "controller" } as const;
  const served = await recovered(context, { machine, pool }, options);
  await runDriverController(context, { machine, socketPath: LOOP_SOCKET, served, locks: true }, signal);
}

/** `mooring driver --serve node`. */
export async function runLoopNode(
  context: LifeContext,
  { machine, pool }: LoopPlace,
  signal: AbortSignal,
): Promise<void> {
  const served = await recovered(context, { machine, pool }, { nodeId: machine.name, serves: "node" });
  await runDriverNode(context, { machine, driver: DRIVER_NAME, served, locks: true }, signal);
}

async function recovered(
  context: LifeContext,
  { machine, pool }: LoopPlace,
  options: Pick<DriverOptions, "nodeId" | "nodes" | "serves">,
) {
  const { clock, random, log, life } = context;
  const hostRandom = random.fork("host");
  const host = hostOf(life, pool.view(), {
    // The answer takes a while, and the change is there: whoever is killed meanwhile never hears of it.
    later: () => machine.clock.sleep(hostRandom.float() * CHANGE_MS_MAX),
    onMount: () => machine.mounted(),
  });
  const driver = createLoopDriver(
    { host, clock, random: random.fork("driver"), log },
    { ...options, name: DRIVER_NAME, stateDir: LOOP_POOL, vendorVersion: "1.0.0" },
  );
  await driver.recover();
  return driver.methods;
}

interface HostTimes {
  readonly later: () => Promise<void>;
  readonly onMount: () => void;
}

const MOUNTS: ReadonlySet<string> = new Set(["mounts.mount", "mounts.bind"]);

/** The computer as one process sees it: changes take their time, and locks and open devices go with its death. */
function hostOf(life: Life, host: Host, { later, onMount }: HostTimes): Host {
  const timed = mapCalls(host, DRIVER_VIEW, async ({ name }, work) => {
    const result = await work();
    if (MOUNTS.has(name)) onMount();
    if (DRIVER_VIEW.changes.has(name)) await later();
    return result;
  });
  const kept = new Set<() => void>();
  life.onKill(() => {
    for (const release of kept) release();
  });
  const keep = (release: () => Promise<void>) => {
    const once = () => void release();
    kept.add(once);
    return async () => {
      kept.delete(once);
      await release();
    };
  };
  const files: Host["files"] = {
    ...timed.files,
    async lock(path, { shared, signal }) {
      const gone = new AbortController();
      const leave = () => gone.abort();
      kept.add(leave);
      try {
        const release = await withEither([signal, gone.signal], (either) =>
          timed.files.lock(path, { shared, signal: either }),
        );
        if (release === undefined) return undefined;
        // It was granted to one that had just died.
        if (!life.isAlive) await release();
        return keep(release);
      } finally {
        kept.delete(leave);
      }
    },
  };
  const loops: Host["loops"] = {
    ...timed.loops,
    pin: async (device) => keep(await timed.loops.pin(device)),
  };
  return {
    files: life.bind(files),
    images: life.bind(timed.images),
    loops: life.bind(loops),
    filesystems: life.bind(timed.filesystems),
    mounts: life.bind(timed.mounts),
  };
}
