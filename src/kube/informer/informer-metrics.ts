import type { Metrics } from "../../base/metrics.ts";

/** What every informer counts, with its resource as the label. */
export function createInformerMetrics(
  metrics: Metrics,
  resource: string,
  live: { objects: () => number; stalenessMs: () => number },
) {
  metrics.gauge({
    name: "mooring_informer_objects",
    help: "Objects in the cache.",
    labels: ["resource"],
    collect: (gauge) => gauge.set(live.objects(), { resource }),
  });
  metrics.gauge({
    name: "mooring_informer_staleness_seconds",
    help: "Time since the API server last said anything about this resource.",
    labels: ["resource"],
    collect: (gauge) => gauge.set(live.stalenessMs() / 1000, { resource }),
  });
  const events = metrics.counter({
    name: "mooring_informer_events_total",
    help: "Watch events by type; REPEATED are those that told nothing new.",
    labels: ["resource", "type"],
  });
  const restarts = metrics.counter({
    name: "mooring_informer_restarts_total",
    help: "Times a watch or list was started again, by what ended the one before.",
    labels: ["resource", "why"],
  });
  const relists = metrics.counter({
    name: "mooring_informer_relists_total",
    help: "Complete states taken from the server, the first included.",
    labels: ["resource"],
  });
  const handlerErrors = metrics.counter({
    name: "mooring_informer_handler_errors_total",
    help: "Calls of a handler that threw.",
    labels: ["resource"],
  });
  const badObjects = metrics.counter({
    name: "mooring_informer_bad_objects_total",
    help: "Objects left out because they could not be read.",
    labels: ["resource"],
  });
  return {
    event: (type: string) => events.inc({ resource, type }),
    restarted: (why: string) => restarts.inc({ resource, why }),
    relisted: () => relists.inc({ resource }),
    handlerFailed: () => handlerErrors.inc({ resource }),
    badObject: () => badObjects.inc({ resource }),
  };
}
