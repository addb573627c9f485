import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Metrics } from "../base/metrics.ts";
import type { Random } from "../base/random.ts";
import type { Client } from "../kube/client/client.ts";
import type { LeaseNotes } from "../kube/election/lease-notes.ts";
import type { EventRecorder } from "../kube/events/events.ts";
import type { AttachablePlugin } from "../volumes/plugin.ts";
import type { Caches } from "./caches.ts";
import type { AttachDetachOptions } from "./options.ts";
import type { ReportFilter, VolumesReport } from "./report.ts";
import { createReport } from "./reporting.ts";
import { createTerm } from "./term.ts";

export interface AttachDetachDeps {
  readonly client: Client;
  /** Run by the caller, also while another process leads: taking over then takes no list. */
  readonly caches: Caches;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Plugins besides CSI, which is built in. Asked at every look: FlexVolume drivers come and go. */
  readonly plugins: () => readonly AttachablePlugin[];
  /** The Lease, where one is held: its renewals carry for how long volumes have waited. */
  readonly notes?: LeaseNotes | undefined;
  /** Asked right before every write; false stops it. */
  readonly mayAct: () => boolean;
}

/** One term as the attach/detach controller: built anew each time this process comes to lead. */
export interface AttachDetachController {
  /** Waits for the caches, takes stock, works until the signal aborts, and resolves when its last request has ended. */
  run(signal: AbortSignal): Promise<void>;
  report(filter?: ReportFilter): VolumesReport;
  /** A plugin came or went: pods whose volumes it serves are followed anew. */
  pluginsChanged(): void;
}

export function createAttachDetachController(
  deps: AttachDetachDeps,
  options: AttachDetachOptions,
): AttachDetachController {
  const term = createTerm(deps, options);
  return {
    run: (signal) => term.run(signal),
    pluginsChanged: () => term.followAll(),
    report: (filter = {}) => createReport(term.context, { active: term.context.active(), filter }),
  };
}
