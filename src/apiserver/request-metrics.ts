import type { Clock } from "../base/clock.ts";
import type { Metrics } from "../base/metrics.ts";
import type { HandlerResponse } from "../kube/handler.ts";
import type { Route } from "./routes.ts";
import type { VerbName } from "./verb-names.ts";

/** Marks the end of a request; returns the response, whose body it counts while it is a stream. */
export type FinishRequest = (response: HandlerResponse) => HandlerResponse;

/** Upstream's names, so that its dashboards work. Labels come from our tables, never from the client. */
export function createRequestMetrics(
  metrics: Metrics,
  clock: Clock,
): (verb: VerbName | undefined, route: Route) => FinishRequest {
  const total = metrics.counter({
    name: "apiserver_request_total",
    help: "Requests answered, by verb, resource and HTTP code.",
    labels: ["verb", "group", "resource", "code"],
  });
  const duration = metrics.histogram({
    name: "apiserver_request_duration_seconds",
    help: "Time from a request to its answer; for a watch, to its headers.",
    labels: ["verb", "resource"],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3, 10],
  });
  let openStreams = 0;
  metrics.gauge({
    name: "apiserver_longrunning_requests",
    help: "Watches open now.",
    collect: (gauge) => gauge.set(openStreams),
  });

  async function* counted(body: AsyncIterable<string>): AsyncGenerator<string> {
    openStreams++;
    try {
      yield* body;
    } finally {
      openStreams--;
    }
  }

  return (verbName, route) => {
    const startedMs = clock.now();
    const resource = route.kind === "resource" ? route.resource.plural : "";
    const group = route.kind === "resource" ? route.resource.group : "";
    const verb = verbName?.toUpperCase() ?? "OTHER";
    return (response) => {
      total.inc({ verb, group, resource, code: String(response.status) });
      duration.observe((clock.now() - startedMs) / 1_000, { verb, resource });
      return typeof response.body === "string" ? response : { ...response, body: counted(response.body) };
    };
  };
}
