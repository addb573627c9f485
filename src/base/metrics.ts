/** What a part measures, without knowing who collects it. Names and labels are upstream's where upstream has them. */
export interface Metrics {
  counter<L extends string = never>(spec: MetricSpec<L>): Counter<L>;
  gauge<L extends string = never>(spec: GaugeSpec<L>): Gauge<L>;
  histogram<L extends string = never>(spec: HistogramSpec<L>): Histogram<L>;
}

export interface MetricSpec<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly L[];
}

export interface GaugeSpec<L extends string> extends MetricSpec<L> {
  /** Asked at every scrape instead of being kept up to date: for depths and ages. */
  readonly collect?: (gauge: Gauge<L>) => void;
}

export interface HistogramSpec<L extends string> extends MetricSpec<L> {
  readonly buckets: readonly number[];
}

export type Labels<L extends string> = Readonly<Record<L, string>>;

export interface Counter<L extends string = never> {
  inc(labels?: Labels<L>, by?: number): void;
}

export interface Gauge<L extends string = never> {
  set(value: number, labels?: Labels<L>): void;
  /** Forgets every label set, so that a vanished one is no longer reported. */
  reset(): void;
}

export interface Histogram<L extends string = never> {
  observe(value: number, labels?: Labels<L>): void;
}

/** Measures nothing: the default of every part that takes metrics. */
export const noMetrics: Metrics = {
  counter: () => ({ inc: () => undefined }),
  gauge: () => ({ set: () => undefined, reset: () => undefined }),
  histogram: () => ({ observe: () => undefined }),
};
