import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { AttachablePlugin } from "../plugin.ts";
import { createFlexDriver, type FlexDriverFile, type FlexHost } from "./flex-driver.ts";
import { parseDriverDirectory } from "./flex-protocol.ts";
import { createFlexPlugin } from "./flex.ts";

/** The FlexVolume drivers of this machine, which come and go with their files. */
export interface FlexDrivers {
  /** Those whose `init` has answered; for the plugin registry. */
  plugins(): readonly AttachablePlugin[];
  /** One look at the directory. Awaited once before volumes are resolved; never rejects for a bad driver. */
  probe(signal: AbortSignal): Promise<void>;
  /** Looks again and again until aborted. */
  run(signal: AbortSignal): Promise<void>;
}

/** A look is a stat a driver. Drivers are installed by people and daemon sets: nobody notices 10 s. */
const PROBE_EVERY_MS = 10_000;
/** A driver whose `init` fails is asked again after 10, 20, 40, ... s, at most every 5 min; at once when it changes. */
const INIT_BACKOFF = { initialMs: 10_000, maxMs: 300_000 } as const;
/** More than anybody has; a directory with more is something else. */
const DRIVERS_MAX = 256;

interface Known {
  readonly version: string;
  /** Of the last version whose `init` answered. */
  readonly plugin: AttachablePlugin | undefined;
  /** Of this version, in a row. */
  readonly failures: number;
  readonly retryAtMs: number;
  /** The last line logged, so that it is not said twice. */
  readonly trouble: string | undefined;
}

export function createFlexDrivers(
  { host, clock, log }: { readonly host: FlexHost; readonly clock: Clock; readonly log: Logger },
  /** Called after a driver appeared, changed or went: volumes resolved before may be someone's now. */
  { onChange }: { readonly onChange?: () => void } = {},
): FlexDrivers {
  const known = new Map<string, Known>();
  const listing = createListing({ host, log });

  async function probe(signal: AbortSignal): Promise<void> {
    const before = pluginsOf(known);
    const files = await listing();
    if (!files) return; // Unreadable is not empty: what was there is kept.
    for (const directory of known.keys()) {
      if (files.has(directory)) continue;
      known.delete(directory);
      log.info("flexvolume driver gone", { directory });
    }
    // Side by side: one that hangs takes its 10 s alone.
    await Promise.all([...files.values()].map((file) => probeFile(file, signal)));
    const after = pluginsOf(known);
    if (after.length !== before.length || after.some((plugin) => !before.includes(plugin))) onChange?.();
  }

  async function probeFile(file: FlexDriverFile, signal: AbortSignal): Promise<void> {
    const old = known.get(file.directory);
    const isSame = old?.version === file.version;
    if (isSame && (old.failures === 0 || clock.now() < old.retryAtMs)) return;
    const name = parseDriverDirectory(file.directory);
    if (!name || file.refused !== undefined) {
      const trouble = file.refused ?? "its directory must be called <vendor>~<driver>";
      // Whatever served before must not be run any more.
      failed(file, { trouble, plugin: undefined, failures: 1, retryAtMs: Infinity });
      return;
    }
    try {
      const plugin = await initialize(file, name.driver, signal);
      const { version } = file;
      known.set(file.directory, { version, plugin, failures: 0, retryAtMs: 0, trouble: undefined });
    } catch (error) {
      if (signal.aborted) return;
      const failures = isSame ? old.failures + 1 : 1;
      const retryAtMs = clock.now() + backoffMs(failures, INIT_BACKOFF);
      failed(file, { trouble: String(error), plugin: old?.plugin, failures, retryAtMs });
    }
  }

  async function initialize(
    file: FlexDriverFile,
    driver: string,
    signal: AbortSignal,
  ): Promise<AttachablePlugin> {
    const call = createFlexDriver(host, { driver, file: file.file });
    const answer = await call({ verb: "init", args: [], what: file.file, signal });
    const canAttach = answer.kind === "success" && answer.canAttach;
    if (answer.kind === "not-supported")
      throw new Error(`${driver} does not support init, which every driver has to`);
    log.info("flexvolume driver ready", { driver, file: file.file, attach: canAttach });
    return createFlexPlugin({ call, log }, { driver, canAttach });
  }

  function failed(file: FlexDriverFile, state: Omit<Known, "version">): void {
    if (known.get(file.directory)?.trouble !== state.trouble)
      log.warn("flexvolume driver unusable", { file: file.file, error: state.trouble });
    known.set(file.directory, { version: file.version, ...state });
  }

  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await probe(signal);
      await clock.sleep(PROBE_EVERY_MS, signal).catch(() => undefined);
    }
  }

  return { plugins: () => pluginsOf(known), probe, run };
}

function pluginsOf(known: ReadonlyMap<string, Known>): AttachablePlugin[] {
  return [...known.values()].flatMap(({ plugin }) => plugin ?? []);
}

/** The files by directory, undefined where they could not be read; says so once, not every 10 s. */
function createListing({ host, log }: { host: FlexHost; log: Logger }) {
  let trouble: string | undefined;
  return async (): Promise<ReadonlyMap<string, FlexDriverFile> | undefined> => {
    const said = trouble;
    try {
      const files = await host.list();
      trouble =
        files.length > DRIVERS_MAX ? `${files.length} drivers; the first ${DRIVERS_MAX} are used` : undefined;
      return new Map(files.slice(0, DRIVERS_MAX).map((file) => [file.directory, file]));
    } catch (error) {
      trouble = String(error);
      return undefined;
    } finally {
      if (trouble !== undefined && trouble !== said)
        log.warn("flexvolume drivers not all looked at", { error: trouble });
    }
  };
}
