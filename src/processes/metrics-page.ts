import type { PromMetrics } from "../base/prom-metrics.ts";
import type { EndpointRoute } from "./endpoint.ts";

/** `/metrics`. Scrapes that come while one is rendered share it: ten scrapers cost as much as one. */
export function metricsRoute(metrics: PromMetrics): EndpointRoute {
  let rendering: Promise<string> | undefined;
  return async () => {
    rendering ??= metrics.render().finally(() => (rendering = undefined));
    return { status: 200, contentType: metrics.contentType, body: await rendering };
  };
}
