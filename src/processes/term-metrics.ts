import type { Metrics } from "../base/metrics.ts";

/** Metrics for one term: gauges that are asked at a scrape are asked no longer once the term is over. */
export interface TermMetrics {
  readonly metrics: Metrics;
  /** Their values go too: what a past leader believed is nobody's state. Counters and histograms stay. */
  end(): void;
}

/** What stays of a term is an empty function a gauge; terms are seconds apart at least. */
export function createTermMetrics(metrics: Metrics): TermMetrics {
  const ends: (() => void)[] = [];
  return {
    metrics: {
      counter: (spec) => metrics.counter(spec),
      histogram: (spec) => metrics.histogram(spec),
      gauge(spec) {
        let { collect } = spec;
        if (collect === undefined) return metrics.gauge(spec);
        const gauge = metrics.gauge({ ...spec, collect: (asked) => collect?.(asked) });
        ends.push(() => {
          collect = undefined;
          gauge.reset();
        });
        return gauge;
      },
    },
    end: () => ends.splice(0).forEach((end) => end()),
  };
}
