import * as prom from "prom-client";
import type {
  Counter,
  Gauge,
  GaugeSpec,
  Histogram,
  HistogramSpec,
  Labels,
  Metrics,
  MetricSpec,
} from "./metrics.ts";

/** Metrics in a registry of their own, rendered for `/metrics`. */
export interface PromMetrics extends Metrics {
  readonly contentType: string;
  render(): Promise<string>;
}

/** Sampling the event loop's delay every 10 ms, the default, takes 0.4 % of a core by itself. */
const LOOP_DELAY_EVERY_MS = 1_000;

/**
 * Asking twice for one name answers the same metric, so that two informers can share
 * `mooring_informer_events_total` and differ in a label. Asking with other labels is a mistake and throws.
 */
export function createPromMetrics({
  processMetrics = false,
}: { processMetrics?: boolean } = {}): PromMetrics {
  const registry = new prom.Registry();
  if (processMetrics)
    prom.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_DELAY_EVERY_MS });
  const made = new Map<string, { labels: string; metric: unknown }>();

  function once<T, L extends string>(spec: MetricSpec<L>, make: () => T): T {
    const labels = (spec.labels ?? []).join(",");
    const known = made.get(spec.name);
    if (known !== undefined) {
      if (known.labels === labels) return known.metric as T;
      throw new Error(
        `metric ${spec.name}: labels "${labels}" here, "${known.labels}" where it was made first`,
      );
    }
    const metric = make();
    made.set(spec.name, { labels, metric });
    return metric;
  }

  return {
    contentType: registry.contentType,
    render: () => registry.metrics(),
    counter: (spec) => once(spec, () => createCounter(registry, spec)),
    gauge: (spec) => {
      const gauge = once(spec, () => createGauge(registry, spec));
      if (spec.collect !== undefined) gauge.collectors.push(spec.collect);
      return gauge;
    },
    histogram: (spec) => once(spec, () => createHistogram(registry, spec)),
  };
}

function configuration<L extends string>(
  registry: prom.Registry,
  { name, help, labels = [] }: MetricSpec<L>,
) {
  return { name, help, labelNames: [...labels], registers: [registry] };
}

function createCounter<L extends string>(registry: prom.Registry, spec: MetricSpec<L>): Counter<L> {
  const counter = new prom.Counter<L>(configuration(registry, spec));
  return {
    inc: (labels, by = 1) => (labels === undefined ? counter.inc(by) : counter.inc(record(labels), by)),
  };
}

/** Every part that shares a gauge may bring its own collector; each sets its own labels at a scrape. */
interface CollectedGauge<L extends string> extends Gauge<L> {
  readonly collectors: ((gauge: Gauge<L>) => void)[];
}

function createGauge<L extends string>(registry: prom.Registry, spec: GaugeSpec<L>): CollectedGauge<L> {
  const collectors: ((gauge: Gauge<L>) => void)[] = [];
  const gauge = new prom.Gauge<L>({
    ...configuration(registry, spec),
    collect: () => collectors.forEach((collect) => collect(handle)),
  });
  const handle: CollectedGauge<L> = {
    collectors,
    set: (value, labels) => (labels === undefined ? gauge.set(value) : gauge.set(record(labels), value)),
    reset: () => gauge.reset(),
  };
  return handle;
}

function createHistogram<L extends string>(registry: prom.Registry, spec: HistogramSpec<L>): Histogram<L> {
  const histogram = new prom.Histogram<L>({ ...configuration(registry, spec), buckets: [...spec.buckets] });
  return {
    observe: (value, labels) =>
      labels === undefined ? histogram.observe(value) : histogram.observe(record(labels), value),
  };
}

function record<L extends string>(labels: Labels<L>): Partial<Record<L, string>> {
  return labels;
}
